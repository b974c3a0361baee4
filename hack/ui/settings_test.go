package ui_test

import (
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"berth/hack/test/berthtest"
)

// TestChangeAtTheNextStart stores a change of a server that goes on running, on a narrow screen:
// the page names the fields that wait until a restart has applied them.
func TestChangeAtTheNextStart(t *testing.T) {
	t.Parallel()
	b := berthtest.Start(t, berthtest.Options{})
	b.Create(t, "mc", berthtest.Spec{"startup_command": "trap 'exit 0' TERM; echo mode $MODE; while :; do sleep 0.1; done", "start_pattern": "^mode",
		"power": "running", "env": map[string]string{"MODE": "fast"}, "limits": map[string]any{"memory": 64 << 20}})
	before := b.State(t, "mc", "running")
	p := openTab(t)
	p.login(b, b.Token)
	p.do(chromedp.EmulateViewport(390, 844))
	p.goTo("#/containers/mc/settings")
	p.fill("Memory", "96 MiB")
	p.click("button", "Show what changes")
	p.shows(".effects", "limits changed")
	require.False(t, eval[bool](p, "!!test.find('button', 'Apply at the next start')"), "it applies at once")
	p.fill("Environment", "MODE=safe")
	p.click("button", "Show what changes")
	p.shows(".effects", "a running one is stopped and started again: env, limits changed")
	p.shows(".effects", "a running one goes on: its next start changes environment, and the rest applies at once")
	p.until("the buttons are in sight", "test.find('button', 'Apply at the next start').getBoundingClientRect().bottom <= innerHeight")
	p.until("no scrolling sideways", "document.documentElement.scrollWidth <= 390")
	p.axe("a change at the next start")
	p.shot("settings-next-start-390")
	p.click("button", "Apply at the next start")
	p.shows(".message", "What needs a new container waits for the next start")

	const waits = "Waits for the next start: environment."
	p.shows(".deferred", waits)
	p.until("the stored environment", "document.querySelector('#field-env').value === 'MODE=safe'")
	p.axe("a change that waits")
	p.shot("settings-waits-390")
	p.goTo("#/containers/mc/why")
	p.shows(".why.ok", waits)
	p.shot("why-waits-390")
	running := b.Container(t, "mc")
	require.Equal(t, before.ContainerID, running.ContainerID, "the run goes on")
	require.EqualValues(t, 96<<20, running.Limits.Memory)

	p.click("button", "Restart")
	p.answer("Restart")
	p.until("nothing waits", "!document.querySelector('.deferred')")
	p.shows(".why.ok", "Running for")
	require.NotEqual(t, before.ContainerID, b.Container(t, "mc").ContainerID)
	require.Contains(t, string(b.Must(t, "GET", "/containers/mc/logs", nil).Body), "mode safe")
	p.clean(b)
}
