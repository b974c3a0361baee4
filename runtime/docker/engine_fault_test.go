package docker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"berth/hack/test/berthtest"
	"berth/hack/test/enginetest"
	"berth/runtime"
)

// newIsolatedRig returns a rig on an isolated engine, which the test may kill.
func newIsolatedRig(t *testing.T, options ...string) (rig, *enginetest.Isolated) {
	t.Helper()
	i := enginetest.StartIsolated(t, options...)
	e, err := New(Config{Host: i.Host(), StoreID: "own", Keeper: berthtest.Keeper(t), Volumes: t.TempDir()}, prometheus.NewRegistry(), slog.New(slog.NewTextHandler(t.Output(), nil)))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	return rig{Engine: e, client: i.Client, image: i.Busybox(t)}, i
}

func TestKilledEngineEndsNoRun(t *testing.T) {
	r, i := newIsolatedRig(t, "--live-restore")
	s := r.spec("counts", "n=0; while true; do n=$((n+1)); echo $n; usleep 2000; done")
	s.TTY = true
	id := r.run(t, s)
	before, err := r.Inspect(t.Context(), s.Name)
	require.NoError(t, err)

	listed, watched := make(chan struct{}), make(chan error, 1)
	go func() {
		watched <- r.Watch(t.Context(), func([]runtime.Found) { close(listed) }, func(runtime.Name) {})
	}()
	<-listed
	next, since, lost := 1, time.Time{}, false
	run := r.target(t, id, true)
	reached, followed := make(chan int, 1<<20), make(chan error, 1)
	follow := func() {
		followed <- r.Logs(t.Context(), run, since, func(l runtime.Line) error {
			n, err := strconv.Atoi(string(l.Data))
			if err != nil || n < next || n > next && !lost {
				return fmt.Errorf("%q follows %d", l.Data, next-1)
			}
			reached <- n
			next, since, lost = n+1, l.Time, false
			return nil
		})
	}
	reaches := func(last int) {
		t.Helper()
		for n := 0; n < last; {
			select {
			case n = <-reached:
			case err := <-followed:
				t.Fatal("the log ends: ", err)
			}
		}
	}
	go follow()
	reaches(50)
	i.Kill9(t)
	require.ErrorIs(t, <-followed, runtime.ErrUnavailable, "this is not the end of the run")
	require.ErrorIs(t, <-watched, runtime.ErrUnavailable)
	_, err = r.Inspect(t.Context(), s.Name)
	require.ErrorIs(t, err, runtime.ErrUnavailable)
	require.NotErrorIs(t, err, runtime.ErrNotFound)

	i.Start(t)
	after, err := r.Inspect(t.Context(), s.Name)
	require.NoError(t, err)
	require.Equal(t, before, after)
	lost = true // a killed engine loses what it has read and not yet written
	last := next + 50
	go follow()
	reaches(last)
	require.NoError(t, r.Kill(t.Context(), s.Name))
	require.NoError(t, <-followed, "and this is")
}

// While containerd hangs, the engine answers pings and lists, but no inspects.
func TestReadyWhileContainerdHangs(t *testing.T) {
	r, i := newIsolatedRig(t)
	s := r.spec("hangs", "sleep 1000")
	r.run(t, s)
	_, err := r.Inspect(t.Context(), s.Name)
	require.NoError(t, err)
	i.FreezeContainerd(t)
	require.Eventually(t, func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		killed := r.Kill(ctx, s.Name) // waits for containerd, and an inspect for it, if the engine has begun it
		_, err = r.Inspect(t.Context(), s.Name)
		return errors.Is(killed, context.DeadlineExceeded) && errors.Is(err, runtime.ErrUnavailable)
	}, 2*time.Minute, time.Millisecond)
	_, err = r.List(t.Context())
	require.NoError(t, err)
	require.NoError(t, r.Ping(t.Context()))
	require.ErrorIs(t, r.Ready(t.Context()), runtime.ErrUnavailable)
	i.Thaw(t)
	require.NoError(t, r.Kill(t.Context(), s.Name))
	got, err := r.Inspect(t.Context(), s.Name)
	require.NoError(t, err)
	require.False(t, got.Running)
	require.NoError(t, r.Ready(t.Context()))
}

// An engine that shuts down waits for the spec's stop timeout, also beyond
// Docker's default of 10 s.
func TestStopTimeoutAtEngineShutdown(t *testing.T) {
	t.Parallel() // it waits for a container
	r, i := newIsolatedRig(t)
	s := r.spec("saves", `trap 'usleep 10500000; exit 7' TERM; echo up; while true; do usleep 10000; done`)
	s.StopTimeout = 30 * time.Second
	id := r.run(t, s)
	require.Eventually(t, func() bool { return len(r.read(t, id, time.Time{}, false)) > 0 }, 2*time.Minute, 10*time.Millisecond, "it is up")
	i.Terminate(t)
	i.Start(t)
	after, err := r.Inspect(t.Context(), s.Name)
	require.NoError(t, err)
	require.False(t, after.Running)
	require.Equal(t, 7, after.ExitCode, "137: it was killed")
}

// Newer engines can keep images in containerd, whose messages about registries
// differ. An older engine ignores the setting.
func TestContainerdImageStore(t *testing.T) {
	file := filepath.Join(t.TempDir(), "daemon.json")
	require.NoError(t, os.WriteFile(file, []byte(`{"features": {"containerd-snapshotter": true}}`), 0o600))
	r, i := newIsolatedRig(t, "--config-file", file)
	open, locked := enginetest.StartRegistryOf(t, i, 5000, "", ""), enginetest.StartRegistryOf(t, i, 5001, "me", "secret")
	there, guarded := open.Push(t, i.Client, r.image, "x:1"), locked.Push(t, i.Client, r.image, "x:1")
	pull := func(ref string, auth runtime.Auth) error { return r.Pull(t.Context(), ref, auth, nil) }

	require.ErrorIs(t, pull(open.Addr+"/x:nosuch", runtime.Auth{}), runtime.ErrImageNotFound)
	require.ErrorIs(t, pull(open.Addr+"/nosuch:1", runtime.Auth{}), runtime.ErrImageNotFound)
	require.ErrorIs(t, pull(guarded, runtime.Auth{}), runtime.ErrDenied)
	require.ErrorIs(t, pull(guarded, runtime.Auth{Host: locked.Addr, Username: "me", Password: "wrong"}), runtime.ErrDenied)
	for _, away := range []string{"127.0.0.1:9/denied/x:1", "denied.invalid/unauthorized/x:1"} {
		err := pull(away, runtime.Auth{})
		require.Error(t, err)
		for _, verdict := range []error{runtime.ErrImageNotFound, runtime.ErrDenied, runtime.ErrInvalid} {
			require.NotErrorIs(t, err, verdict, "a registry that cannot be reached says nothing")
		}
	}
	require.NoError(t, pull(there, runtime.Auth{}))
	require.NoError(t, pull(guarded, runtime.Auth{Host: locked.Addr, Username: "me", Password: "secret"}))
	id, err := r.ImageID(t.Context(), open.Addr+"/x:nosuch")
	require.NoError(t, err)
	require.Empty(t, id)
	s := r.spec("runs", "sleep 1000")
	s.Image = guarded
	r.run(t, s)
}
