package ui_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"berth/hack/test/berthtest"
	"berth/hack/test/enginetest"
)

// server is the command of a container with a console.
const server = `echo Done; while read line; do echo "got $line"; done`

// state waits until the open container has a state.
func (p *tab) state(state string) { p.t.Helper(); p.shows(".drawer > header .pill", state) }

// TestMainJob does by clicks what an operator does, from nothing: a container, its
// console, its files, its power, tokens, the audit log, and its removal.
func TestMainJob(t *testing.T) {
	t.Parallel()
	b := berthtest.Start(t, berthtest.Options{})
	p := openTab(t)
	p.login(b, b.Token)
	p.shows(".empty", "There are no containers yet.")

	p.click("button", "New container")
	p.fill("Name", "survival")
	p.fill("Image", enginetest.Busybox(t))
	p.fill("Startup command", server)
	p.fill("Start pattern", "^Done")
	p.fill("Ports", fmt.Sprintf("127.0.0.1:%d/tcp", berthtest.FreePort(t)))
	p.fill("Memory", "1 MiB")
	p.fill("Install script", "echo welcome > motd.txt")
	p.axe("new container")
	requireRefused(p, b)
	p.fill("Memory", "64 MiB")
	p.answer("Create and start")
	p.until("the errors are gone", "!document.querySelector('.message.bad, [aria-invalid]')")
	p.state("running")

	p.shows(".line", "Done")
	p.fill("Send a line to the console", "say hi\r")
	p.shows(".line", "got say hi")
	p.fill("Search the console", "GOT say")
	p.until("a mark", "document.querySelector('mark.now')?.textContent === 'got say'")
	p.axe("console")
	p.files(b)

	p.click("a", "Plots")
	p.until("four plots", "document.querySelectorAll('.plot canvas').length === 4")
	p.until("samples", "!document.querySelector('.plot figcaption').textContent.endsWith('–')")
	p.axe("plots")
	p.click("a", "Transitions")
	p.shows(".list td", "running")
	p.shows(".list td", "administrator")
	p.axe("transitions")
	p.click("a", "Why")
	p.shows(".why", "Running for")
	p.axe("why")
	p.manifest(b)

	p.click("button", "Stop")
	p.shows("dialog", "stop signal")
	p.answer("Stop")
	p.state("exit")
	p.shows(".why", "Stopped")
	p.lists(b)
	p.goTo("#/containers/survival")
	p.click("button", "Delete")
	p.fill("Type survival to go on", "survival")
	p.click("input", "Delete its volume and all its files too")
	p.answer("Delete")
	p.shows(".empty", "There are no containers yet.")
	p.goTo("#/volumes")
	p.shows(".empty", "There are no volumes yet.")
	p.clean(b)
}

// requireRefused sends the dialog "New container" with a limit that the daemon refuses.
func requireRefused(p *tab, b *berthtest.Berth) {
	p.t.Helper()
	t := p.t
	p.click("dialog button", "Create and start")
	p.shows("#field-memory-error", "Must be at least 6 MiB")
	p.until("the field has the focus", "document.activeElement.id === 'field-memory'")
	require.False(t, eval[bool](p, "test.says('dialog', 'limits.')"), "names of the API")
	p.axe("new container, refused")
	berthtest.Until(t, wait, "what the attempt made is removed", func() bool {
		var left struct{ Ports, Volumes []any }
		b.Get(t, "/network/ports", &left)
		b.Get(t, "/volumes", &left)
		return len(left.Ports)+len(left.Volumes) == 0
	})
}

// files uploads, edits, archives, extracts, renames and deletes files.
func (p *tab) files(b *berthtest.Berth) {
	t := p.t
	t.Helper()
	dir := filepath.Join(b.Data, "volumes", b.Container(t, "survival").VolumeID)
	content := func(name, want string) {
		t.Helper()
		berthtest.Until(t, wait, name+" has its content", func() bool {
			got, err := os.ReadFile(filepath.Join(dir, name))
			return err == nil && string(got) == want
		})
	}
	p.click("a", "Files")
	p.click("button", "motd.txt")
	p.until("the editor", "document.querySelector('.editor textarea')?.value === 'welcome\\n'")
	p.fill("Content of motd.txt", "welcome back")
	p.axe("editor")
	p.click("button", "Save")
	p.shows(".message", "Saved")
	p.answer("Close")
	content("motd.txt", "welcome back")

	local := filepath.Join(t.TempDir(), "world.dat")
	require.NoError(t, os.WriteFile(local, []byte(strings.Repeat("world", 1<<20)), 0o600))
	p.do(chromedp.SetUploadFiles(".files input[type=file]", []string{local}))
	p.shows(".uploads", "uploaded")
	content("world.dat", strings.Repeat("world", 1<<20))

	p.click("button", "New folder")
	p.fill("Name", "config")
	p.answer("Create")
	p.click("button", "config/")
	p.shows(".empty", "The folder is empty.")
	p.click("button", "volume")
	p.click("button", "Archive motd.txt")
	p.shows(".files td", "motd.txt.tar.gz")
	p.click("button", "Delete motd.txt")
	p.answer("Delete")
	p.until("it is gone", "!test.find('.files button', 'motd.txt')")
	p.click("button", "Extract motd.txt.tar.gz")
	p.until("it is back", "!!test.find('.files button', 'motd.txt')")
	content("motd.txt", "welcome back")
	p.click("button", "Rename motd.txt")
	p.fill("Name", "news.txt")
	p.answer("Rename")
	p.until("it is renamed", "!!test.find('.files button', 'news.txt')")
	p.axe("files")
}

