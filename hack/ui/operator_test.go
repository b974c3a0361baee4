package ui_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/hack/test/berthtest"
	"berth/hack/test/enginetest"
)

// TestLongNamesAndManyPorts: a container with the longest name and 18 ports leaves its
// state and its buttons where they are looked for, and its ports are readable.
func TestLongNamesAndManyPorts(t *testing.T) {
	t.Parallel()
	b := berthtest.Start(t, berthtest.Options{})
	id := strings.Repeat("very-long-name-", 5)[:63]
	var bound []v1.PortRef
	for range 18 {
		bound = append(bound, b.Port(t))
	}
	b.Made(t, id, berthtest.Spec{"startup_command": server, "ports": bound})
	p := openTab(t)
	p.login(b, b.Token)
	p.goTo("#/containers/" + id + "/console")
	p.shows(".drawer h2", id)
	p.until("the button", "!!test.find('button', 'Copy as berth apply')")
	for _, s := range screens {
		p.do(chromedp.EmulateViewport(s.width, s.height, s.options...))
		p.until("the size", fmt.Sprintf("innerWidth === %d", s.width))
		p.shot("long-name-" + s.name)
		require.True(t, eval[bool](p, `(() => {
			const [name, state, close] = ['h2', '.pill', '.icon'].map((part) => document.querySelector('.drawer > header ' + part).getBoundingClientRect());
			const beside = (r) => r.left >= name.right && r.top < name.bottom && name.top < r.bottom;
			return beside(state) && beside(close) && innerWidth - close.right < 24 && name.height < 100;
		})()`), "state and ✕ are beside the name on a %s", s.name)
	}
	p.click("button", "Close")
	p.do(chromedp.EmulateViewport(screens[0].width, screens[0].height))
	p.until("the table", "!!document.querySelector('.rows .c-ports')")
	require.Contains(t, eval[string](p, "document.querySelector('.rows .c-id').title"), id)
	p.clean(b)
}

// TestSocketEndsTheWait: a console that is connected again ends the longer wait of the
// lists, so that the page does not show both.
func TestSocketEndsTheWait(t *testing.T) {
	t.Parallel()
	b := berthtest.Start(t, berthtest.Options{})
	b.Made(t, "a", berthtest.Spec{"startup_command": server})
	p := openTab(t)
	visitLogin(p, b)
	// From the loss on, reads that wait for their turn wait for ever.
	eval[any](p, `(() => {
		const real = globalThis.setTimeout;
		globalThis.setTimeout = (f, ms) => real(() => (test.hold && f.name === 'run' ? undefined : f()), ms);
	})()`)
	p.keys(b.Token + "\r")
	p.shows(".strip", "Ready")
	p.goTo("#/containers/a/console")
	p.shows(".console .pill", "Live")
	b.Kill9(t)
	p.shows(".connection", "The connection to berth is lost")
	p.shows(".connection", "systemctl status berth")
	p.shows(".console .pill", "Connecting again…")
	eval[any](p, "test.hold = true")
	b.Run(t)
	b.Ready(t)
	p.shows(".console .pill", "Live")
	p.until("the page is healed too", "document.querySelector('.connection').textContent.trim() === ''")
	p.clean(b)
}

// TestVolumesDirectoryIsMissing: the node shows that the directory of all volumes is gone,
// and what to do, in place of a disk of 0 bytes.
func TestVolumesDirectoryIsMissing(t *testing.T) {
	t.Parallel()
	b := berthtest.Start(t, berthtest.Options{})
	b.Made(t, "a", berthtest.Spec{"startup_command": server})
	require.NoError(t, os.Rename(filepath.Join(b.Data, "volumes"), filepath.Join(b.Data, "elsewhere")))
	p := openTab(t)
	p.login(b, b.Token)
	p.shows(".reasons", "The directory of the volumes is missing")
	p.shows(".reasons", "storage.volumes_path")
	p.shows(".who .pill", "Ready, but see below")
	require.NotContains(t, eval[string](p, "document.querySelector('.meters').innerText"), "of 0 B")
	p.shot("volumes-missing")
	p.axe("no directory of volumes")
	require.NoError(t, os.Rename(filepath.Join(b.Data, "elsewhere"), filepath.Join(b.Data, "volumes")))
	p.until("it is back", "!document.querySelector('.reasons')")
	p.clean(b)
}

