package intent_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"berth/api/intent"
	v1 "berth/api/v1"
	"berth/store"
)

func (w *world) apply(id string, request v1.ContainerSpec, o intent.ApplyOptions) (intent.Applied, error) {
	return intent.ApplyContainer(w.store, intent.Policy{}, id, request, o)
}

func TestApplyCreates(t *testing.T) {
	w := newWorld(t)
	request := w.spec(1000)
	request.Power = v1.PowerOn
	w.unchanged(func() {
		done, err := w.apply("mc", request, intent.ApplyOptions{DryRun: true})
		require.NoError(t, err)
		require.Equal(t, []v1.Action{{Action: "create", Reason: "there is no such container"}, {Action: "start", Reason: "power is running"}}, done.Actions)
	})
	done, err := w.apply("mc", request, intent.ApplyOptions{})
	require.NoError(t, err)
	require.True(t, done.Created)
	require.EqualValues(t, 1, w.get("mc").Spec.InstallGeneration)
	require.EqualValues(t, 1, w.get("mc").Spec.RunGeneration)
	require.Equal(t, "mc", string(w.port(1000, "tcp").Container))
	w.unchanged(func() {
		done, err := w.apply("mc", request, intent.ApplyOptions{})
		require.NoError(t, err)
		require.False(t, done.Created || done.Changed())
	})
}

func TestApplyChanges(t *testing.T) {
	running := func(w *world) {
		w.create("mc", 1000)
		w.installed("mc")
		require.NoError(w.t, intent.Power(w.store, "mc", intent.Start))
		w.ran("mc", v1.Running)
	}
	for name, c := range map[string]struct {
		change  func(*v1.ContainerSpec)
		actions []v1.Action
		run     uint64
		power   v1.Power
	}{
		"nothing": {func(*v1.ContainerSpec) {}, nil, 1, v1.PowerOn},
		"live": {func(s *v1.ContainerSpec) { s.StartPattern = "done" },
			[]v1.Action{{Action: "update", Reason: "start_pattern changed"}}, 1, v1.PowerOn},
		"re-create": {func(s *v1.ContainerSpec) { s.Image, s.Ports = "other:1", tcp(1001) },
			[]v1.Action{{Action: "recreate", Reason: "image, ports changed"}}, 2, v1.PowerOn},
		"stop": {func(s *v1.ContainerSpec) { s.Power = v1.PowerOff },
			[]v1.Action{{Action: "stop", Reason: "power is stopped"}}, 1, v1.PowerOff},
		"stop and re-create": {func(s *v1.ContainerSpec) { s.Power, s.User = v1.PowerOff, "x" },
			[]v1.Action{{Action: "recreate", Reason: "user changed"}, {Action: "stop", Reason: "power is stopped"}}, 1, v1.PowerOff},
		"script": {func(s *v1.ContainerSpec) { s.InstallScript = new("true") },
			[]v1.Action{{Action: "update", Reason: "install_script changed"}}, 1, v1.PowerOn},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			running(w)
			request := w.spec(1000)
			c.change(&request)
			w.unchanged(func() {
				dry, err := w.apply("mc", request, intent.ApplyOptions{DryRun: true})
				require.NoError(t, err)
				require.Equal(t, c.actions, dry.Actions)
			})
			done, err := w.apply("mc", request, intent.ApplyOptions{})
			require.NoError(t, err)
			require.Equal(t, c.actions, done.Actions)
			spec := w.get("mc").Spec
			require.Equal(t, c.run, spec.RunGeneration)
			require.Equal(t, c.power, spec.Power)
			require.EqualValues(t, 1, spec.InstallGeneration)
			for port := 1000; port < 1002; port++ {
				require.Equal(t, spec.Ports[0].Port == port, w.port(port, "tcp").Container == "mc")
			}
			w.unchanged(func() {
				again, err := w.apply("mc", request, intent.ApplyOptions{})
				require.NoError(t, err)
				require.False(t, again.Changed())
			})
		})
	}
}

