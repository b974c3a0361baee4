package container_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/runtime"
	"berth/store"
)

// TestConverges runs random histories, in which any call of the engine fails
// before or after it took effect and the daemon dies between any two steps. The
// final state must be the same as without failures.
func TestConverges(t *testing.T) {
	for seed := range uint64(100) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { converge(t, seed) })
		})
	}
}

func converge(t *testing.T, seed uint64) {
	w := newWorld(t)
	rng := rand.New(rand.NewPCG(seed, 1))
	faulty := true
	fail := func(text string) func(string, runtime.Name) error {
		return func(string, runtime.Name) error {
			if faulty && rng.IntN(8) == 0 {
				return errors.New(text)
			}
			return nil
		}
	}
	w.engine.Outside.Fail(fail("nothing was done"))
	w.engine.Outside.After(fail("it was done, and the answer was lost"))
	ended := map[runtime.Role]string{} // the spec hash of the last one that exited with 0
	exit := func(n runtime.Name, code int) {
		if s := w.engine.Outside.State(n); s.Running {
			ended[n.Role] = s.SpecHash
		}
		w.engine.Outside.Exit(n, code)
	}
	go w.rec.Preparations.Run(t.Context())
	w.create(nil)
	for range 150 {
		w.disturb(rng, exit)
		time.Sleep(time.Duration(rng.IntN(2000)) * time.Millisecond)
	}
	faulty = false
	if rng.IntN(2) == 0 {
		w.change(on)
	}
	for range 60 {
		w.step("mc")
		exit(installer, 0) // an installation exits
		time.Sleep(time.Minute)
	}
	w.checkEnd(seed, ended)
}

// disturb does one thing: mostly a step, otherwise a request or a change from outside.
func (w *world) disturb(rng *rand.Rand, exit func(runtime.Name, int)) {
	switch rng.IntN(50) {
	case 0, 1:
		w.change(on)
	case 2:
		w.change(off)
	case 3:
		w.change(kill)
	case 4:
		w.change(func(s *v1.ContainerSpec) { s.InstallGeneration++; off(s) })
	case 5:
		w.change(func(s *v1.ContainerSpec) {
			s.Ports = append(s.Ports, v1.Port{IP: "127.0.0.1", Port: 1000 + len(s.Ports), Protocol: "tcp"})
		})
	case 6, 7, 8, 9:
		exit(installer, 0)
	case 10:
		exit(server, rng.IntN(2))
	case 11:
		w.engine.Outside.Vanish(server)
	case 12:
		w.engine.Outside.Pause(server)
	case 13:
		_ = w.engine.Outside.StartOutside(server)
	default:
		w.step("mc")
	}
}

func (w *world) step(id string) {
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	defer cancel()
	_, _ = w.rec.Reconcile(ctx, id)
}

// checkEnd compares the spec, the status and the engine.
func (w *world) checkEnd(seed uint64, ended map[runtime.Role]string) {
	w.t.Helper()
	c, server := w.get(), w.engine.Outside.State(server)
	on := c.Spec.Power == v1.PowerOn
	for what, ok := range map[string]bool{
		"the installation asked for is the last that ended": c.Status.ObservedInstall == c.Spec.InstallGeneration && !c.Status.InstallFailed && ended[runtime.Install] == c.Spec.InstallHash(),
		"no installer is left":                              w.engine.Outside.State(installer).ContainerID == "",
		"it runs only if asked":                             !server.Running || on,
		"it runs, or it has run and ended well":             server.Running || !on || c.Status.ObservedRun == c.Spec.RunGeneration && c.Status.Phase == v1.Exit && c.Status.NextRetryAt == nil,
		"it runs as asked":                                  !server.Running || c.Status.ObservedRun == c.Spec.RunGeneration,
		"it is made as asked":                               server.ContainerID != "" && (server.Running || server.SpecHash == c.Spec.SpecHash()),
		"its phase is running if it runs":                   server.Running == (c.Status.Phase == v1.Running),
		"it is not paused":                                  !server.Paused,
		"its newest spec was observed":                      c.Status.ObservedGeneration == c.Meta.Generation,
		"its id is the engine's":                            c.Status.ContainerID == server.ContainerID,
	} {
		require.True(w.t, ok, "seed %d: not so: %s\nspec %+v\nstatus %+v\nserver %+v\nops %v", seed, what, c.Spec, c.Status, server, w.engine.Outside.Ops())
	}
	w.checkHistory(seed)
}

// checkHistory checks that every transition may follow the one before.
func (w *world) checkHistory(seed uint64) {
	w.t.Helper()
	before := map[string]string{
		"installing": "  exit ready failed ", "ready": " installing ", "starting": " ready exit running ",
		"running": " starting ", "stopping": " starting running exit ready ", "exit": " starting running stopping ",
	}
	last := ""
	for _, p := range w.phases() {
		require.Contains(w.t, before[p], " "+last+" ", "seed %d: %s after %q", seed, p, last)
		last = p
	}
	c, err := store.Containers.Get(w.store.Read(), "mc")
	require.Equal(w.t, last, string(c.Status.Phase))
	require.NoError(w.t, err)
}
