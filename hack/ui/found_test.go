package ui_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"berth/hack/test/berthtest"
	"berth/hack/test/enginetest"
)

// TestCreateShowsAddress: the form names the addresses that it will listen on, and the
// container listens there.
func TestCreateShowsAddress(t *testing.T) {
	t.Parallel()
	b := berthtest.Start(t, berthtest.Options{})
	p := openTab(t)
	p.login(b, b.Token)
	p.click("button", "New container")
	p.shows("dialog .listens", "No port")
	bare := berthtest.FreePort(t)
	p.fill("Name", "local")
	p.fill("Image", enginetest.Busybox(t))
	p.fill("Startup command", server)
	p.fill("Ports", fmt.Sprint(bare))
	p.shows("dialog .listens", fmt.Sprintf("0.0.0.0:%d/tcp: every network that reaches this host", bare))
	eval[any](p, `(() => { const select = document.querySelector('#field-address'); select.value = '127.0.0.1'; select.dispatchEvent(new Event('input', { bubbles: true })); })()`)
	p.shows("dialog .listens", fmt.Sprintf("127.0.0.1:%d/tcp: programs of this host only", bare))
	p.axe("the address")
	p.shot("new-container")
	p.answer("Create and start")
	p.state("running")
	require.Equal(t, "127.0.0.1", b.Container(t, "local").Ports[0].IP)
	p.clean(b)
}

// TestStorageOfAVolume: the claim of a new volume can be chosen where the node has more than one.
func TestStorageOfAVolume(t *testing.T) {
	t.Parallel()
	b := berthtest.Start(t, berthtest.Options{})
	p := openTab(t)
	visitLogin(p, b)
	eval[any](p, `{
		const real = window.fetch;
		window.fetch = async (url, request) => {
			const answer = await real(url, request);
			if (!String(url).endsWith('/node')) return answer;
			const node = await answer.json();
			node.disk.claims = window.claims ?? {};
			return new Response(JSON.stringify(node), answer);
		};
		0;
	}`)
	p.keys(b.Token + "\r")
	p.shows(".strip", "Ready")
	p.goTo("#/volumes")
	p.click("button", "New volume")
	p.shows("dialog", "Size limit")
	require.False(t, eval[bool](p, "!!document.querySelector('#field-storage')"), "Docker has no claims")
	p.answer("Cancel")
	eval[any](p, "claims = { fast: { total: 2, free: 1 }, acme: { total: 2, free: 1 } }")
	for _, form := range []struct{ view, open, send string }{{"volumes", "New volume", "Create"}, {"containers", "New container", "Create and start"}} {
		p.goTo("#/" + form.view)
		p.click("button", form.open)
		p.until("the claims", "[...document.querySelectorAll('#field-storage option')].map((o) => o.value).join() === ',acme,fast'")
		if form.view == "containers" {
			p.fill("Name", "placed")
			p.fill("Image", enginetest.Busybox(t))
		}
		eval[any](p, `(() => { const select = document.querySelector('#field-storage'); select.value = 'fast'; select.dispatchEvent(new Event('input', { bubbles: true })); })()`)
		p.axe("the storage of " + form.view)
		p.click("dialog button", form.send)
		p.shows("dialog .error", "a key of kubernetes.claims") // the daemon's refusal of what was sent
		p.click("dialog button", "Cancel")
	}
	var left struct{ Volumes []any }
	b.Get(t, "/volumes", &left)
	require.Empty(t, left.Volumes)
}

// TestFormErrors: errors are beside their fields, all at once, in the words of the form.
func TestFormErrors(t *testing.T) {
	t.Parallel()
	b := berthtest.Start(t, berthtest.Options{})
	b.Made(t, "taken", nil)
	p := openTab(t)
	p.login(b, b.Token)
	p.click("button", "New container")
	p.fill("Name", "taken")
	p.fill("Ports", "x:1")
	p.fill("CPU cores", "two")
	p.click("dialog button", "Create and start")
	for field, text := range map[string]string{"id": "There is a container with this name", "image": "A container needs an image", "ports": "is not a port", "cpu": "is not a number of cores"} {
		p.shows("#field-"+field+"-error", text)
	}
	p.until("the first has the focus", "document.activeElement.id === 'field-id'")
	require.Equal(t, "field-id-error field-id-help", eval[string](p, "document.activeElement.getAttribute('aria-describedby')"))
	require.Zero(t, eval[int](p, "document.querySelectorAll('.message').length"), "no message outside of the form")
	p.shot("form-errors")
	p.axe("errors of a form")
	p.keys("2")
	p.until("the error of what is corrected is gone", "!document.querySelector('#field-id-error')")
	p.fill("Image", "games/Survival")
	p.fill("Ports", kb.Backspace)
	p.fill("CPU cores", kb.Backspace)
	p.click("dialog button", "Create and start")
	p.shows("#field-image-error", "Must be an image reference")
	p.click("button", "Close")

	p.goTo("#/ports")
	p.click("button", "Add ports")
	p.fill("Ports, separated by commas", "25565")
	p.click("dialog button", "Add")
	p.shows("dialog .field .error", `"25565" has no address: write 0.0.0.0:25565`)
	p.click("button", "Close")
	p.goTo("#/tokens")
	p.click("button", "New token")
	p.fill("Valid for", "soon")
	p.click("dialog button", "Create")
	p.shows("#field-ttl-error", "Must be a duration such as")
	p.clean(b)
}

