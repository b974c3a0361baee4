package container_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/controller/container"
	"berth/runtime"
	"berth/runtime/fake"
	"berth/store"
)

func TestFailingPullBacksOff(t *testing.T) {
	live(t, func(w *world) {
		w.engine.Outside.RefusePull("far", errors.New("connection refused"))
		w.create(func(s *v1.ContainerSpec) { s.Image = "far" })
		time.Sleep(time.Hour)
		n := w.count("pull", runtime.Name{ID: "far"})
		require.Less(t, n, 25)
		require.Greater(t, n, 10)
		require.Contains(t, w.want(v1.Installing).Status.Message, "connection refused; berth tries again")
	})
}

func TestPrunedImageIsPulledRarely(t *testing.T) {
	live(t, func(w *world) {
		w.installed(nil)
		w.engine.Outside.RemoveImage("i")
		w.engine.Outside.RefusePull("i", runtime.ErrImageNotFound)
		w.engine.Outside.Vanish(server)
		time.Sleep(time.Hour)
		require.Less(t, w.count("pull", runtime.Name{ID: "i"}), 80) // the resync asks each minute
		w.engine.Outside.AddImage("i")
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		require.NotEmpty(t, w.engine.Outside.State(server).ContainerID)
	})
}

func TestPullResultIsNotReusedForNewContainer(t *testing.T) {
	live(t, func(w *world) {
		release := w.engine.Outside.HoldPull("late")
		w.engine.Outside.RefusePull("late", runtime.ErrImageNotFound)
		w.create(func(s *v1.ContainerSpec) { s.Image = "late" })
		require.NoError(t, w.store.Update(func(tx *store.Tx) error { return store.Containers.Delete(tx, "mc") }))
		require.True(t, w.gone())
		release()
		time.Sleep(time.Hour)
		w.engine.Outside.RefusePull("late", nil)
		w.create(func(s *v1.ContainerSpec) { s.Image = "late" })
		time.Sleep(time.Minute)
		w.engine.Outside.Exit(installer, 0)
		w.want(v1.Ready)
	})
}

// TestRefreshResultIsReturnedOnce asks again after the result: the tag may have moved.
func TestRefreshResultIsReturnedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := fake.New(time.Now)
		engine.Outside.AddImage("i")
		p := container.NewPuller(engine, 1, slog.New(slog.DiscardHandler))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); _ = p.Run(ctx) }()
		synctest.Wait()
		pulls := func() (n int) {
			for _, op := range engine.Outside.Ops() {
				if op.Op == "pull" {
					n++
				}
			}
			return n
		}
		for i := range 3 {
			require.False(t, p.Refresh("mc", "i", runtime.Auth{}).Done, "a new pull")
			synctest.Wait()
			require.True(t, p.Refresh("mc", "i", runtime.Auth{}).Done)
			require.Equal(t, i+1, pulls())
		}
		cancel()
		<-done
	})
}

// TestRepeatedPullFailuresAreLoggedSeldom counts the lines of a registry that is away for an
// hour, answers something else, and comes back.
func TestRepeatedPullFailuresAreLoggedSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		engine := fake.New(time.Now)
		p := container.NewPuller(engine, 1, slog.New(slog.NewTextHandler(&log, nil)))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); _ = p.Run(ctx) }()
		synctest.Wait()
		pull := func(attempts int) (got container.Pull) {
			for range attempts {
				p.Request("mc", "far", runtime.Auth{})
				synctest.Wait()
				got = p.Request("mc", "far", runtime.Auth{})
				time.Sleep(time.Until(got.RetryAt))
			}
			return got
		}
		engine.Outside.RefusePull("far", errors.New("connection refused"))
		require.Error(t, pull(18).Err)
		require.Equal(t, 1, strings.Count(log.String(), `"pulling image"`), log.String())
		lines := strings.Count(log.String(), "connection refused")
		require.Greater(t, lines, 1, "a failure that lasts is logged again")
		require.Less(t, lines, 9)
		require.Regexp(t, `failures=16 err=.*connection refused`, log.String())

		engine.Outside.RefusePull("far", errors.New("no such host"))
		require.Error(t, pull(1).Err)
		require.Equal(t, 1, strings.Count(log.String(), "no such host"), "another failure is logged at once")
		engine.Outside.RefusePull("far", nil)
		require.ErrorContains(t, pull(1).Err, "was pulled and is not on the host")
		require.Equal(t, 1, strings.Count(log.String(), "pulled an image after failures"))
		cancel()
		<-done
	})
}

