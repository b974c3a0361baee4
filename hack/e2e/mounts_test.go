package e2e_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/hack/test/berthtest"
	"berth/hack/test/enginetest"
)

// mountTest is a berth that allows mounts from one directory, which a tenant
// can write to.
type mountTest struct {
	*berthtest.Berth
	proxy  *enginetest.Proxy
	shared string // the allowed directory
	config string // of a berth without allowed directories
	once   *sync.Once
}

func newMountTest(t *testing.T) *mountTest {
	t.Helper()
	w := &mountTest{shared: t.TempDir(), once: &sync.Once{}}
	w.Berth = berthtest.Prepare(t, berthtest.Options{Config: "reconcile: {resync: 1s, backoff: {initial: 100ms, max: 1s}}"})
	config, err := os.ReadFile(w.Config)
	require.NoError(t, err)
	w.config = string(config)
	w.WriteConfig(t, w.config+"docker: {allowed_mounts: ["+w.shared+"]}\n")
	w.proxy = enginetest.StartProxy(t, w.Engine)
	w.Env("DOCKER_HOST=" + w.proxy.Host())
	w.write(t, "maps/file", "ours")
	w.Run(t)
	w.Ready(t)
	return w
}

func (w *mountTest) write(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join(w.shared, name)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}

// swap returns a function that replaces the directory by a link to secret, as a
// container with write access to the allowed directory can.
func (w *mountTest) swap(t *testing.T, name, secret string) func() {
	t.Helper()
	return func() {
		w.once.Do(func() {
			path := filepath.Join(w.shared, name)
			require.NoError(t, os.Rename(path, path+".old"))
			require.NoError(t, os.Symlink(secret, path))
		})
	}
}

// spec returns the spec of a container that copies the mounted directory name into
// its volume.
func (w *mountTest) spec(name string) berthtest.Spec {
	return berthtest.Spec{
		"startup_command": "rm -rf seen; cp -r /maps seen; echo done; sleep 100000", "start_pattern": "done",
		"mounts": []berthtest.Spec{{"source": filepath.Join(w.shared, name), "target": "/maps"}},
	}
}

// sees returns the names that the container has seen.
func sees(t *testing.T, c berthtest.Container) (names []string) {
	t.Helper()
	list, err := os.ReadDir(filepath.Join(c.Mount.Source, "seen"))
	require.NoError(t, err)
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names
}

func hostSecret(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "key"), []byte("of the host"), 0o600))
	return dir
}

// refused waits until the container's mount is refused: its state names the
// mount, an event does, and it is still desired to run.
func (w *mountTest) refused(t *testing.T, id, source, reason string) {
	t.Helper()
	c := w.Await(t, id, "its mount is refused", func(c berthtest.Container) bool {
		return strings.Contains(string(c.Message), source) && strings.Contains(string(c.Message), reason) &&
			slices.ContainsFunc(c.Conditions, func(o v1.Condition) bool { return o.Reason == "MountRefused" })
	})
	require.Equal(t, v1.PowerOn, c.Power)
	require.Contains(t, string(w.Must(t, "GET", "/events", nil).Body), source)
}

// TestMountSwappedForALink replaces the directory of a mount by a link to a
// secret after berth has checked it, when the engine creates the container and
// when it starts it.
func TestMountSwappedForALink(t *testing.T) {
	t.Parallel()
	for _, moment := range []string{"/create", "/start"} {
		t.Run(moment[1:], func(t *testing.T) {
			w, secret := newMountTest(t), hostSecret(t)
			w.proxy.Inject(enginetest.Before(w.swap(t, "maps", secret)), enginetest.Act(moment))
			w.Create(t, "mc", berthtest.Spec{"power": "running"}.With(w.spec("maps")))
			if moment == "/start" { // the directory that was checked is mounted, whatever its name leads to now
				require.Equal(t, []string{"file"}, sees(t, w.State(t, "mc", "running")))
				w.Verb(t, "mc", "restart")
			}
			w.refused(t, "mc", w.shared+"/maps", "link")
		})
	}
}

// TestMountOfALink requests mounts of links that lead out of the allowed directory: as the
// last element of the path, and as a parent. One that becomes a link later is refused at the start.
func TestMountOfALink(t *testing.T) {
	t.Parallel()
	w, secret := newMountTest(t), hostSecret(t)
	require.NoError(t, os.Symlink(secret, filepath.Join(w.shared, "link")))
	require.NoError(t, os.Symlink(filepath.Dir(secret), filepath.Join(w.shared, "parent")))
	for id, name := range map[string]string{"link": "link", "parent": "parent/" + filepath.Base(secret)} {
		got := w.Do(t, "PUT", "/containers/"+id, berthtest.Spec{"image": "busybox:1", "volume_id": w.Volume(t)}.With(w.spec(name)))
		require.Equal(t, 400, got.Status)
		require.Contains(t, string(got.Body), "mounts[0].source: a part of the path is a link")
	}
	w.Started(t, "mc", w.spec("maps"))
	require.NoError(t, os.Rename(filepath.Join(w.shared, "maps"), filepath.Join(w.shared, "old")))
	require.NoError(t, os.Symlink(secret, filepath.Join(w.shared, "maps")))
	w.Verb(t, "mc", "restart")
	w.refused(t, "mc", w.shared+"/maps", "link")
	require.NoError(t, os.Remove(filepath.Join(w.shared, "maps")))
	w.write(t, "maps/good", "ours")
	require.Equal(t, []string{"good"}, sees(t, w.State(t, "mc", "running")), "it is tried again")
}

// TestMountNoLongerAllowed empties docker.allowed_mounts: containers that are
// created or started afterwards do not get their mount.
func TestMountNoLongerAllowed(t *testing.T) {
	t.Parallel()
	w := newMountTest(t)
	for _, id := range []string{"restarted", "changed"} {
		w.Started(t, id, w.spec("maps"))
	}
	w.WriteConfig(t, w.config)
	w.Signal(t, syscall.SIGHUP)
	berthtest.Until(t, wait, "the configuration is reloaded", func() bool { return strings.Contains(w.Log(), "configuration was reloaded") })
	w.Verb(t, "restarted", "restart")
	w.Verb(t, "changed", "reinstall")
	w.refused(t, "restarted", w.shared+"/maps", "allowed_mounts")
	w.Verb(t, "changed", "start")
	w.refused(t, "changed", w.shared+"/maps", "allowed_mounts")
	w.WriteConfig(t, w.config+"docker: {allowed_mounts: ["+w.shared+"]}\n")
	w.Signal(t, syscall.SIGHUP)
	for _, id := range []string{"restarted", "changed"} {
		require.Equal(t, []string{"file"}, sees(t, w.State(t, id, "running")))
	}
}
