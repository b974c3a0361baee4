package container_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/controller/container"
	"berth/runtime"
	"berth/store"
)

// metrics returns the series of container mc whose value is not 0, by name and labels.
func (w *world) metrics() map[string]float64 {
	w.t.Helper()
	reg := prometheus.NewRegistry()
	container.Register(reg, w.rec.Metrics, w.store)
	families, err := reg.Gather()
	require.NoError(w.t, err)
	got := map[string]float64{}
	for _, f := range families {
		name := strings.TrimPrefix(f.GetName(), "berth_container_")
		for _, m := range f.GetMetric() {
			name := name + labels(m)
			value := m.GetGauge().GetValue() + m.GetCounter().GetValue()
			if value != 0 && f.GetName() != "berth_containers" && name != "next_retry_timestamp_seconds" {
				got[name] = value
			}
		}
	}
	return got
}

// labels returns the values of a metric's labels without the container.
func labels(m *dto.Metric) (text string) {
	for _, l := range m.GetLabel() {
		if l.GetName() != "container" {
			text += " " + l.GetValue()
		}
	}
	return text
}

func TestMetricsOfALife(t *testing.T) {
	live(t, func(w *world) {
		w.installed(nil)
		time.Sleep(5 * time.Second)
		require.Equal(t, map[string]float64{"state_seconds ready": 5}, w.metrics())

		agree := w.refuse("start", server, runtime.ErrPortTaken)
		w.change(on)
		time.Sleep(25 * time.Second) // attempts at 0, 10 and 30 s
		require.Equal(t, map[string]float64{"state_seconds exit": 15, "unready_seconds PortTaken": 25, "restarts_total": 1}, w.metrics(),
			"an attempt does not begin the time anew, and is no crash")
		agree()
		time.Sleep(10 * time.Second)
		require.Equal(t, map[string]float64{"state_seconds running": 5, "restarts_total": 2}, w.metrics())

		w.engine.Outside.Exit(server, 1)
		time.Sleep(5 * time.Second)
		require.Equal(t, map[string]float64{"state_seconds exit": 5, "unready_seconds Exited": 5, "crashes_total": 1, "restarts_total": 2}, w.metrics())
		w.change(on)
		w.engine.Outside.OOM(server)
		time.Sleep(time.Second)
		require.Equal(t, map[string]float64{"state_seconds exit": 1, "unready_seconds OutOfMemory": 1,
			"crashes_total": 2, "oom_kills_total": 1, "restarts_total": 2}, w.metrics())
		w.change(off)
		require.NotContains(t, w.metrics(), "unready_seconds OutOfMemory", "nobody wants it to run")
		require.NoError(t, w.store.Update(func(tx *store.Tx) error { return store.Containers.Delete(tx, "mc") }))
		time.Sleep(time.Minute)
		require.Empty(t, w.metrics())
	})
}

// cause is why a container entered a state.
type cause struct {
	from   v1.Phase
	reason string
	code   int // -1: none
}

// causes returns the cause of the last transition to each state.
func causes(w *world) map[string]cause {
	w.t.Helper()
	got := map[string]cause{}
	list, err := store.ReadEvents(w.store.Read(), 0, 100)
	for _, e := range list {
		if e.Event != v1.EventState {
			continue
		}
		c := cause{e.From, e.Reason, -1}
		if e.ExitCode != nil {
			c.code = *e.ExitCode
		}
		got[e.Data] = c
	}
	require.NoError(w.t, err)
	return got
}

// TestEventsNameTheCause: a transition has the state before it, a reason and an exit code.
func TestEventsNameTheCause(t *testing.T) {
	live(t, func(w *world) {
		w.installed(nil)
		w.change(on)
		require.Equal(t, cause{v1.Starting, "", -1}, causes(w)["running"])
		w.engine.Outside.Exit(server, 3)
		w.want(v1.Exit)
		require.Equal(t, cause{v1.Running, "Exited", 3}, causes(w)["exit"])
		w.change(func(s *v1.ContainerSpec) { s.InstallGeneration++; off(s) })
		w.engine.Outside.Exit(installer, 4)
		w.want(v1.Failed)
		require.Equal(t, cause{v1.Installing, "ExitCode", 4}, causes(w)["failed"])
	})
}

// TestExitByRemoval: the container of a run was removed from outside.
func TestExitByRemoval(t *testing.T) {
	live(t, func(w *world) {
		w.installed(nil)
		w.change(on)
		w.engine.Outside.Vanish(server)
		w.want(v1.Running)
		require.Equal(t, "Removed", causes(w)["exit"].reason)
	})
}

// TestExitOfEngineOrHost: the reason of an exit names the engine's or the host's restart.
func TestExitOfEngineOrHost(t *testing.T) {
	for reason, boot := range map[string]string{"EngineRestarted": "boot", "HostRestarted": "next"} {
		t.Run(reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				stop := w.run()
				w.installed(nil)
				w.change(on)
				stop()
				host := w.engine.Outside.Host()
				host.Shutdown()
				w.engine.Outside.Exit(server, 0)
				host.Down()
				host.Boot()
				w.rec.BootID = boot
				w.rec.ForgetMemory()
				defer w.run()()
				w.want(v1.Running)
				require.Equal(t, cause{v1.Running, reason, 0}, causes(w)["exit"])
			})
		})
	}
}
