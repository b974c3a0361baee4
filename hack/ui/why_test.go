package ui_test

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	v1 "berth/api/v1"
	"berth/hack/test/berthtest"
	"berth/hack/test/enginetest"
)

// fault is one that an operator has to understand from the page alone.
type fault struct {
	cause    func(t *testing.T, b *berthtest.Berth, id string)
	headline string // what happens
	detail   string // why
	help     string // what comes next, or what a person can do
}

// created causes a fault with a specification alone.
func created(spec berthtest.Spec) func(*testing.T, *berthtest.Berth, string) {
	return func(t *testing.T, b *berthtest.Berth, id string) {
		b.Create(t, id, berthtest.Spec{"power": "running"}.With(spec))
	}
}

// faults are containers with the usual faults, and what the page shows about each.
var faults = map[string]fault{
	"image-missing": {func(t *testing.T, b *berthtest.Berth, id string) {
		b.Made(t, id, nil)
		b.Post(t, "/containers/"+id+"/reinstall", map[string]string{"image": enginetest.StartRegistry(t).Addr + "/games/survivla:1"})
	}, "Installation failed", "games/survivla:1", "Correct the name of the image"},
	"registry-away": {created(berthtest.Spec{"image": "127.0.0.1:1/games/survival:1"}), "Waiting for the image for", "connection refused", "Check that this host reaches the registry"},
	"port-taken": {func(t *testing.T, b *berthtest.Berth, id string) {
		taken := b.Port(t)
		listener, err := net.Listen("tcp", net.JoinHostPort(taken.IP, strconv.Itoa(taken.Port)))
		require.NoError(t, err)
		t.Cleanup(func() { _ = listener.Close() })
		created(berthtest.Spec{"ports": []v1.PortRef{taken}})(t, b, id)
	}, "Could not start", "Port is taken", "Another program or container of this host has the port"},
	"volume-gone": {func(t *testing.T, b *berthtest.Berth, id string) {
		b.Made(t, id, nil)
		require.NoError(t, os.RemoveAll(b.Container(t, id).Mount.Source))
		b.Verb(t, id, "start")
	}, "Could not start", "Mount source is missing", "directory was removed from the host"},
	"disk-full": {func(t *testing.T, b *berthtest.Berth, id string) {
		var v struct {
			VolumeID string `json:"volume_id"`
		}
		b.Post(t, "/volumes", map[string]any{"size_limit": 8 << 20}).Decode(t, &v)
		created(berthtest.Spec{"volume_id": v.VolumeID, "startup_command": "dd if=/dev/zero of=world bs=1M count=12; touch written; sleep 100000"})(t, b, id)
		berthtest.Until(t, wait, "the volume is full", func() bool {
			_, err := os.Stat(filepath.Join(b.Container(t, id).Mount.Source, "written"))
			return err == nil
		})
	}, "", "limit", "Delete files of the volume"},
	"install-hangs": {created(berthtest.Spec{"install_script": "echo waiting for the mirror; sleep 100000"}), "Installing for", "The install script has run since", "The install script is slow, or waits"},
	"install-fails": {created(berthtest.Spec{"install_script": "echo 404 Not Found; exit 22"}), "Installation failed", "exit code 22", "output of the install script"},
	"pattern-never": {created(berthtest.Spec{"startup_command": "echo ready; sleep 100000", "start_pattern": "^Done"}), "Starting for", "start_pattern", "Compare start_pattern with the output"},
	"pattern-late": {created(berthtest.Spec{"startup_command": "echo ready; sleep 100000", "start_pattern": "^Done", "start_timeout": "2s"}),
		"did not become running in time", "No line matched start_pattern", "raise start_timeout"},
	"out-of-memory": {created(berthtest.Spec{"startup_command": "x=a; while :; do x=$x$x; done", "limits": map[string]any{"memory": 16 << 20}}),
		"Ran out of memory", "Exit code 137", "Raise limits.memory"},
	"crash-loop": {created(berthtest.Spec{"startup_command": "echo config is missing; exit 3"}), "Crashes again and again", "exited with code 3", "Read its last output"},
	"no-command": {created(berthtest.Spec{"startup_command": "/opt/java/bin/java -jar server.jar"}), "Crash", "127", "Correct startup_command"},
	"bad-user":   {created(berthtest.Spec{"user": "nobody-here"}), "Could not start", "nobody-here", "Correct it with berth apply"},
	"finishes":   {created(berthtest.Spec{"startup_command": "echo nothing to do"}), "Exited", "", "Its restart policy does not start it again"},
	"stopped-on-request": {func(t *testing.T, b *berthtest.Berth, id string) {
		b.Made(t, id, berthtest.Spec{"startup_command": "trap 'exit 0' TERM; echo up; while :; do sleep 0.1; done", "start_pattern": "^up"})
		b.Verb(t, id, "start")
		b.State(t, id, "running")
		b.Verb(t, id, "stop")
	}, "Stopped on request", "Exit code 0", "Start starts it."},
	"stopped": {created(berthtest.Spec{"power": "stopped"}), "Installed, not started yet", "", ""},
}

