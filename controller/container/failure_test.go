package container_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/controller"
	"berth/controller/container"
	"berth/runtime"
	"berth/store"
)

var errRefused = errors.New("refused")

// measured runs test with a world whose metrics are read by count.
func measured(t *testing.T, test func(w *world, count func(metric string) float64)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w, reg := newWorld(t), prometheus.NewRegistry()
		w.rec.Metrics = controller.NewMetrics(reg)
		container.Register(reg, w.rec.Metrics, w.store)
		defer w.run()()
		test(w, func(metric string) float64 { return sample(t, reg, metric) })
	})
}

// sample returns the value of a line of the metrics, such as name{label="x"}.
func sample(t *testing.T, reg *prometheus.Registry, metric string) (value float64) {
	t.Helper()
	name, labels, _ := strings.Cut(strings.TrimSuffix(metric, "}"), "{")
	families, err := reg.Gather()
	require.NoError(t, err)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			l := m.GetLabel()
			if f.GetName() == name && len(l) == 1 && l[0].GetName()+`="`+l[0].GetValue()+`"` == labels {
				return m.GetCounter().GetValue()
			}
		}
	}
	require.Fail(t, "no such metric", metric)
	return 0
}

// TestEveryFailingStepIsReported: so is its later success.
func TestEveryFailingStepIsReported(t *testing.T) {
	for _, tc := range []struct {
		op, reason, drift string
		n                 runtime.Name
		do                func(w *world)
	}{
		{"kill", "KillServerFailed", "", server, func(w *world) { w.change(kill) }},
		{"signal", "SendStopFailed", "", server, func(w *world) { w.change(off) }},
		{"remove", "RemoveServerFailed", "", server, func(w *world) {
			w.change(kill)
			w.change(func(s *v1.ContainerSpec) { s.TTY = new(!*v1.WithDefaults(*s).TTY) })
		}},
		{"unpause", "UnpauseFailed", "paused", server, func(w *world) { w.engine.Outside.Pause(server) }},
		{"create", "CreateServerFailed", "removed", server, func(w *world) { w.engine.Outside.Vanish(server) }},
		{"kill", "KillServerFailed", "started", server, func(w *world) {
			w.change(func(s *v1.ContainerSpec) { off(s); s.Stop.Timeout = v1.Duration(time.Second) })
			w.want(v1.Exit)
			w.engine.Outside.Deafen(server)
			require.NoError(w.t, w.engine.Outside.StartOutside(server))
		}},
	} {
		t.Run(tc.op+" "+tc.drift, func(t *testing.T) {
			measured(t, func(w *world, count func(string) float64) {
				w.installed(nil)
				w.change(on)
				w.want(v1.Running)
				agree := w.refuse(tc.op, tc.n, errRefused)
				tc.do(w)
				time.Sleep(20 * time.Second)
				c := w.get()
				condition := v1.FindCondition(c.Status.Conditions, v1.Reconciled)
				require.Equal(t, v1.False, condition.Status)
				require.Equal(t, tc.reason, condition.Reason)
				require.Equal(t, errRefused.Error(), c.Status.Message)
				step := strings.ToLower(strings.TrimSuffix(tc.reason, "Failed"))
				for _, name := range []string{"kill server", "send stop", "remove server", "unpause", "create server"} {
					failures := count(`berth_step_failures_total{step="` + name + `"}`)
					require.Equal(t, strings.ReplaceAll(name, " ", "") == step, failures > 3, "%s: %v", name, failures)
				}
				if tc.drift != "" {
					require.Zero(t, count(`berth_drift_repaired_total{kind="`+tc.drift+`"}`), "nothing is repaired yet")
				}
				agree()
				time.Sleep(10 * time.Minute)
				c = w.get()
				require.Equal(t, v1.True, v1.FindCondition(c.Status.Conditions, v1.Reconciled).Status)
				require.NotEqual(t, errRefused.Error(), c.Status.Message)
				if tc.drift != "" {
					require.EqualValues(t, 1, count(`berth_drift_repaired_total{kind="`+tc.drift+`"}`))
				}
			})
		})
	}
}

// TestNextRetryIsNotInThePast: the container was changed while the directory of its
// volume is missing.
func TestNextRetryIsNotInThePast(t *testing.T) {
	measured(t, func(w *world, count func(string) float64) {
		w.installed(nil)
		w.change(on)
		w.engine.Outside.Exit(server, 1)
		w.want(v1.Exit)
		agree := w.refuse("create", server, runtime.ErrMountMissing)
		w.change(func(s *v1.ContainerSpec) { s.TTY = new(!*v1.WithDefaults(*s).TTY) })
		for range 100 {
			time.Sleep(7 * time.Second)
			c := w.want(v1.Exit)
			require.NotNil(t, c.Status.NextRetryAt)
			require.Equal(t, "VolumeMissing", v1.Unready(c.Spec, c.Status))
			require.False(t, c.Status.NextRetryAt.Before(time.Now()), "next_retry_at is %s ago", time.Since(*c.Status.NextRetryAt))
		}
		agree()
		time.Sleep(6 * time.Minute)
		require.Nil(t, w.want(v1.Running).Status.NextRetryAt)
		require.Zero(t, count(`berth_drift_repaired_total{kind="removed"}`), "berth removed it itself")
	})
}