// manifest checks that the copied manifest is what the daemon has.
func (p *tab) manifest(b *berthtest.Berth) {
	t := p.t
	t.Helper()
	eval[any](p, "navigator.clipboard.writeText = async (text) => { window.copied = text }")
	p.click("button", "Copy as berth apply")
	p.shows(".message", "the install script")
	p.click("button", "Dismiss")
	text := eval[string](p, "window.copied")
	text = strings.TrimSuffix(strings.TrimPrefix(text, "berth apply -f - <<'END'\n"), "END\n")
	file := filepath.Join(t.TempDir(), "survival.yaml")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	out, err := exec.CommandContext(t.Context(), berthtest.Binary(t), "--config", b.Config, "apply", "--dry-run", "-f", file).CombinedOutput()
	require.NoError(t, err, "%s\n%s", out, text)
	require.Contains(t, string(out), "unchanged", "%s", text)
}

// lists reads every other list, and mints and revokes a token.
func (p *tab) lists(b *berthtest.Berth) {
	p.t.Helper()
	p.click("a", "Volumes")
	p.shows(".list td", "survival")
	p.axe("volumes")
	p.click("a", "Ports")
	p.shows(".list td", "survival")
	p.axe("ports")

	p.click("a", "Tokens")
	p.click("button", "New token")
	p.fill("Name", "alice")
	p.fill("Only these containers", "survival")
	p.axe("new token")
	p.click("button", "Create")
	p.until("the secret", "document.querySelector('.secret')?.value.length === 38")
	secret := eval[string](p, "document.querySelector('.secret').value")
	status := func() int { return b.Do(p.t, "GET", "/containers", nil, "Authorization", "Bearer "+secret).Status }
	require.Equal(p.t, 200, status())
	p.answer("Done")
	p.shows(".list td", "alice")
	p.axe("tokens")
	p.click("button", "Revoke alice")
	p.answer("Revoke")
	berthtest.Until(p.t, wait, "the token is revoked", func() bool { return status() == 401 })

	p.click("a", "Audit")
	p.shows(".list td", "container.stop")
	p.axe("audit")
}

// TestKeys does the main job without a mouse.
func TestKeys(t *testing.T) {
	t.Parallel()
	b := berthtest.Start(t, berthtest.Options{})
	for _, id := range []string{"lobby", "survival", "creative"} {
		b.Made(t, id, berthtest.Spec{"startup_command": server, "start_pattern": "^Done"})
	}
	p := openTab(t)
	p.login(b, b.Token)
	p.until("three rows", "document.querySelectorAll('.rows .row').length === 3")
	p.keys("/")
	p.until("the filter has the focus", "document.activeElement.type === 'search'")
	p.keys(kb.Backspace + "viv") // DevTools sends the character in spite of preventDefault
	p.until("one row", "document.querySelectorAll('.rows .row').length === 1")
	p.keys(kb.ArrowDown)
	p.until("the row is current", "document.activeElement.getAttribute('aria-activedescendant') === 'row-survival'")
	p.keys(kb.Enter)
	p.state("ready")
	p.until("the drawer has the focus", "document.activeElement.classList.contains('drawer')")
	reach(p, "Start")
	p.keys(" ")
	p.state("running")
	reach(p, "Why")
	p.keys(kb.ArrowRight)
	p.until("the console", "!!document.querySelector('.output')")
	reach(p, "Send a line to the console")
	p.keys("say hi\r")
	p.shows(".line", "got say hi")
	p.keys(kb.ArrowUp)
	p.until("the line of before", "document.activeElement.value === 'say hi'")
	p.keys(kb.Escape)
	p.until("the drawer is closed", "!document.querySelector('.drawer') && document.activeElement.classList.contains('grid')")
	p.clean(b)
}

// reach presses Tab until the element with a name has the focus, which must be visible.
func reach(p *tab, name string) {
	p.t.Helper()
	for range 40 {
		p.keys(kb.Tab)
		if eval[bool](p, fmt.Sprintf("[document.activeElement.getAttribute('aria-label'), document.activeElement.textContent.trim()].includes(%s)", quote(name))) {
			require.NotEqual(p.t, "none", eval[string](p, "getComputedStyle(document.activeElement).outlineStyle"), "the focus is visible")
			return
		}
	}
	p.t.Fatalf("Tab never reaches %q", name)
}
