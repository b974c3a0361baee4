package ui_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/hack/test/berthtest"
	"berth/hack/test/enginetest"
)

// gameEgg is an egg whose server runs in an image of the tests.
func gameEgg(t *testing.T) string {
	return fmt.Sprintf(`{"meta":{"version":"PTDL_v2"},"name":"Echo game","description":"A game that answers","docker_images":{"Old":"old:1","Busybox":%q},
		"startup":"run {{MODE}}","config":{"files":"{}","startup":"{\"done\":\"Done\"}","stop":"stop"},
		"scripts":{"installation":{"script":"echo installed > marker","container":%q,"entrypoint":"sh"}},
		"variables":[{"name":"The mode","description":"How it plays","env_variable":"MODE","default_value":"fast","rules":"required|in:fast,safe"},
		{"name":"Players","env_variable":"MAX_PLAYERS","default_value":"","rules":"required|integer|max:20"}]}`, enginetest.Busybox(t), enginetest.Busybox(t))
}

// TestContainerFromAnEgg makes a container of an egg by clicks, on a narrow screen too, then
// changes its settings and its regular backups, and shares it.
func TestContainerFromAnEgg(t *testing.T) {
	t.Parallel()
	b := berthtest.Start(t, berthtest.Options{})
	p := openTab(t)
	p.login(b, b.Token)
	file := filepath.Join(t.TempDir(), "egg.json")
	require.NoError(t, os.WriteFile(file, []byte(gameEgg(t)), 0o600))

	p.click("button", "New container")
	p.click("button", "From an egg…")
	p.click("dialog button", "Read the egg")
	p.shows("#field-text-error", "Choose a file, or paste its text.")
	p.fill("Text of the egg", "[]")
	p.click("dialog button", "Read the egg")
	p.shows("dialog", "he egg must be a JSON or YAML map")
	p.do(chromedp.SetUploadFiles("#egg-file", []string{file}))
	p.until("the text", "document.querySelector('#field-text').value.includes('Echo game')")
	p.axe("an egg")
	p.click("dialog button", "Read the egg")
	p.shows("dialog h2", "Echo game")
	p.fill("Name", "echo")
	p.choose("Image", "Busybox")
	p.choose("The mode", "safe")
	p.choose("Listens on", "127.0.0.1")
	port := berthtest.FreePort(t)
	p.fill("Ports", fmt.Sprint(port))
	p.fill("Memory", "64 MiB")
	p.fill("Players", "50")
	p.click("dialog button", "Show the specification")
	p.shows("[id='field-variable.MAX_PLAYERS-error']", "breaks the rule max:20")
	p.fill("Players", "5")
	p.click("dialog button", "Show the specification")
	p.shows(".specification pre", `"MODE": "safe"`)
	p.do(chromedp.EmulateViewport(390, 844))
	p.until("no scrolling sideways", "document.querySelector('dialog').scrollWidth <= document.querySelector('dialog').clientWidth")
	p.shot("egg-390")
	p.axe("a specification")
	p.do(chromedp.EmulateViewport(1360, 820))
	p.fill("Players", "6")
	p.until("another value needs another look", "!document.querySelector('.specification')")
	p.click("dialog button", "Show the specification")
	p.shows(".specification pre", `"MAX_PLAYERS": "6"`)
	p.answer("Create and start")

	c := b.Await(t, "echo", "its installation", func(c berthtest.Container) bool { return c.State != "installing" })
	require.Equal(t, []v1.Port{{IP: "127.0.0.1", Port: port, Protocol: "tcp"}, {IP: "127.0.0.1", Port: port, Protocol: "udp"}}, c.Ports)
	require.Equal(t, "6", c.Env["MAX_PLAYERS"])
	marker, err := os.ReadFile(filepath.Join(c.Mount.Source, "marker"))
	require.NoError(t, err)
	require.Equal(t, "installed\n", string(marker))

	p.settings(b)
	p.policy(b)
	p.share(b)
	p.clean(b)
}

// choose selects an option of the selection with a label.
func (p *tab) choose(label, value string) {
	p.t.Helper()
	p.until("the selection "+label, fmt.Sprintf("!!test.find('select', %s)", quote(label)))
	eval[any](p, fmt.Sprintf("void (() => { const e = test.find('select', %s); e.value = %s; e.dispatchEvent(new Event('input', { bubbles: true })); })()", quote(label), quote(value)))
}

// settings changes the environment and a limit of the container.
func (p *tab) settings(b *berthtest.Berth) {
	p.t.Helper()
	p.goTo("#/containers/echo/settings")
	p.until("the environment", "document.querySelector('#field-env')?.value.includes('MAX_PLAYERS=6')")
	p.axe("settings")
	eval[any](p, `void (() => { const e = document.querySelector('#field-env'); e.value = e.value.replace('MAX_PLAYERS=6', 'MAX_PLAYERS=7'); e.dispatchEvent(new Event('input', { bubbles: true })); })()`)
	p.fill("Memory", "96 MiB")
	p.click("button", "Show what changes")
	p.shows(".effects", "env, limits changed")
	p.shot("settings")
	p.click("button", "Apply the changes")
	p.shows(".message", "The settings are stored")
	c := b.Container(p.t, "echo")
	require.Equal(p.t, "7", c.Env["MAX_PLAYERS"])
	require.EqualValues(p.t, 96<<20, c.Limits.Memory)
}

// policy sets and removes a backup policy.
func (p *tab) policy(b *berthtest.Berth) {
	p.t.Helper()
	volume := b.Container(p.t, "echo").VolumeID
	p.goTo("#/containers/echo/backups")
	p.shows(".policy", "No regular backups")
	p.click("button", "Regular backups…")
	p.fill("Every", "1s")
	p.click("dialog button", "Store")
	p.until("it is refused", "!!document.querySelector('#field-every-error')")
	p.fill("Every", "12h")
	p.fill("Keep the last", "3")
	p.axe("regular backups")
	p.answer("Store")
	p.shows(".policy", "Every 12h0m0s, the last 3 are kept")
	policy, err := b.API.Backups().Policy(p.t.Context(), volume)
	require.NoError(p.t, err)
	require.Equal(p.t, 3, policy.Keep)
	p.click("button", "Regular backups…")
	p.fill("Every", kb.Backspace)
	p.fill("Times", "0 4 * * MON-FRI")
	p.fill("Time zone", "Europe/Berlin")
	p.answer("Store")
	p.shows(".policy", "At 0 4 * * MON-FRI in Europe/Berlin, the last 3 are kept; next ")
	p.click("button", "Regular backups…")
	p.answer("Remove")
	p.shows(".policy", "No regular backups")
}

// share makes a link, and opens it in another browser.
func (p *tab) share(b *berthtest.Berth) {
	p.t.Helper()
	p.click("button", "Share…")
	p.axe("share")
	p.click("input", "power start, stop, kill, restart")
	p.click("dialog button", "Make the link")
	p.until("the link", "!!document.querySelector('.secret')?.value")
	link := eval[string](p, "document.querySelector('.secret').value")
	p.answer("Done")
	friend := openTab(p.t)
	friend.open(link, "test.says('.drawer h2', 'echo')")
	require.True(p.t, strings.HasSuffix(eval[string](friend, "location.href"), "#/containers/echo"), "the token is not in the address")
	require.False(p.t, eval[bool](friend, "!!test.find('button', 'Share…') || !!test.find('button', 'New container')"))
	friend.clean(b)
}