// TestReasonWhereOneLooks: after the creation of a container that fails, the console
// shows why, and what comes next.
func TestReasonWhereOneLooks(t *testing.T) {
	t.Parallel()
	b := berthtest.Start(t, berthtest.Options{})
	p := openTab(t)
	p.login(b, b.Token)
	create := func(id, image, command, script string) {
		p.click("button", "New container")
		p.fill("Name", id)
		p.fill("Image", image)
		if command != "" {
			p.fill("Startup command", command)
		}
		if script != "" {
			p.fill("Install script", script)
		}
		p.answer("Create and start")
		p.shows(".drawer h2", id)
		p.until("the console", "!!document.querySelector('.output')")
	}
	busybox := enginetest.Busybox(t)
	create("crash", busybox, "echo config is missing; exit 3", "")
	p.shows(".brief", "exited with code 3")
	p.shows(".brief", "berth starts it again in")
	p.shot("brief-crash")
	p.axe("the reason above a console")
	create("no-image", enginetest.StartRegistry(t).Addr+"/games/survivla:1", "", "")
	p.shows(".brief", "Installation failed")
	p.shows(".brief", "Correct the name of the image")
	require.NotEmpty(t, eval[string](p, "getComputedStyle(document.querySelector('.output'), '::before').content"))
	p.shot("brief-image")
	create("bad-install", busybox, "", "echo 404 Not Found; exit 22")
	p.shows(".brief", "exit code 22")
	p.shows(".line.mark", "Installation failed with code 22")
	p.click("a", "Why")
	p.until("once", "!document.querySelector('.brief')")
	p.clean(b)
}

// TestCancelInstallation: the page names what can be done while a container installs.
func TestCancelInstallation(t *testing.T) {
	t.Parallel()
	b := berthtest.Start(t, berthtest.Options{})
	b.Create(t, "slow", berthtest.Spec{"install_script": "echo waiting; sleep 100000", "startup_command": server, "power": "running"})
	p := openTab(t)
	p.login(b, b.Token)
	p.goTo("#/containers/slow/console")
	p.shows(".line", "waiting")
	p.shows(".power-note", "It starts when the installation is done.")
	require.True(t, eval[bool](p, "(() => { const b = [...document.querySelectorAll('.power button')].find((e) => e.textContent === 'Start'); return b.disabled && b.title === 'It starts when the installation is done'; })()"))
	p.shot("installing")
	p.axe("installing")
	p.click("button", "Stop")
	p.shows("dialog", "The installation itself goes on.")
	p.answer("Stop")
	p.shows(".power-note", "It is not started after the installation.")
	p.click("button", "Start")
	p.shows(".message", "it starts when the installation is done")
	p.click("button", "Cancel installation")
	p.shows("dialog", "The install script is killed")
	p.answer("Cancel installation")
	p.state("ready")
	p.until("no such button", "!test.find('.power button', 'Cancel installation')")
	p.clean(b)
}

// TestRunsHaveMarks: each start and each exit has one mark in the console, at its place,
// also after a reload and a reconnection, and no line is lost or comes twice.
func TestRunsHaveMarks(t *testing.T) {
	t.Parallel()
	b := berthtest.Start(t, berthtest.Options{})
	b.Made(t, "runs", berthtest.Spec{"startup_command": "n=$(cat n 2>/dev/null || echo 0); n=$((n+1)); echo $n > n; echo run $n begins; read line; echo run $n ends; exit $n",
		"restart_policy": map[string]any{"mode": "never"}})
	p := openTab(t)
	p.login(b, b.Token)
	p.goTo("#/containers/runs/console")
	run := func(n int) {
		p.click("button", "Start")
		p.shows(".line", fmt.Sprintf("run %d begins", n))
		p.fill("Send a line to the console", "x\r")
		p.shows(".line.mark", fmt.Sprintf("Exited with code %d", n))
	}
	run(1)
	run(2)
	shown := func() []string {
		return eval[[]string](p, `[...document.querySelectorAll('.line')].map((e) => e.textContent).filter((text) => /^(run|Start|Exited)/.test(text))`)
	}
	want := []string{}
	for n := 1; n <= 2; n++ {
		want = append(want, "Start by administrator", fmt.Sprintf("run %d begins", n), fmt.Sprintf("run %d ends", n), fmt.Sprintf("Exited with code %d", n))
	}
	require.Equal(t, want, shown())
	p.shot("marks")
	p.axe("marks")
	p.open(eval[string](p, "location.href"), "!!document.querySelector('.drawer')")
	p.until("all again", fmt.Sprintf("document.querySelectorAll('.line.mark').length >= %d", 4))
	require.Equal(t, want, shown(), "after a reload")
	b.Kill9(t)
	p.shows(".connection", "The connection to berth is lost")
	b.Run(t)
	b.Ready(t)
	p.until("it is healed", "document.querySelector('.connection').textContent.trim() === ''")
	run(3)
	want = append(want, "Start by administrator", "run 3 begins", "run 3 ends", "Exited with code 3")
	require.Equal(t, want, shown(), "after a reconnection")
	p.click("button", "Older lines")
	p.until("the first mark is shown once", "[...document.querySelectorAll('.line.mark')].filter((e) => e.textContent.startsWith('Installation by')).length === 1")
	require.Equal(t, want, shown(), "after older lines were read")
	p.clean(b)
}

