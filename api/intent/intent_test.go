package intent_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"berth/api/intent"
	v1 "berth/api/v1"
	"berth/store"
)

// world is a store with a volume and a pool of ports 1000 to 1009 of both
// protocols on 10.0.0.1.
type world struct {
	t      testing.TB
	store  *store.Store
	volume string
}

func newWorld(t testing.TB) *world {
	t.Helper()
	s, err := store.Open("", store.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	w := &world{t: t, store: s}
	w.volume, err = intent.CreateVolume(s, v1.VolumeSpec{})
	require.NoError(t, err)
	for _, protocol := range []string{"tcp", "udp"} {
		var f v1.FieldErrors
		wanted := intent.CheckPorts(&f, "10.0.0.1", "1000-1009", protocol)
		require.NoError(t, f.Err())
		require.NoError(t, intent.AddPorts(s, wanted))
	}
	return w
}

func tcp(ports ...int) []v1.Port {
	var list []v1.Port
	for _, port := range ports {
		list = append(list, v1.Port{IP: "10.0.0.1", Port: port, Protocol: "tcp"})
	}
	return list
}

func (w *world) spec(ports ...int) v1.ContainerSpec {
	return v1.ContainerSpec{Image: "busybox:1", VolumeID: w.volume, Ports: tcp(ports...)}
}

func (w *world) create(id string, ports ...int) {
	w.t.Helper()
	require.NoError(w.t, intent.CreateContainer(w.store, intent.Policy{}, id, w.spec(ports...)))
}

func (w *world) get(id string) v1.Container {
	w.t.Helper()
	o, err := store.Containers.Get(w.store.Read(), id)
	require.NoError(w.t, err)
	return o
}

// observe plays the controller.
func (w *world) observe(id string, change func(*v1.ContainerStatus)) {
	w.t.Helper()
	require.NoError(w.t, w.store.Update(func(tx *store.Tx) error {
		return store.Containers.SetStatus(tx, id, change)
	}))
}

// installed records the success of the requested installation.
func (w *world) installed(id string) {
	install := w.get(id).Spec.InstallGeneration
	w.observe(id, func(s *v1.ContainerStatus) { s.Phase, s.ObservedInstall = v1.Ready, install })
}

// ran records the start of the requested run, and sets the phase.
func (w *world) ran(id string, phase v1.Phase) {
	run := w.get(id).Spec.RunGeneration
	w.observe(id, func(s *v1.ContainerStatus) { s.Phase, s.ObservedRun = phase, run })
}

func (w *world) port(port int, protocol string) v1.PoolPort {
	w.t.Helper()
	e, err := intent.GetPort(w.store.Read(), v1.PortRef{IP: "10.0.0.1", Port: port, Protocol: protocol})
	require.NoError(w.t, err)
	return e
}

// unchanged runs do and checks that the store did not change.
func (w *world) unchanged(do func()) {
	w.t.Helper()
	before := w.store.Revision()
	do()
	require.Equal(w.t, before, w.store.Revision(), "the store has changed")
}
