package fake_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"berth/runtime"
	"berth/runtime/fake"
)

var mc = runtime.Name{ID: "mc", Role: runtime.Server}

func made(t *testing.T, e *fake.Engine) string {
	t.Helper()
	e.Outside.AddImage("img")
	id, err := e.Create(t.Context(), runtime.Spec{Name: mc, SpecHash: "1", Image: "img"})
	require.NoError(t, err)
	return id
}

func TestFailAndAfter(t *testing.T) {
	e, boom := fake.New(nil), errors.New("boom")
	made(t, e)
	e.Outside.Fail(func(op string, _ runtime.Name) error {
		if op == "start" {
			return boom
		}
		return nil
	})
	require.ErrorIs(t, e.Start(t.Context(), mc), boom)
	require.False(t, e.Outside.State(mc).Running)
	e.Outside.Fail(nil)
	e.Outside.After(func(op string, n runtime.Name) error {
		require.Equal(t, mc, n)
		return boom
	})
	require.ErrorIs(t, e.Start(t.Context(), mc), boom)
	require.True(t, e.Outside.State(mc).Running, "the start took effect although its answer was lost")
	require.Equal(t, []fake.Op{{Op: "create", Name: mc}, {Op: "start", Name: mc}, {Op: "start", Name: mc}}, e.Outside.Ops())
}

func TestDownEndsWatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := fake.New(nil)
		made(t, e)
		ended := make(chan error, 1)
		go func() {
			ended <- e.Watch(t.Context(), func([]runtime.Found) {}, func(runtime.Name) {})
		}()
		synctest.Wait()
		e.Outside.Host().Down()
		require.Error(t, <-ended)
		_, err := e.Inspect(t.Context(), mc)
		require.ErrorIs(t, err, runtime.ErrUnavailable)
		e.Outside.Host().Up()
		_, err = e.Inspect(t.Context(), mc)
		require.NoError(t, err)
	})
}

func TestHoldPull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := fake.New(nil)
		release := e.Outside.HoldPull("img")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		require.ErrorIs(t, e.Pull(ctx, "img", runtime.Auth{}, nil), context.DeadlineExceeded)
		time.AfterFunc(time.Minute, release)
		require.NoError(t, e.Pull(t.Context(), "img", runtime.Auth{}, nil))
		id, err := e.ImageID(t.Context(), "img")
		require.NoError(t, err)
		require.NotEmpty(t, id)
		require.NoError(t, e.Pull(t.Context(), "img", runtime.Auth{}, nil), "a released pull does not wait again")
	})
}

func TestTimesDifferOnFixedClock(t *testing.T) {
	still := time.Unix(1, 0)
	e := fake.New(func() time.Time { return still })
	id := made(t, e)
	require.NoError(t, e.Start(t.Context(), mc))
	first := e.Outside.State(mc).StartedAt
	e.Outside.Say(mc, "one\ntwo\n")
	e.Outside.Exit(mc, 3)
	require.Equal(t, 3, e.Outside.State(mc).ExitCode)
	require.NoError(t, e.Start(t.Context(), mc))
	require.True(t, e.Outside.State(mc).StartedAt.After(first))
	require.Zero(t, e.Outside.State(mc).ExitCode)
	e.Outside.Say(mc, "three")

	var got []string
	var last time.Time
	require.NoError(t, e.Logs(t.Context(), runtime.Target{ContainerID: id, Ended: true}, time.Time{}, func(l runtime.Line) error {
		require.True(t, l.Time.After(last))
		last, got = l.Time, append(got, string(l.Data))
		return nil
	}))
	require.Equal(t, []string{"one", "two", "three"}, got)
}

func TestOutsideChanges(t *testing.T) {
	e := fake.New(nil)
	made(t, e)
	require.NoError(t, e.Outside.StartOutside(mc))
	e.Outside.Pause(mc)
	require.True(t, e.Outside.State(mc).Paused)
	e.Outside.Deafen(mc)
	require.NoError(t, e.Signal(t.Context(), mc, "SIGTERM"))
	require.True(t, e.Outside.State(mc).Running)
	require.Equal(t, []string{"SIGTERM"}, e.Outside.Signals(mc))
	e.Outside.OOM(mc)
	require.True(t, e.Outside.State(mc).OOMKilled)
	e.Outside.Vanish(mc)
	_, err := e.Inspect(t.Context(), mc)
	require.ErrorIs(t, err, runtime.ErrNotFound)
}

func TestRestoreDirectoryAndFreePort(t *testing.T) {
	e := fake.New(nil)
	e.Outside.AddImage("img")
	h := e.Outside.Host()
	h.LoseDirectory("/v")
	h.TakePort("0.0.0.0", 25565, "tcp")
	s := runtime.Spec{Name: mc, Image: "img",
		Mounts: []runtime.Mount{{Source: "/v", Target: "/home/container"}},
		Ports:  []runtime.Port{{IP: "0.0.0.0", Port: 25565, ContainerPort: 25565, Protocol: "tcp"}}}
	_, err := e.Create(t.Context(), s)
	require.ErrorIs(t, err, runtime.ErrMountMissing)
	h.RestoreDirectory("/v")
	_, err = e.Create(t.Context(), s)
	require.NoError(t, err)
	require.ErrorIs(t, e.Start(t.Context(), mc), runtime.ErrPortTaken)
	h.FreePort("0.0.0.0", 25565, "tcp")
	require.NoError(t, e.Start(t.Context(), mc))
}

func TestHeldStart(t *testing.T) {
	e := fake.New(nil)
	made(t, e)
	e.Outside.HoldStart(mc)
	require.ErrorIs(t, e.Start(t.Context(), mc), runtime.ErrStarting)
	require.True(t, e.Outside.State(mc).Starting)
	require.NoError(t, e.Kill(t.Context(), mc))
	require.False(t, e.Outside.State(mc).Starting)
	e.Outside.ReleaseStart(mc)
	require.False(t, e.Outside.State(mc).Running, "the start was taken back")
	e.Outside.HoldStart(mc)
	require.ErrorIs(t, e.Start(t.Context(), mc), runtime.ErrStarting)
	e.Outside.ReleaseStart(mc)
	require.True(t, e.Outside.State(mc).Running)
	require.False(t, e.Outside.State(mc).Starting)
}
