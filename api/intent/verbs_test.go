package intent_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"berth/api/intent"
	v1 "berth/api/v1"
	"berth/store"
)

// TestVerbs walks through every verb in every situation: what it does to
// power, run and kill_run. Each verb is called twice; the second must change nothing.
func TestVerbs(t *testing.T) {
	type request struct {
		power     v1.Power
		run, kill uint64
	}
	off, on := v1.PowerOff, v1.PowerOn
	situations := map[string]struct {
		status v1.ContainerStatus
		power  v1.Power
		run    uint64
		want   map[string]request
	}{
		"installing": {v1.ContainerStatus{}, off, 0, map[string]request{
			"start": {on, 1, 0}, "restart": {on, 1, 0}, "stop": {off, 0, 0}, "kill": {off, 1, 1}}},
		"installing, start kept": {v1.ContainerStatus{}, on, 1, map[string]request{
			"start": {on, 1, 0}, "restart": {on, 1, 0}, "stop": {off, 1, 0}, "kill": {off, 1, 1}}},
		"ready": {v1.ContainerStatus{Phase: v1.Ready, ObservedInstall: 1}, off, 0, map[string]request{
			"start": {on, 1, 0}, "restart": {on, 1, 0}, "stop": {off, 0, 0}, "kill": {off, 1, 1}}},
		"starting": {v1.ContainerStatus{Phase: v1.Starting, ObservedInstall: 1, ObservedRun: 1}, on, 1, map[string]request{
			"start": {on, 1, 0}, "restart": {on, 2, 0}, "stop": {off, 1, 0}, "kill": {off, 1, 1}}},
		"running": {v1.ContainerStatus{Phase: v1.Running, ObservedInstall: 1, ObservedRun: 3}, on, 3, map[string]request{
			"start": {on, 3, 0}, "restart": {on, 4, 0}, "stop": {off, 3, 0}, "kill": {off, 3, 3}}},
		"stopping": {v1.ContainerStatus{Phase: v1.Stopping, ObservedInstall: 1, ObservedRun: 3}, off, 3, map[string]request{
			"start": {on, 4, 0}, "restart": {on, 4, 0}, "stop": {off, 3, 0}, "kill": {off, 3, 3}}},
		"stopping for a restart": {v1.ContainerStatus{Phase: v1.Stopping, ObservedInstall: 1, ObservedRun: 3}, on, 4, map[string]request{
			"start": {on, 4, 0}, "restart": {on, 4, 0}, "stop": {off, 4, 0}, "kill": {off, 4, 4}}},
		"exited": {v1.ContainerStatus{Phase: v1.Exit, ObservedInstall: 1, ObservedRun: 3}, on, 3, map[string]request{
			"start": {on, 4, 0}, "restart": {on, 4, 0}, "stop": {off, 3, 0}, "kill": {off, 3, 3}}},
		"stopped": {v1.ContainerStatus{Phase: v1.Exit, ObservedInstall: 1, ObservedRun: 3}, off, 3, map[string]request{
			"start": {on, 4, 0}, "restart": {on, 4, 0}, "stop": {off, 3, 0}, "kill": {off, 3, 3}}},
		"exit seen, start wanted": {v1.ContainerStatus{Phase: v1.Exit, ObservedInstall: 1, ObservedRun: 3}, on, 4, map[string]request{
			"start": {on, 4, 0}, "restart": {on, 4, 0}, "stop": {off, 4, 0}, "kill": {off, 4, 4}}},
		"install failed": {v1.ContainerStatus{Phase: v1.Failed, ObservedInstall: 1, InstallFailed: true, ObservedGeneration: 99}, on, 1, map[string]request{
			"start": {on, 1, 0}, "restart": {on, 1, 0}, "stop": {off, 1, 0}, "kill": {off, 1, 1}}},
	}
	for name, situation := range situations {
		for verb, want := range situation.want {
			t.Run(name+"/"+verb, func(t *testing.T) {
				w := newWorld(t)
				w.place("mc", situation.power, situation.run, situation.status)
				call := verbs(w)[verb]
				require.NoError(t, call("mc"))
				spec := w.get("mc").Spec
				require.Equal(t, want, request{spec.Power, spec.RunGeneration, spec.KillGeneration})
				w.unchanged(func() { require.NoError(t, call("mc")) })
			})
		}
	}
}

// place creates a container with the given power, run generation and status.
func (w *world) place(id string, power v1.Power, run uint64, status v1.ContainerStatus) {
	w.t.Helper()
	w.create(id, 1000)
	require.NoError(w.t, w.store.Update(func(tx *store.Tx) error {
		return store.Containers.SetSpec(tx, id, func(s *v1.ContainerSpec) error {
			s.Power, s.RunGeneration = power, run
			return nil
		})
	}))
	w.observe(id, func(s *v1.ContainerStatus) { *s = status })
}

