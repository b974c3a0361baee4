package container_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"berth/api/intent"
	v1 "berth/api/v1"
	"berth/runtime"
	"berth/runtime/fake"
	"berth/store"
)

// TestRandomWalk is TestConverges with more of everything: containers that share
// volumes, every request of a client, images and disk space that come and go, a
// host that boots, and all of it also in the middle of a step. Once the faults
// stop, each container must reach its spec, report it, and rest.
func TestRandomWalk(t *testing.T) {
	seeds := uint64(25)
	if os.Getenv("BERTH_LONG") != "" {
		seeds = 2000
	}
	for seed := range seeds {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { walk(t, seed) })
		})
	}
}

var walkers = []string{"a", "b", "c"}

// walker is a world with random requests and faults.
type walker struct {
	*world
	*rand.Rand
	volumes []string
	faulty  bool
	within  bool // something happens in the middle of a step
}

func walk(t *testing.T, seed uint64) {
	w := &walker{world: newWorld(t), Rand: rand.New(rand.NewPCG(seed, 2))}
	w.engine.Outside.Fail(w.fault("nothing was done"))
	w.engine.Outside.After(w.fault("it was done, and the answer was lost"))
	for range 2 {
		id, err := intent.CreateVolume(w.store, v1.VolumeSpec{SizeLimit: 1000})
		require.NoError(t, err)
		w.volumes = append(w.volumes, id)
	}
	go w.rec.Pulls.Run(t.Context())
	go w.rec.Preparations.Run(t.Context())
	for range 2 {
		w.faulty = true
		for range 300 {
			w.act(w.pick(walkers...))
			time.Sleep(time.Duration(w.IntN(1500)) * time.Millisecond)
			synctest.Wait()
		}
		w.faulty = false
		w.rest()
	}
}

func (w *walker) pick(of ...string) string { return of[w.IntN(len(of))] }

// fault returns a hook that fails calls of the engine, and acts before them, at random.
func (w *walker) fault(text string) func(string, runtime.Name) error {
	return func(op string, n runtime.Name) error {
		if op == "pull" || !w.faulty {
			return nil
		}
		if !w.within && w.IntN(8) == 0 {
			w.within = true
			w.act(n.ID)
			w.within = false
		}
		if w.IntN(10) == 0 {
			return fmt.Errorf("%s: %w", text, runtime.ErrUnavailable)
		}
		return nil
	}
}

// act does one thing: mostly a step, otherwise a request or a change from outside.
func (w *walker) act(id string) {
	server, installer := runtime.Name{ID: id, Role: runtime.Server}, runtime.Name{ID: id, Role: runtime.Install}
	acts := []func(){
		func() { _ = intent.Power(w.store, id, intent.Start) },
		func() { _ = intent.Power(w.store, id, intent.Stop) },
		func() { _ = intent.Power(w.store, id, intent.Kill) },
		func() { _ = intent.Power(w.store, id, intent.Restart) },
		func() { _ = intent.ReinstallContainer(w.store, id, v1.ReinstallRequest{}) },
		func() {
			if w.IntN(8) == 0 {
				_ = intent.DeleteContainerAndVolume(w.store, id)
				return
			}
			_ = intent.DeleteContainer(w.store, id)
		},
		func() { w.apply(id) }, func() { w.apply(id) }, func() { w.apply(id) },
		func() { w.engine.Outside.Exit(server, w.IntN(2)) },
		func() { w.engine.Outside.Exit(installer, w.IntN(2)) }, func() { w.engine.Outside.Exit(installer, 0) }, func() { w.engine.Outside.Exit(installer, 0) },
		func() { w.engine.Outside.HoldStart(server); w.engine.Outside.HoldStart(installer) },
		func() { w.engine.Outside.ReleaseStart(server); w.engine.Outside.ReleaseStart(installer) },
		func() { w.engine.Outside.Lose(server); w.engine.Outside.Lose(installer) },
		func() { w.engine.Outside.Find(server); w.engine.Outside.Find(installer) },
		func() { w.engine.Outside.Interrupt(server) }, func() { w.engine.Outside.Interrupt(installer) },
		func() { w.engine.Outside.Vanish(server) },
		func() { w.engine.Outside.Vanish(installer) },
		func() { _ = w.engine.Outside.StartOutside(server) },
		func() { _ = w.engine.Outside.StartOutside(installer) },
		func() { w.engine.Outside.Exit(server, 1); _ = w.engine.Outside.StartOutside(server) },
		func() { w.engine.Outside.Pause(server); w.engine.Outside.Pause(installer) },
		func() { w.engine.Outside.Deafen(server) },
		func() { w.engine.Outside.RemoveImage("i") },
		func() { fake.PushImage(w.engine.Outside, w.pick("i", "j")) },
		func() { w.engine.Outside.RefusePull("j", errors.New(w.pick("no route", "no answer"))) },
		func() { w.fill(int64(w.IntN(2) * 2000)) },
		func() { w.boot() }, func() { w.restartEngine() },
		func() { w.console.held.Store(w.IntN(2) == 0); w.console.unread.Store(w.IntN(4) == 0) },
	}
	if !w.within && w.IntN(4) > 0 {
		w.step(id)
		return
	}
	acts[w.IntN(len(acts))]()
}

