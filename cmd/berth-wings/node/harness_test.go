package node_test

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"berth/api/client"
	"berth/cmd/berth-wings/config"
	"berth/cmd/berth-wings/node"
	"berth/cmd/berth-wings/panel"
	"berth/hack/test/berthtest"
	"berth/hack/test/enginetest"
	"berth/hack/test/paneltest"
)

// alpha is the server of most tests.
const alpha = "a1a1a1a1-1111-4111-8111-a1a1a1a1a1a1"

func TestMain(m *testing.M) {
	flag.Parse()
	_ = flag.Set("test.parallel", "3") // worlds mostly wait for their engine
	os.Exit(m.Run())
}

// world is a bridge between a panel of tests and a real daemon.
type world struct {
	paneltest.Node
	panel *paneltest.Panel
	berth *berthtest.Berth
	api   *client.Client // of berth, for the bridge
	port  int
	file  string
	root  string // of the node

	berthSFTP, sftp string         // addresses
	checks          chan time.Time // of the tokens of sockets; nil: as usual
	stop            func()         // ends the bridge
}

// newWorld returns a world with one server, which is not installed.
func newWorld(t *testing.T) *world {
	t.Helper()
	sftp := berthtest.FreePort(t)
	b := berthtest.Start(t, berthtest.Options{Config: fmt.Sprintf("files: {pull: true}\nreconcile: {backoff: {initial: 1s, max: 1s}}\n"+
		"sftp: {enabled: true, host: 127.0.0.1, port: %d}", sftp)})
	b.Engine.Busybox(t)
	b.Engine.Import(t, "berth-test/wings:1", enginetest.BusyboxTar(t), `CMD ["sh","-c","eval \"$STARTUP\""]`)
	w := &world{panel: paneltest.Start(t), berth: b, port: berthtest.FreePort(t), berthSFTP: fmt.Sprint("127.0.0.1:", sftp), api: b.API}
	w.root = t.TempDir()
	w.file = filepath.Join(t.TempDir(), "config.yml")
	require.NoError(t, os.WriteFile(w.file, fmt.Appendf(nil, "token_id: %s\ntoken: %s\nremote: %s\napi: {upload_limit: 1}\n"+
		"system: {root_directory: %s, activity_send_interval: 1}\n",
		paneltest.TokenID, paneltest.Token, w.panel.URL, w.root), 0o600))
	w.panel.SetServer(t, w.server(""))
	w.panel.SetScript(alpha, "berth-test/busybox:1", "sh", "echo installing; echo \"game of $MOTD\" > /mnt/server/game.txt; mkdir /mnt/server/notes; exit 7")
	w.run(t)
	return w
}

// game is a startup command that prints what it reads.
const game = `echo Done; while read line; do case $line in stop) echo bye; exit 0;; crash) echo fatal; exit 3;; *) echo got $line;; esac; done`

// server returns the object of alpha. more are fields of settings in JSON, which end with a comma.
func (w *world) server(more string) string {
	return fmt.Sprintf(`{"settings": {%s"uuid": %q, "meta": {"name": "alpha"}, "environment": {"MOTD": "hello"}, "invocation": %q, "skip_egg_scripts": false,
"build": {"memory_limit": 64, "swap": 0, "io_weight": 500, "cpu_limit": 50, "threads": null, "disk_space": 16, "oom_killer": true},
"container": {"image": "~berth-test/wings:1"}, "allocations": {"default": {"ip": "127.0.0.1", "port": %d}, "mappings": {"127.0.0.1": [%d]}},
"egg": {"file_denylist": ["secret.txt"], "features": []}},
"process_configuration": {"startup": {"done": ["Done"]}, "stop": {"type": "command", "value": "stop"}, "configs": []}}`, more, alpha, game, w.port, w.port)
}

// run starts the bridge and waits until it has read its servers.
func (w *world) run(t *testing.T) {
	t.Helper()
	file, err := config.Load(w.file, nil)
	require.NoError(t, err)
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	n, err := node.New(node.Options{File: file, Version: "1.0.0", Log: log, Began: time.Now().Add(-time.Minute), Berth: w.api, SFTP: w.berthSFTP, Checks: w.checks,
		Panel: panel.New(panel.Options{Remote: w.panel.URL, Identity: node.Identity("1.0.0", file.Config), Timeout: 30 * time.Second, PerPage: 50})})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ready, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		_ = n.Run(ctx, func() { close(ready) })
	}()
	<-ready
	files, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	w.sftp = files.Addr().String()
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = n.ServeSFTP(ctx, files)
	}()
	s := httptest.NewServer(n.Handler())
	w.URL = s.URL
	w.stop = func() {
		s.CloseClientConnections()
		s.Close()
		cancel()
		<-ended
		<-served
	}
	t.Cleanup(func() { w.stop() })
}

// state waits until the server is in a state.
func (w *world) state(t *testing.T, want string) {
	t.Helper()
	berthtest.Until(t, 3*time.Minute, alpha+" is "+want, func() bool {
		var v struct{ State string }
		w.Want(t, 200, "GET", "/api/servers/"+alpha, nil).Decode(t, &v)
		return v.State == want
	})
}

// installed creates the server and waits until the bridge has nothing more to do for that.
func (w *world) installed(t *testing.T) {
	t.Helper()
	w.Want(t, 202, "POST", "/api/servers", map[string]any{"uuid": alpha, "start_on_completion": false})
	require.JSONEq(t, `{"successful":true,"reinstall":false}`, w.panel.Await(t, "POST /servers/"+alpha+"/install", 1).Body)
	w.unmarked(t)
}
