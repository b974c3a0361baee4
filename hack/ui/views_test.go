package ui_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/hack/test/berthtest"
)

// output is a console as a game server has it.
const output = `printf '\033[32m[INFO]\033[0m Loading world "survival"\n\033[32m[INFO]\033[0m Listening on *:25565\nDone (7.3 s)!\n'
while :; do for name in alice bob carol; do
printf "\033[32m[INFO]\033[0m \033[1;36m$name\033[0m joined the game\n"; sleep 0.4
printf "\033[33m[WARN]\033[0m Can't keep up! Running 2043 ms behind\n"; sleep 0.4; done; done`

// populate creates a node with containers that run and some that do not.
func populate(t *testing.T, b *berthtest.Berth) {
	t.Helper()
	for _, id := range []string{"survival", "lobby"} {
		b.Create(t, id, berthtest.Spec{"startup_command": output, "start_pattern": `^Done`, "power": "running", "labels": map[string]string{"customer": "42"},
			"ports": []v1.PortRef{b.Port(t)}, "limits": map[string]any{"memory": 64 << 20, "cpu": 0.5},
			"install_script": "mkdir config world; echo motd=hello > server.properties; echo a > config/game.yml"})
	}
	for id, f := range faults {
		f.cause(t, b, id)
	}
	_, err := b.API.Tokens().Create(t.Context(), v1.TokenRequest{Name: "panel of alice", Scopes: []v1.Scope{v1.ScopeRead, v1.ScopeConsole}, Containers: []string{"survival"}})
	require.NoError(t, err)
	b.State(t, "survival", "running")
}

// views are the places of the page, and an element that each shows.
var views = []struct{ name, place, shown string }{
	{"containers", "#/containers", ".rows .row"},
	{"why", "#/containers/crash-loop/why", ".why .last"},
	{"console", "#/containers/survival/console", ".line"},
	{"plots", "#/containers/survival/plots", ".plot canvas"},
	{"transitions", "#/containers/survival/transitions", ".list td"},
	{"files", "#/containers/survival/files", ".files td"},
	{"backups", "#/containers/survival/backups", ".pane > *"},
	{"volumes", "#/volumes", ".list td"},
	{"ports", "#/ports", ".list td"},
	{"tokens", "#/tokens", ".list td"},
	{"audit", "#/audit", ".list td"},
}

// screen is a size of a browser.
type screen struct {
	name          string
	width, height int64
	options       []chromedp.EmulateViewportOption
}

var screens = []screen{
	{"desktop", 1360, 820, nil},
	{"phone", 390, 844, []chromedp.EmulateViewportOption{chromedp.EmulateMobile, chromedp.EmulateTouch}},
}

// visit goes to each view. It has axe-core check two of the four combinations; TestMainJob
// has a third one checked.
func (p *tab) visit(s screen, scheme string) {
	p.t.Helper()
	for _, v := range views {
		p.goTo(v.place)
		p.until(v.name, fmt.Sprintf("!!document.querySelector(%s)?.checkVisibility()", quote(v.shown)))
		p.until(v.name+" is no wider than the screen", fmt.Sprintf("document.documentElement.scrollWidth <= %d", s.width))
		if s.name == "phone" {
			p.until(v.name+" has no list that is cut off", "[...document.querySelectorAll('.scroll:has(.cards)')].every((e) => e.scrollWidth <= e.clientWidth)")
		}
		name := v.name + "-" + s.name + "-" + scheme
		p.shot(name)
		if (s.name == "phone") == (scheme == "light") {
			p.axe(name)
		}
	}
}

// TestViews shows each view in the dark and in the light, on a desktop and on a phone:
// axe-core finds nothing serious, nothing is wider than the screen, and each usual fault is explained.
// With BERTH_SCREENSHOTS=directory it stores a picture of each.
func TestViews(t *testing.T) {
	t.Parallel()
	n := startNode(t)
	b := n.Berth
	populate(t, b)
	b.Restart(t) // which measures all volumes at its start
	p := openTab(t)
	visitLogin(p, b)
	p.axe("login")
	p.shot("login")
	p.login(b, b.Token)
	for id, f := range faults {
		p.goTo("#/containers/" + id)
		explains(p, id, f)
	}
	for _, screen := range screens {
		p.do(chromedp.EmulateViewport(screen.width, screen.height, screen.options...))
		for _, scheme := range []string{"light", "dark"} {
			p.scheme(scheme)
			p.visit(screen, scheme)
		}
	}
	p.do(chromedp.EmulateViewport(screens[0].width, screens[0].height))
	n.fail(p)
	p.clean(b)
}

// TestDocumentsHavePictures: the pictures of the documents are there, and small.
func TestDocumentsHavePictures(t *testing.T) {
	files, err := filepath.Glob("../docs/page/*.png")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	var size int64
	for _, file := range files {
		info, err := os.Stat(file)
		require.NoError(t, err)
		size += info.Size()
	}
	require.Less(t, size, int64(500_000))
}