// TestConsoleWaitsForDocker: while Docker does not answer, a console is not live, the
// reason above it and its remedy are about Docker, and no use of CPU is shown.
func TestConsoleWaitsForDocker(t *testing.T) {
	t.Parallel()
	b := berthtest.Prepare(t, berthtest.Options{Config: "reconcile: {resync: 5s}\n"})
	proxy := enginetest.StartProxy(t, b.Engine)
	b.Env("DOCKER_HOST=" + proxy.Host())
	b.Run(t)
	b.Ready(t)
	b.Create(t, "a", berthtest.Spec{"startup_command": server, "power": "running"})
	b.State(t, "a", "running")
	p := openTab(t)
	p.login(b, b.Token)
	p.goTo("#/containers/a/console")
	p.shows(".console .pill", "Live")
	p.until("its use", "/%/.test(document.querySelector('.rows .c-cpu').textContent)")
	proxy.Inject(enginetest.Reset, enginetest.All)
	p.shows(".console .pill", "Waiting for Docker")
	p.shows(".brief .detail", "The engine does not answer")
	p.shows(".brief .remedy", "journalctl -u docker")
	p.until("no use", "document.querySelector('.rows .c-cpu').textContent === '–'")
	require.True(t, eval[bool](p, `(() => { const e = document.querySelector('.rows .c-state'); return e.scrollWidth <= e.clientWidth; })()`), "the state is not cut off")
	p.shot("console-engine-away")
	p.axe("a console that waits for Docker")
	proxy.Clear()
	p.shows(".console .pill", "Live")
	p.clean(b)
}

// TestFailedBackup: a backup that cannot be written is reported where it was requested, with
// its reason and what to do.
func TestFailedBackup(t *testing.T) {
	t.Parallel()
	b := berthtest.Start(t, berthtest.Options{})
	b.Made(t, "a", berthtest.Spec{"startup_command": server})
	require.NoError(t, os.WriteFile(filepath.Join(b.Data, "backups"), nil, 0o600))
	p := openTab(t)
	p.login(b, b.Token)
	p.goTo("#/containers/a/backups")
	p.click("button", "New backup")
	p.answer("Make a backup")
	p.shows(".messages", "The backup failed: the directory of the backups cannot be written")
	p.shows(".backups .pill", "failed")
	p.shows(".backups .remedy", "the directory must be writable")
	p.shot("backup-failed")
	p.axe("a failed backup")
	p.clean(b)
}

// TestVolumeOverLimit: a container that is stopped because its volume is over the limit did
// not crash, and starts when there is space.
func TestVolumeOverLimit(t *testing.T) {
	t.Parallel()
	b := berthtest.Start(t, berthtest.Options{})
	b.Made(t, "full", berthtest.Spec{"startup_command": "head -c 3000000 /dev/zero > file; until [ -e enough ]; do sleep 0.2; done; exit 1", "limits": map[string]any{"disk": 1 << 20}})
	b.Verb(t, "full", "start")
	b.State(t, "full", "running") // while it starts, its volume is not over the limit yet
	file := filepath.Join(b.Container(t, "full").Mount.Source, "file")
	berthtest.Until(t, 3*time.Minute, "the program writes", func() bool { info, err := os.Stat(file); return err == nil && info.Size() == 3_000_000 })
	b.Restart(t) // which measures all volumes at its start
	p := openTab(t)
	p.login(b, b.Token)
	p.goTo("#/containers/full")
	p.shows(".why", "The volume is over its limit.")
	p.shows(".why", "berth stops it in ")
	p.shows(".why .remedy", "raise the limit")
	require.NoError(t, os.WriteFile(filepath.Join(b.Container(t, "full").Mount.Source, "enough"), nil, 0o644))
	p.shows(".why h3", "Stopped by berth")
	p.shows(".why", "the container starts again when there is space")
	p.goTo("#/containers")
	p.shows(".rows .c-retry", "when there is space")
	p.shot("over-limit")
	p.clean(b)
}

// TestDrawerWithoutConnection: a container that is opened while berth is away has no values
// that nobody has read.
func TestDrawerWithoutConnection(t *testing.T) {
	t.Parallel()
	b := berthtest.Start(t, berthtest.Options{})
	b.Made(t, "a", berthtest.Spec{"startup_command": server, "limits": map[string]any{"memory": 64 << 20}})
	p := openTab(t)
	p.login(b, b.Token)
	p.shows(".rows .c-id", "a")
	b.Kill9(t)
	p.shows(".strip", "No connection")
	p.goTo("#/containers/a")
	p.shows(".facts", "Volume")
	require.NotContains(t, eval[string](p, "document.querySelector('.drawer .facts').innerText"), "no limit")
	p.goTo("#/containers/a/console")
	p.until("the console waits", "document.querySelector('.output')?.dataset.empty === 'The output appears when berth answers.'")
	p.goTo("#/containers/a")
	b.Run(t)
	b.Ready(t)
	p.shows(".drawer .facts", "at most 64.0 MiB")
	p.clean(b)
}