func (w *walker) apply(id string) {
	_, _ = intent.ApplyContainer(w.store, intent.Policy{}, id, v1.ContainerSpec{
		PullPolicy: v1.PullPolicy(w.pick("", "", "always")),
		Image:      w.pick("i", "i", "j"), InstallImage: w.pick("", "", "j"), VolumeID: w.pick(w.volumes...), InstallScript: new(w.pick("", "true")),
		Workdir: w.pick("", "/a", "/b"), Limits: v1.Limits{Memory: int64(w.IntN(3)) << 26}, Power: v1.Power(w.pick("", "running", "stopped")),
		RestartPolicy: v1.RestartPolicy{Mode: v1.RestartOnFailure}}, intent.ApplyOptions{})
}

// fill sets the usage of a volume whose limit is 1000 bytes.
func (w *walker) fill(size int64) {
	_ = w.store.Update(func(tx *store.Tx) error {
		return store.Volumes.SetStatus(tx, w.pick(w.volumes...), func(s *v1.VolumeStatus) { s.Size = size })
	})
}

func (w *walker) boot() {
	w.rec.BootID += "+"
	for _, id := range walkers {
		w.engine.Outside.Exit(runtime.Name{ID: id, Role: runtime.Server}, w.IntN(2))
		w.engine.Outside.Exit(runtime.Name{ID: id, Role: runtime.Install}, 137)
	}
}

// restartEngine stops the engine gracefully. Steps go on in between.
func (w *walker) restartEngine() {
	host := w.engine.Outside.Host()
	[]func(){host.Shutdown, host.ShutdownSilently}[w.IntN(2)]()
	for _, id := range walkers {
		w.step(id)
		w.engine.Outside.Exit(runtime.Name{ID: id, Role: runtime.Server}, w.IntN(2))
		w.engine.Outside.Exit(runtime.Name{ID: id, Role: runtime.Install}, w.IntN(2))
		w.step(id)
	}
	host.Down()
	w.step(w.pick(walkers...))
	host.Boot()
}

// rest stops all faults, and checks the final state.
func (w *walker) rest() {
	w.console.held.Store(false)
	w.console.unread.Store(false)
	w.engine.Outside.AddImage("i")
	w.engine.Outside.RefusePull("j", nil)
	for range 20 {
		w.fill(0) // all of them
	}
	for _, id := range walkers {
		for _, role := range []runtime.Role{runtime.Server, runtime.Install} {
			w.engine.Outside.Find(runtime.Name{ID: id, Role: role})
			w.engine.Outside.ReleaseStart(runtime.Name{ID: id, Role: role})
		}
	}
	ops := 0
	for minute := range 40 {
		if minute == 35 {
			ops = len(w.engine.Outside.Ops())
		}
		for _, id := range walkers {
			for range 6 {
				w.step(id)
			}
			w.engine.Outside.Exit(runtime.Name{ID: id, Role: runtime.Install}, 0)
		}
		time.Sleep(time.Minute)
	}
	for _, id := range walkers {
		w.checkRest(id)
	}
	require.Len(w.t, w.engine.Outside.Ops(), ops, "it rests")
}

func (w *walker) checkRest(id string) {
	c, err := store.Containers.Get(w.store.Read(), id)
	server := w.engine.Outside.State(runtime.Name{ID: id, Role: runtime.Server})
	st, on := c.Status, c.Spec.Power == v1.PowerOn
	is := func(kind string) string { return v1.FindCondition(st.Conditions, kind).Status }
	ended := st.Phase == v1.Exit && st.ExitCode != nil && *st.ExitCode == 0 && st.NextRetryAt == nil
	rules := map[string]bool{
		"its newest spec was observed":        st.ObservedGeneration == c.Meta.Generation && st.ObservedInstall == c.Spec.InstallGeneration,
		"it runs only if asked":               !server.Running || on && !st.InstallFailed && st.ObservedRun == c.Spec.RunGeneration,
		"it runs, or has ended well":          server.Running || !on || st.InstallFailed || ended && st.ObservedRun == c.Spec.RunGeneration,
		"it is made as asked":                 st.InstallFailed || server.SpecHash == c.Spec.SpecHash() && server.Live.Memory == c.Spec.Limits.Memory,
		"its phase is running if it runs":     server.Running == (st.Phase == v1.Running) && !server.Paused,
		"the recorded run is the one it runs": !server.Running || st.StartedAt != nil && st.StartedAt.Equal(server.StartedAt),
		"its id is the engine's":              st.InstallFailed || st.ContainerID == server.ContainerID,
		"no stale message or condition":       st.NextRetryAt == nil && (st.Message == "" || !server.Running) && is(v1.DiskPressure) != v1.True,
		"its image is there, its limits, too": st.InstallFailed || is(v1.ImageAvailable) == v1.True && is(v1.LimitsApplied) != v1.False,
	}
	if errors.Is(err, store.ErrNotFound) {
		rules = map[string]bool{"nothing is left": server.ContainerID == ""}
	}
	rules["no installer is left"] = w.engine.Outside.State(runtime.Name{ID: id, Role: runtime.Install}).ContainerID == ""
	for what, ok := range rules {
		require.True(w.t, ok, "%s: not so: %s\nspec %+v\nmeta %+v\nstatus %+v\nserver %+v", id, what, c.Spec, c.Meta, st, server)
	}
}