func TestApplyKeepsTheScript(t *testing.T) {
	w := newWorld(t)
	spec := w.spec()
	spec.InstallScript = new("secret")
	require.NoError(t, intent.CreateContainer(w.store, intent.Policy{}, "mc", spec))
	w.unchanged(func() {
		_, err := w.apply("mc", w.spec(), intent.ApplyOptions{})
		require.NoError(t, err)
	})
	spec.InstallScript = new("")
	_, err := w.apply("mc", spec, intent.ApplyOptions{})
	require.NoError(t, err)
	require.Empty(t, w.get("mc").Spec.Script())
}

func TestApplyStartsStopped(t *testing.T) {
	w := newWorld(t)
	w.create("mc")
	w.installed("mc")
	request := w.spec()
	request.Power, request.Image = v1.PowerOn, "other:1"
	_, err := w.apply("mc", request, intent.ApplyOptions{})
	require.NoError(t, err)
	require.EqualValues(t, 1, w.get("mc").Spec.RunGeneration, "one run, not two")
	w.ran("mc", v1.Exit)
	w.unchanged(func() {
		_, err := w.apply("mc", request, intent.ApplyOptions{})
		require.NoError(t, err, "an exited run is not repeated")
	})
}

func TestApplyIfMatch(t *testing.T) {
	w := newWorld(t)
	refused := v1.Errorf(v1.Precondition, "If-Match does not name the container's resource_version")
	_, err := w.apply("mc", w.spec(), intent.ApplyOptions{IfMatch: "*"})
	require.Equal(t, refused, err, "there is none to match")
	w.create("mc")
	revision := w.get("mc").Meta.Revision
	for header, ok := range map[string]bool{
		"*": true, fmt.Sprint(revision): true, fmt.Sprintf(`"%d"`, revision): true, fmt.Sprintf(`"1", "%d"`, revision): true,
		fmt.Sprint(revision - 1): false, `""`: false, "x": false,
	} {
		_, err := w.apply("mc", w.spec(), intent.ApplyOptions{IfMatch: header})
		require.Equal(t, ok, err == nil, header)
	}
	w.installed("mc")
	_, err = w.apply("mc", w.spec(), intent.ApplyOptions{IfMatch: fmt.Sprint(revision)})
	require.Equal(t, refused, err, "the status has changed since")
}

func TestApplyRefusals(t *testing.T) {
	w := newWorld(t)
	w.create("other", 1005)
	w.unchanged(func() {
		_, err := w.apply("mc", w.spec(1005), intent.ApplyOptions{})
		require.EqualError(t, err, "Port is already bound by container other")
		_, err = w.apply("mc", w.spec(5), intent.ApplyOptions{DryRun: true})
		require.Equal(t, v1.ErrPortNotInPool, err)
		_, err = w.apply("mc", v1.ContainerSpec{}, intent.ApplyOptions{})
		require.EqualError(t, err, "image: is required; volume_id: is required")
	})
	require.NoError(t, intent.DeleteContainer(w.store, "other"))
	_, err := w.apply("other", w.spec(), intent.ApplyOptions{})
	require.ErrorIs(t, err, &v1.Error{Code: v1.ContainerDeleting})
}

