package ui_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/hack/test/berthtest"
)

// TestReconnect kills the daemon below an open console: the page shows it, heals
// without a reload, and no line is missing or comes twice.
func TestReconnect(t *testing.T) {
	t.Parallel()
	b := berthtest.Start(t, berthtest.Options{})
	b.Made(t, "count", berthtest.Spec{"startup_command": "n=0; while [ ! -e enough ]; do n=$((n+1)); echo line $n; sleep 0.3; done; echo the end; sleep 1000"})
	p := openTab(t)
	p.login(b, b.Token)
	p.goTo("#/containers/count/console")
	p.click("button", "Start")
	p.shows(".line", "line 5")
	eval[any](p, "test.same = true")
	b.Kill9(t)
	p.shows(".connection", "The connection to berth is lost")
	p.shows(".strip", "No connection")
	require.True(t, eval[bool](p, "[...document.querySelectorAll('.power button')].every((e) => e.disabled)"))
	p.axe("no connection")
	b.Run(t)
	b.Ready(t)
	p.until("it is healed", "document.querySelector('.connection').textContent.trim() === ''")
	require.NoError(t, os.WriteFile(filepath.Join(b.Container(t, "count").Mount.Source, "enough"), nil, 0o644))
	eval[any](p, "void document.querySelector('.to-end')?.click()") // axe scrolls, as a person may
	p.shows(".line", "the end")
	require.True(t, eval[bool](p, "test.same"), "no reload")
	numbers := eval[[]int](p, "[...document.querySelectorAll('.line')].map((e) => Number(/^line (\\d+)$/.exec(e.textContent)?.[1])).filter(Boolean)")
	require.LessOrEqual(t, numbers[0], 5, "lines of before the kill")
	for i := 1; i < len(numbers); i++ {
		require.Equal(t, numbers[i-1]+1, numbers[i])
	}
	p.clean(b)
}

// hostile is text of a tenant who wants to be a part of the page.
const hostile = `<script>alert(1)</script><img src=http://evil.example/x onerror=alert(2)>`

// TestHostileTenant shows output, names and labels that try to run scripts, to hide
// text, to move the cursor, or to fill the memory.
func TestHostileTenant(t *testing.T) {
	t.Parallel()
	b := berthtest.Start(t, berthtest.Options{})
	b.Made(t, "evil", berthtest.Spec{
		"startup_command": `printf '` + hostile + `\n\033]0;title\007\033[2J\033[31mgnp\342\200\256exe\033[0m\007\n'; head -c 1000000 /dev/zero | tr '\0' A; echo; echo '"}{"' ; sleep 1000`,
		"labels":          map[string]string{"x": hostile, "rtl": "\u202egnp.exe"}, "env": map[string]string{"A": hostile},
	})
	dir := filepath.Join(b.Data, "volumes", b.Container(t, "evil").VolumeID)
	for _, name := range []string{"<img src=x onerror=alert(3)>", "exe\u202etxt", "a\nb", "`$(id)`"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(hostile), 0o644))
	}
	p := openTab(t)
	p.login(b, b.Token)
	p.goTo("#/containers/evil/console")
	p.click("button", "Start")
	p.shows(".line", `"}{"`)
	p.shows(".line", hostile)
	p.shows(".line .fg-red", "gnp⟨U+202E⟩exe")
	p.shows(".line .cut", "995,904 more characters")
	require.Equal(t, "berth", eval[string](p, "document.title"))
	p.shot("hostile-console")
	p.goTo("#/containers/evil/why")
	p.shows(".facts dd", "⟨U+202E⟩gnp.exe")
	p.goTo("#/containers/evil/files")
	for _, name := range []string{"<img src=x onerror=alert(3)>", "exe⟨U+202E⟩txt", `a\x0ab`, "`$(id)`"} {
		p.shows(".files .name", name)
	}
	p.click("button", "exe⟨U+202E⟩txt")
	p.until("its content", "document.querySelector('.editor textarea')?.value.startsWith('<script>')")
	p.goTo("#/audit")
	require.Zero(t, eval[int](p, "document.querySelectorAll('#app script, #app img, #app iframe').length"))
	p.clean(b)
}

// TestNarrowToken shows a token only what it may see and do.
func TestNarrowToken(t *testing.T) {
	t.Parallel()
	b := berthtest.Start(t, berthtest.Options{})
	b.Made(t, "mine", berthtest.Spec{"startup_command": server})
	b.Made(t, "other", berthtest.Spec{})
	token, err := b.API.Tokens().Create(t.Context(), v1.TokenRequest{Name: "alice", Scopes: []v1.Scope{v1.ScopeRead}, Containers: []string{"mine"}})
	require.NoError(t, err)
	p := openTab(t)
	p.login(b, token.Token)
	p.shows(".user", "alice")
	p.until("one row", "document.querySelectorAll('.rows .row').length === 1")
	p.until("its tabs, once they are drawn", "document.querySelector('nav.tabs').innerText.replace(/\\s+/g, ' ').trim() === 'Containers 1 Volumes Ports'")
	p.goTo("#/containers/mine/console")
	b.Post(t, "/containers/mine/start", nil)
	p.shows(".line", "Done")
	require.Empty(t, eval[string](p, "document.querySelector('.power').innerText"))
	require.False(t, eval[bool](p, "!!document.querySelector('#command')"), "no input")
	p.goTo("#/containers/mine/files")
	p.shows(".files", "The folder is empty.")
	require.False(t, strings.Contains(eval[string](p, "document.querySelector('.files').innerText"), "Upload"))
	p.goTo("#/containers/other/why")
	p.shows(".drawer", "this token may not see it")
	require.Zero(t, strings.Count(b.Log(), token.Token), "the token stands in no address")

	id := b.Do(t, "GET", "/auth/self", nil, "Authorization", "Bearer "+token.Token)
	require.Equal(t, 200, id.Status)
	b.Must(t, "DELETE", "/auth/tokens/"+token.ID, nil)
	p.shows(".login", "The token is no longer valid.")
	p.clean(b)
}

// TestBackups makes a backup, changes a file, and restores it below a running container.
func TestBackups(t *testing.T) {
	t.Parallel()
	b := berthtest.Start(t, berthtest.Options{})
	b.Made(t, "survival", berthtest.Spec{"startup_command": server, "start_pattern": "^Done", "install_script": "echo before > world.dat"})
	b.Verb(t, "survival", "start")
	file := filepath.Join(b.Data, "volumes", b.Container(t, "survival").VolumeID, "world.dat")
	p := openTab(t)
	p.login(b, b.Token)
	p.goTo("#/containers/survival/backups")
	p.shows(".pane", "The volume has no backup yet.")
	p.click("button", "New backup")
	p.fill("Name", "night")
	p.answer("Make a backup")
	p.shows(".backups .pill", "completed")
	p.axe("backups")
	require.NoError(t, os.WriteFile(file, []byte("after\n"), 0o644))
	p.click("button", "Restore night")
	p.shows("dialog", "Changes since then are lost.")
	p.fill("Type survival to go on", "survival")
	p.click("input", "Stop the container first, and start it again afterwards")
	p.answer("Restore")
	p.shows(".backups .sub .pill", "completed")
	got, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "before\n", string(got))
	p.state("running")
	p.click("button", "Delete night")
	p.answer("Delete")
	p.shows(".pane", "The volume has no backup yet.")
	p.clean(b)
}