func TestReinstall(t *testing.T) {
	w := newWorld(t)
	w.create("mc", 1000)
	w.installed("mc")
	require.NoError(t, intent.Power(w.store, "mc", intent.Start))
	w.ran("mc", v1.Running)
	script := "echo hi"
	require.NoError(t, intent.ReinstallContainer(w.store, "mc", v1.ReinstallRequest{InstallScript: &script}))
	spec := w.get("mc").Spec
	require.EqualValues(t, 2, spec.InstallGeneration)
	require.Equal(t, v1.PowerOff, spec.Power)
	require.Equal(t, "busybox:1", spec.Image, "an absent field stays")
	require.Equal(t, script, spec.Script())

	image := "other:2"
	require.NoError(t, intent.ReinstallContainer(w.store, "mc", v1.ReinstallRequest{Image: &image}))
	spec = w.get("mc").Spec
	require.EqualValues(t, 3, spec.InstallGeneration, "a current installation begins anew")
	require.Equal(t, image, spec.Image)
	require.Equal(t, script, spec.Script())

	bad := ""
	require.EqualError(t, intent.ReinstallContainer(w.store, "mc", v1.ReinstallRequest{Image: &bad}), "image: is required")
}

func TestRebind(t *testing.T) {
	w := newWorld(t)
	w.create("mc", 1000, 1001)
	w.create("other", 1005)
	require.Equal(t, v1.ErrStillInstalling, intent.RebindNetwork(w.store, "mc", tcp(1002)))
	w.installed("mc")
	require.NoError(t, intent.MarkPort(w.store, v1.PortRef{IP: "10.0.0.1", Port: 1003}))
	require.NoError(t, intent.RebindNetwork(w.store, "mc", tcp(1001, 1002, 1003)))
	for port, container := range map[int]string{1000: "", 1001: "mc", 1002: "mc", 1003: "mc", 1004: "", 1005: "other"} {
		require.Equal(t, container, string(w.port(port, "tcp").Container), port)
		require.Equal(t, container != "", w.port(port, "tcp").InUse, port)
	}
	require.Equal(t, tcp(1001, 1002, 1003), w.get("mc").Spec.Ports)
	require.Zero(t, w.get("mc").Spec.RunGeneration, "a stopped container stays stopped")

	w.unchanged(func() {
		require.EqualError(t, intent.RebindNetwork(w.store, "mc", tcp(1005)), "Port is already bound by container other")
		require.Equal(t, v1.ErrPortNotInPool, intent.RebindNetwork(w.store, "mc", tcp(2000)))
		require.EqualError(t, intent.RebindNetwork(w.store, "mc", tcp(1000, 1000)), "ports[1]: is the same binding twice")
	})
	require.NoError(t, intent.RebindNetwork(w.store, "mc", nil))
	require.Empty(t, w.port(1001, "tcp").Container)

	require.NoError(t, intent.ReinstallContainer(w.store, "mc", v1.ReinstallRequest{}))
	require.Equal(t, v1.ErrStillInstalling, intent.RebindNetwork(w.store, "mc", tcp(1002)), "also before its controller has seen it")
}

func TestRebindRestartsRun(t *testing.T) {
	for phase, restarts := range map[v1.Phase]bool{v1.Starting: true, v1.Running: true, v1.Exit: false} {
		w := newWorld(t)
		w.create("mc", 1000)
		w.installed("mc")
		require.NoError(t, intent.Power(w.store, "mc", intent.Start))
		w.ran("mc", phase)
		before := w.get("mc").Spec.RunGeneration
		require.NoError(t, intent.RebindNetwork(w.store, "mc", tcp(1001)))
		require.Equal(t, restarts, w.get("mc").Spec.RunGeneration == before+1, phase)
		w.unchanged(func() { require.NoError(t, intent.RebindNetwork(w.store, "mc", tcp(1001))) })
	}
}

// TestPowerOnAFullDisk: a container can be stopped and killed, and not started.
func TestPowerOnAFullDisk(t *testing.T) {
	dir := t.TempDir()
	s, err := store.Open(dir, store.Options{})
	require.NoError(t, err)
	require.NoError(t, s.Update(func(tx *store.Tx) error {
		return store.Containers.Create(tx, "mc", v1.ContainerSpec{Power: v1.PowerOn, RunGeneration: 1})
	}))
	require.NoError(t, s.Close())
	s, err = store.Open(dir, store.Options{MinFree: 1 << 62})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	for _, verb := range []intent.Verb{intent.Stop, intent.Kill} {
		require.NoError(t, intent.Power(s, "mc", verb))
	}
	for _, verb := range []intent.Verb{intent.Start, intent.Restart} {
		require.ErrorIs(t, intent.Power(s, "mc", verb), store.ErrDiskFull)
	}
}
