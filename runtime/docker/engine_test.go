package docker

import (
	"crypto/rand"
	"encoding/json"
	"log/slog"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"berth/hack/test/berthtest"
	"berth/hack/test/enginetest"
	"berth/runtime"
	"berth/runtime/conform"
)

// rig is an Engine with its own store id, and a client of the real engine.
type rig struct {
	*Engine
	client *enginetest.Client
	image  string
}

func newRig(t testing.TB, change ...func(*Config)) rig {
	t.Helper()
	client := enginetest.Shared(t)
	c := Config{Host: client.Host(), StoreID: "test-" + strings.ToLower(rand.Text()[:10]), Network: "berth-test", Keeper: berthtest.Keeper(t), Volumes: t.TempDir()}
	for _, f := range change {
		f(&c)
	}
	client.CleanStore(t, c.StoreID)
	return open(t, client, c)
}

// twin returns another Engine of the same store, with empty caches.
func (r rig) twin(t *testing.T) rig {
	t.Helper()
	return open(t, r.client, r.cfg)
}

func open(t testing.TB, client *enginetest.Client, c Config) rig {
	t.Helper()
	e, err := New(c, prometheus.NewRegistry(), slog.New(slog.NewTextHandler(t.Output(), nil)))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	return rig{Engine: e, client: client, image: client.Busybox(t)}
}

// spec returns the spec of a server container that runs a shell script.
func (r rig) spec(id, script string) runtime.Spec {
	return runtime.Spec{Name: runtime.Name{ID: id, Role: runtime.Server}, SpecHash: "1", Image: r.image, Command: []string{"sh", "-c", script}}
}

// run makes and starts a container.
func (r rig) run(t *testing.T, s runtime.Spec) (id string) {
	t.Helper()
	id, err := r.Create(t.Context(), s)
	require.NoError(t, err)
	require.NoError(t, r.Start(t.Context(), s.Name))
	return id
}

func (r rig) realName(n runtime.Name) string { return engineName(r.cfg.StoreID, n) }

func TestConform(t *testing.T) {
	r := newRig(t)
	open, locked := enginetest.StartRegistry(t), enginetest.StartLockedRegistry(t, "me", "secret")
	act := func(action string) func(*testing.T, runtime.Name) {
		return func(t *testing.T, n runtime.Name) {
			t.Helper()
			require.Equal(t, 204, r.client.Act(t, r.realName(n), action))
		}
	}
	h := &conform.Harness{
		Engine: r.Engine, Image: r.image,
		Pullable: open.Push(t, r.client, r.image, "conform:1"),
		Missing:  open.Addr + "/conform:none",
		Locked:   locked.Push(t, r.client, r.image, "conform:1"),
		Auth:     runtime.Auth{Host: locked.Addr, Username: "me", Password: "secret"},
		Dir:      func(t *testing.T) string { return t.TempDir() },
		DropDir:  func(t *testing.T, dir string) { require.NoError(t, os.RemoveAll(dir)) },
		Port:     func(t *testing.T) int { port, free := listen(t, 0); free(); return port },
		Occupy:   func(t *testing.T, port int) func() { _, free := listen(t, port); return free },
		Pause:    act("pause"), Outside: act("start"),
		Vanish:  func(t *testing.T, n runtime.Name) { r.client.Remove(t, r.realName(n)) },
		Foreign: func(t *testing.T, n runtime.Name) func() { return r.foreign(t, n) },
	}
	t.Cleanup(func() {
		r.client.RemoveImage(t, h.Pullable)
		r.client.RemoveImage(t, h.Locked)
	})
	t.Run("suite", func(t *testing.T) { conform.Run(t, h) })
}

// foreign runs a container with the name of n that carries other labels than
// this store's, down to the internal id.
func (r rig) foreign(t *testing.T, n runtime.Name) (untouched func()) {
	t.Helper()
	id := r.client.CreateRaw(t, r.realName(n), map[string]any{
		"Image": r.image, "Cmd": []string{"sleep", "100000"}, "HostConfig": map[string]any{"NetworkMode": "none"},
		"Labels": map[string]string{labelStore: "another", labelContainer: n.ID, labelRole: string(n.Role), labelSpec: "1"},
	})
	require.Equal(t, 204, r.client.Act(t, id, "start"))
	before, _ := r.client.Inspect(t, id)
	return func() {
		after, found := r.client.Inspect(t, id)
		require.True(t, found)
		require.Equal(t, before.State, after.State)
		require.Equal(t, before.HostConfig, after.HostConfig)
	}
}

func listen(t *testing.T, port int) (bound int, free func()) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(port))
	require.NoError(t, err)
	return l.Addr().(*net.TCPAddr).Port, func() { _ = l.Close() }
}

func decodeInto(t *testing.T, answer []byte, into any) {
	t.Helper()
	require.NoError(t, json.Unmarshal(answer, into))
}