// explains waits until the open container shows a fault.
func explains(p *tab, id string, f fault) {
	p.t.Helper()
	p.shows(".drawer h2", id)
	for _, text := range []string{f.headline, f.detail, f.help} {
		p.shows(".why", text)
	}
	p.t.Logf("%s: %s", id, eval[string](p, "document.querySelector('.why').innerText"))
	p.shot("fault-" + id)
}

// node is a daemon whose engine and whose disk can fail.
type node struct {
	*berthtest.Berth
	engine *enginetest.Proxy
	disk   string // a small file system with its data
}

// startNode starts a daemon with a disk of its own, behind a proxy of the engine.
func startNode(t *testing.T) node {
	t.Helper()
	disk := t.TempDir()
	require.NoError(t, unix.Mount("berth-ui", disk, "tmpfs", 0, "size=320m"), "mounting needs root")
	t.Cleanup(func() { _ = unix.Unmount(disk, unix.MNT_DETACH) })
	b := berthtest.Prepare(t, berthtest.Options{Data: filepath.Join(disk, "data"),
		Config: "reconcile: {resync: 5s, start_warning: 1s, install_warning: 1s, backoff: {initial: 500ms, max: 20s}}\n"})
	proxy := enginetest.StartProxy(t, b.Engine)
	b.Env("DOCKER_HOST=" + proxy.Host())
	b.Run(t)
	b.Ready(t)
	return node{b, proxy, disk}
}

// fail lets the disk of the store run full, and then the engine go away. The page shows
// both in the strip, and the second in each container; then it shows that they are back.
func (n node) fail(p *tab) {
	p.t.Helper()
	p.goTo("#/containers/survival")
	p.shows(".why", "Running for")
	filler := filepath.Join(n.disk, "filler")
	fill(p.t, filler)
	p.shows(".strip .reasons", "The disk is full")
	p.shows(".strip .reasons", "Free space")
	p.shot("fault-node-disk-full")
	p.axe("not ready")
	require.NoError(p.t, os.Remove(filler))
	p.until("no reason", "!document.querySelector('.reasons')")
	n.engine.Inject(enginetest.Reset, enginetest.All)
	p.shows(".strip .reasons", "Docker does not answer")
	p.shows(".why", "State unknown. Last observed")
	p.shows(".why", "journalctl -u docker")
	p.shows(".rows .pill.unknown", "running ?")
	was := eval[string](p, "document.querySelector('.why h3').textContent.split(': ')[1] + document.querySelector('.rows .c-age').textContent")
	time.Sleep(2 * time.Second)
	require.Equal(p.t, was, eval[string](p, "document.querySelector('.why h3').textContent.split(': ')[1] + document.querySelector('.rows .c-age').textContent"), "nothing is counted that is not observed")
	p.t.Logf("engine away: %s", eval[string](p, "document.querySelector('.reasons').innerText + '\\n' + document.querySelector('.why').innerText"))
	p.shot("fault-engine-away")
	n.engine.Clear()
	p.until("no reason", "!document.querySelector('.reasons')")
	p.until("the engine is back", "!test.says('.why', 'journalctl') && !document.querySelector('.pill.unknown')")
}

// fill writes a file until its disk is full.
func fill(t testing.TB, name string) {
	t.Helper()
	file, err := os.Create(name)
	require.NoError(t, err)
	defer file.Close()
	block := make([]byte, 1<<20)
	for err == nil {
		_, err = file.Write(block)
	}
	require.ErrorIs(t, err, unix.ENOSPC)
}