// TestPullsTakeTurnsByImage: with one pull at once, an image that is requested again and again comes
// after those that wait.
func TestPullsTakeTurnsByImage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := fake.New(time.Now)
		p := container.NewPuller(engine, 1, slog.New(slog.DiscardHandler))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); _ = p.Run(ctx) }()
		synctest.Wait()
		pulled := func() (images []string) {
			for _, op := range engine.Outside.Ops() {
				if op.Op == "pull" {
					images = append(images, op.Name.ID)
				}
			}
			return images
		}
		release := engine.Outside.HoldPull("a")
		ask := func(id, image string) { p.Request(id, image, runtime.Auth{}) }
		ask("one", "a")
		synctest.Wait()
		ask("two", "b")
		for _, image := range []string{"c", "d", "a"} { // its pull of a was cancelled
			ask("one", image)
		}
		release()
		for range 3 {
			synctest.Wait()
			ask("two", "b")
			ask("one", "a")
		}
		require.GreaterOrEqual(t, len(pulled()), 3, pulled())
		require.Equal(t, []string{"a", "b", "a"}, pulled()[:3])
		cancel()
		<-done
	})
}

// panicking is a puller of images that panics at the first pull.
type panicking struct{ pulls int }

func (p *panicking) Pull(context.Context, string, runtime.Auth, func(runtime.Progress)) error {
	if p.pulls++; p.pulls == 1 {
		panic("broken stream")
	}
	return nil
}

// TestPanicOfPull: a pull that panics is a failure of that image, and is tried again.
func TestPanicOfPull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := container.NewPuller(&panicking{}, 1, slog.New(slog.DiscardHandler))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); _ = p.Run(ctx) }()
		synctest.Wait()
		p.Request("mc", "i", runtime.Auth{})
		synctest.Wait()
		got := p.Request("mc", "i", runtime.Auth{})
		require.ErrorContains(t, got.Err, "broken stream")
		time.Sleep(time.Until(got.RetryAt))
		p.Request("mc", "i", runtime.Auth{})
		synctest.Wait()
		got = p.Request("mc", "i", runtime.Auth{})
		require.True(t, got.Done)
		require.ErrorContains(t, got.Err, "was pulled and is not on the host")
		cancel()
		<-done
	})
}

// TestPullsTakeTurns: a container whose image changes six times has one pull at a time, those
// that it does not request any more are cancelled, and other containers get their turn.
func TestPullsTakeTurns(t *testing.T) {
	live(t, func(w *world) {
		w.installed(nil)
		images := []string{"a", "b", "c", "d", "e", "f"}
		for _, image := range images {
			w.engine.Outside.HoldPull(image)
			w.change(func(s *v1.ContainerSpec) { s.Image = image })
			time.Sleep(2 * time.Second)
		}
		require.Equal(t, 1, w.count("pull", runtime.Name{ID: "f"}))
		for i := range 2 {
			id := images[i] + "-other"
			require.NoError(t, w.store.Update(func(tx *store.Tx) error {
				return store.Containers.Create(tx, id, v1.ContainerSpec{Image: id, VolumeID: id, InstallGeneration: 1, Power: v1.PowerOff})
			}))
			time.Sleep(5 * time.Second)
			require.Equal(t, v1.Ready, w.getOf(id).Status.Phase, "two pulls at once, and one is held")
		}
	})
}