// TestOlderLinesComeOnce: lines that arrived in one message are not among the older ones.
func TestOlderLinesComeOnce(t *testing.T) {
	t.Parallel()
	b := berthtest.Start(t, berthtest.Options{})
	b.Made(t, "burst", berthtest.Spec{"startup_command": "i=0; while [ $i -lt 2000 ]; do i=$((i+1)); echo line $i; done; sleep 1000"})
	p := openTab(t)
	p.login(b, b.Token)
	p.goTo("#/containers/burst/console")
	p.until("live", "document.querySelector('.console .pill')?.textContent === 'Live'")
	p.click("button", "Start")
	p.shows(".line", "line 2000")
	p.showFirstLine()
	requireAllLines(p)
	p.clean(b)
}

// showFirstLine asks for older lines until the first one is shown.
func (p *tab) showFirstLine() {
	p.t.Helper()
	p.until("the first line is there", `([...document.querySelectorAll('.tools button')].find((e) => e.textContent === 'Older lines').click(),
		[...document.querySelectorAll('.line')].some((e) => e.textContent === 'line 1'))`)
}

// requireAllLines requires that the lines that are shown begin with "line 1" and have no gap.
func requireAllLines(p *tab) {
	p.t.Helper()
	numbers := eval[[]int](p, "[...document.querySelectorAll('.line')].map((e) => Number(/^line (\\d+)$/.exec(e.textContent)?.[1])).filter(Boolean)")
	for i, n := range numbers {
		require.Equal(p.t, i+1, n)
	}
}

// TestOlderLinesAfterTheTop: "Older lines" reads the first line of a console again after the user has scrolled to it and
// the page has removed it for later lines.
func TestOlderLinesAfterTheTop(t *testing.T) {
	t.Parallel()
	b := berthtest.Start(t, berthtest.Options{})
	b.Made(t, "a", berthtest.Spec{"startup_command": `i=0; for most in 100 2500; do while [ $i -lt $most ]; do i=$((i+1)); echo line $i; done; read go; done`})
	p := openTab(t)
	p.login(b, b.Token)
	p.goTo("#/containers/a/console")
	p.click("button", "Start")
	p.shows(".line", "line 100")
	// The page ignores a scroll at the moment in which the size of the box changes: scroll until it takes effect.
	p.until("the first line, not the last", "(document.querySelector('.output').scrollTop = 0, !!document.querySelector('.to-end'))")
	p.until("the last line", "(document.querySelector('.output').scrollTop = 1e6, !document.querySelector('.to-end'))")
	p.fill("Send a line to the console", "go\r")
	p.shows(".line", "line 2500")
	p.showFirstLine()
	requireAllLines(p)
	p.clean(b)
}

// TestMessagesCoverNoInput: messages are beside the input of a console, on each screen.
func TestMessagesCoverNoInput(t *testing.T) {
	t.Parallel()
	b := berthtest.Start(t, berthtest.Options{})
	b.Made(t, "a", berthtest.Spec{"startup_command": server})
	b.Verb(t, "a", "start")
	p := openTab(t)
	p.login(b, b.Token)
	p.goTo("#/containers/a/console")
	p.state("running")
	for _, s := range screens {
		p.do(chromedp.EmulateViewport(s.width, s.height, s.options...))
		p.click("button", "Copy as berth apply")
		p.shows(".message", "the install script")
		p.shot("message-" + s.name)
		require.False(t, eval[bool](p, `(() => {
			const a = document.querySelector('.messages').getBoundingClientRect(), b = document.querySelector('form.input').getBoundingClientRect();
			return a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
		})()`), s.name)
		p.click("button", "Dismiss")
	}
	p.clean(b)
}

// TestLoginNamesTheWay: the login names the command and the key that give a token, and
// the command works.
func TestLoginNamesTheWay(t *testing.T) {
	t.Parallel()
	b := berthtest.Start(t, berthtest.Options{})
	p := openTab(t)
	visitLogin(p, b)
	text := eval[string](p, "document.querySelector('#token-help').innerText.replace(/\\s+/g, ' ')")
	for _, part := range []string{"berth token create --ttl 8h", "--scope read", "authorization.token", "/etc/berth/berth.yaml", "BERTH_CONFIG", "bin/berth"} {
		require.Contains(t, text, part)
	}
	require.NotContains(t, strings.ToLower(text), strings.ToLower(b.Token))
	p.axe("login")
}