// TestChangedLimitsAreDrift: limits that a client changed are not.
func TestChangedLimitsAreDrift(t *testing.T) {
	const drift = `berth_drift_repaired_total{kind="limits"}`
	measured(t, func(w *world, count func(string) float64) {
		w.installed(func(s *v1.ContainerSpec) { s.Limits.Memory = 1 << 30 })
		w.change(on)
		agree := w.refuse("update", server, runtime.ErrUnavailable)
		w.change(func(s *v1.ContainerSpec) { s.Limits.Memory = 2 << 30 })
		time.Sleep(10 * time.Second)
		agree()
		time.Sleep(5 * time.Minute)
		require.EqualValues(t, 2<<30, w.engine.Outside.State(server).Live.Memory)
		require.Zero(t, count(drift))
		require.NoError(t, w.engine.Update(t.Context(), server, runtime.Live{Memory: 1 << 29}))
		time.Sleep(2 * time.Minute)
		require.EqualValues(t, 2<<30, w.engine.Outside.State(server).Live.Memory)
		require.EqualValues(t, 1, count(drift))
	})
}

func TestFailingOrphanIsCounted(t *testing.T) {
	measured(t, func(w *world, count func(string) float64) {
		_, err := w.engine.Create(t.Context(), runtime.Spec{Name: server, Image: "i"})
		require.NoError(t, err)
		w.refuse("remove", server, errRefused)
		time.Sleep(5 * time.Minute)
		require.Greater(t, count(`berth_step_failures_total{step="remove orphan"}`), 3.0)
		require.Zero(t, count(`berth_drift_repaired_total{kind="orphan"}`))
	})
}

// TestFailedStepKeepsTheBackoff: a step that fails while a crashed server waits does not shorten the wait.
func TestFailedStepKeepsTheBackoff(t *testing.T) {
	live(t, func(w *world) {
		w.installed(nil)
		w.change(on)
		due := time.Now()
		for time.Until(due) < 4*time.Minute { // each crash doubles the backoff
			time.Sleep(time.Until(due) + time.Second)
			w.want(v1.Running)
			w.engine.Outside.Exit(server, 1)
			due = *w.want(v1.Exit).Status.NextRetryAt
		}
		w.refuse("remove", server, errRefused)
		w.change(func(s *v1.ContainerSpec) { s.TTY = new(!*v1.WithDefaults(*s).TTY) })
		time.Sleep(time.Second)
		c := w.want(v1.Exit)
		require.Equal(t, errRefused.Error(), c.Status.Message)
		require.Equal(t, due, *c.Status.NextRetryAt)
	})
}

// TestHostFaultIsNotTheCommands: what prevents every start has a reason of its own, and is a condition of
// the node and one event, until a container starts.
func TestHostFaultIsNotTheCommands(t *testing.T) {
	live(t, func(w *world) {
		node := func() (c v1.Condition) {
			list, err := store.NodeConditions(w.store.Read())
			c = v1.FindCondition(list, v1.ContainersStart)
			require.NoError(t, err)
			return c
		}
		w.installed(nil)
		fault := &runtime.CallError{Call: "start", Object: "mc", Err: fmt.Errorf("%w: exec: docker-init", runtime.ErrHost)}
		agree := w.refuse("start", server, fault)
		w.change(on)
		time.Sleep(10 * time.Minute)
		c := w.want(v1.Exit)
		require.Equal(t, v1.ReasonHostFault, v1.FindCondition(c.Status.Conditions, v1.Started).Reason)
		require.Nil(t, c.Status.ExitCode)
		require.Equal(t, []string{v1.False, v1.ReasonHostFault}, []string{node().Status, node().Reason})
		once := slices.DeleteFunc(w.events(v1.EventMessage), func(text string) bool { return !strings.HasPrefix(text, "no container starts: ") })
		require.Len(t, once, 1)
		agree()
		time.Sleep(10 * time.Minute)
		w.want(v1.Running)
		require.Equal(t, v1.True, node().Status)
	})
	live(t, func(w *world) { // it may fail before there is a step, which needs the address of the host
		w.refuse("gateway", runtime.Name{}, fmt.Errorf("%w: no address pool", runtime.ErrHost))
		w.create(func(s *v1.ContainerSpec) { s.Env = map[string]string{"HOST": "${BERTH_GATEWAY}"} })
		time.Sleep(time.Minute)
		once := slices.DeleteFunc(w.events(v1.EventMessage), func(text string) bool { return !strings.HasPrefix(text, "no container starts: ") })
		require.Len(t, once, 1)
	})
	live(t, func(w *world) {
		w.installed(nil)
		w.refuse("probe", server, fmt.Errorf("%w: no keeper", runtime.ErrHost))
		w.change(func(s *v1.ContainerSpec) { s.Workdir = "/new" })
		time.Sleep(time.Minute)
		require.NotEmpty(t, slices.DeleteFunc(w.events(v1.EventMessage), func(text string) bool { return !strings.HasPrefix(text, "no container starts: ") }))
	})
	live(t, func(w *world) {
		w.refuse("create", installer, fmt.Errorf("%w: no address pool", runtime.ErrHost))
		w.create(nil)
		time.Sleep(time.Minute)
		require.Equal(t, v1.ReasonHostFault, v1.FindCondition(w.want(v1.Installing).Status.Conditions, v1.Reconciled).Reason)
	})
}