// TestReservedVolume: while a transfer or an arrival has a volume, no other container gets it, and nothing of it changes that the
// other node has, or is sent.
func TestReservedVolume(t *testing.T) {
	w := newWorld(t)
	w.create("mc")
	volume, err := intent.CreateVolume(w.store, v1.VolumeSpec{})
	require.NoError(t, err)
	spec := w.spec()
	spec.VolumeID = volume
	policy := v1.PolicySpec{Every: v1.Duration(time.Hour), Keep: 1}
	require.NoError(t, intent.PutPolicy(w.store, volume, policy))
	for _, by := range []string{v1.ByArrival("a"), v1.ByTransfer("a")} {
		require.NoError(t, w.store.Update(func(tx *store.Tx) error { return store.Reserve(tx, by, volume) }))
		w.unchanged(func() {
			_, err := w.apply("mc", spec, intent.ApplyOptions{})
			require.ErrorIs(t, err, v1.ErrTransferring)
			_, err = w.apply("other", spec, intent.ApplyOptions{DryRun: true})
			require.ErrorIs(t, err, v1.ErrTransferring)
			require.ErrorIs(t, intent.CreateContainer(w.store, intent.Policy{}, "other", spec), v1.ErrTransferring)
			require.ErrorIs(t, intent.PutPolicy(w.store, volume, policy), v1.ErrTransferring)
			require.ErrorIs(t, intent.DeletePolicy(w.store, volume), v1.ErrTransferring)
			require.ErrorIs(t, intent.ChangeVolume(w.store, volume, v1.VolumeChange{Name: new("x")}), v1.ErrTransferring)
		})
		require.NoError(t, w.store.Update(func(tx *store.Tx) error { return store.EndRestore(tx, by, volume) }))
	}
	_, err = w.apply("mc", spec, intent.ApplyOptions{})
	require.NoError(t, err)
	require.NoError(t, intent.DeletePolicy(w.store, volume))
}

// TestApplyAtNextStart: a run goes on, and what waits is applied by a later apply without the
// option, even if its spec is the stored one.
func TestApplyAtNextStart(t *testing.T) {
	w := newWorld(t)
	w.create("mc", 1000)
	w.installed("mc")
	request := w.spec(1000)
	request.Image = "other:1"
	later := intent.ApplyOptions{NextStart: true}
	done, err := w.apply("mc", request, later)
	require.NoError(t, err)
	require.Equal(t, []v1.Action{{Action: "recreate", Reason: "image changed"}}, done.Actions, "nothing runs")

	require.NoError(t, intent.Power(w.store, "mc", intent.Start))
	w.ran("mc", v1.Running)
	request.Image, request.StartPattern, request.Limits.Memory = "third:1", "done", 1<<30
	w.unchanged(func() {
		done, err := w.apply("mc", request, intent.ApplyOptions{NextStart: true, DryRun: true})
		require.NoError(t, err)
		require.Equal(t, []v1.Action{{Action: "update", Reason: "image, limits, start_pattern changed; image, limits at the next start"}}, done.Actions)
	})
	_, err = w.apply("mc", request, later)
	require.NoError(t, err)
	request.Env = map[string]string{"A": "1"}
	_, err = w.apply("mc", request, later)
	require.NoError(t, err)
	require.Equal(t, []string{"env", "image", "limits"}, w.get("mc").Spec.Deferred)
	require.EqualValues(t, 1, w.get("mc").Spec.RunGeneration)
	w.unchanged(func() {
		done, err := w.apply("mc", request, later)
		require.NoError(t, err)
		require.False(t, done.Changed())
	})

	now := func(pending string) []v1.Action {
		w.observe("mc", func(s *v1.ContainerStatus) {
			s.ObservedGeneration = w.get("mc").Meta.Generation
			s.Conditions = v1.SetCondition(nil, v1.Condition{Type: v1.Pending, Status: pending}, time.Now())
		})
		done, err := w.apply("mc", request, intent.ApplyOptions{DryRun: true})
		require.NoError(t, err)
		return done.Actions
	}
	require.Empty(t, now(v1.False), "a start has applied it")
	require.Equal(t, []v1.Action{{Action: "recreate", Reason: "env, image, limits waited for the next start"}}, now(v1.True))
	_, err = w.apply("mc", request, intent.ApplyOptions{})
	require.NoError(t, err)
	require.EqualValues(t, 2, w.get("mc").Spec.RunGeneration)
	require.Empty(t, w.get("mc").Spec.Deferred)
}
