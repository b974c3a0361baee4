package ui_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"berth/hack/test/berthtest"
)

// wait bounds one wait for the page; tabLife everything in one tab.
const (
	wait    = 3 * time.Minute
	tabLife = 15 * time.Minute
)

// prelude runs before the scripts of each page. It collects what the policy refused,
// and finds elements as a person does: by what is visible of them.
const prelude = `
	window.test = { violations: [] };
	addEventListener('securitypolicyviolation', (e) => test.violations.push(e.violatedDirective + ' ' + e.blockedURI + ' ' + e.sourceFile));
	test.text = (e) => {
		const copy = e.cloneNode(true);
		for (const hidden of copy.querySelectorAll('[aria-hidden=true]')) hidden.remove();
		return copy.textContent.trim();
	};
	test.find = (selector, text) => {
		const top = [...document.querySelectorAll('dialog[open]')].at(-1) ?? document;
		const named = (e) => [e.getAttribute('aria-label'), test.text(e), e.labels?.[0]?.textContent.trim(), e.labels?.[0]?.querySelector('span')?.textContent.trim()];
		return [...top.querySelectorAll(selector)].find((e) => e.checkVisibility() && named(e).includes(text) && !e.disabled);
	};
	addEventListener('click', (e) => (test.clicked ||= e.composedPath().includes(test.wanted)), true);
	test.place = (selector, text) => {
		const e = test.find(selector, text);
		if (!e) return null;
		test.wanted = e;
		test.clicked = false;
		e.scrollIntoView({ block: 'nearest', inline: 'nearest' });
		const r = e.getBoundingClientRect();
		return [r.x + r.width / 2, r.y + r.height / 2];
	};
	test.says = (selector, text) => [...document.querySelectorAll(selector)].some((e) => e.checkVisibility() && e.textContent.includes(text));
`

// tab is a page in Chromium, and what went wrong in it.
type tab struct {
	t   testing.TB
	ctx context.Context

	mu     sync.Mutex
	hosts  map[string]bool // that requests went to
	faults []string        // exceptions and dialogs

	events []traceEvent // of the trace that is recorded
	traced chan []traceEvent
}

// openTab opens an empty page, which ends with the test. It shares nothing with other
// tabs but the process of Chromium.
func openTab(t testing.TB) *tab {
	t.Helper()
	shared, err := chromium()
	require.NoError(t, err)
	ctx, cancel := chromedp.NewContext(shared, chromedp.WithNewBrowserContext())
	t.Cleanup(cancel)
	ctx, cancel = context.WithTimeout(ctx, tabLife)
	t.Cleanup(cancel)
	p := &tab{t: t, ctx: ctx, hosts: map[string]bool{}}
	require.NoError(t, chromedp.Do(ctx, chromedp.Navigate("about:blank"), chromedp.EmulateViewport(1360, 820)))
	_, err = chromedp.Call(ctx, network.Enable, network.EnableParams{})
	require.NoError(t, err)
	require.NoError(t, chromedp.Listen(ctx, p.heard))
	_, err = chromedp.Call(ctx, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: prelude})
	require.NoError(t, err)
	return p
}

// heard records an event of the browser.
func (p *tab) heard(event any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		p.addHost(e.Request.URL)
	case *network.EventWebSocketCreated:
		p.addHost(e.URL)
	case *runtime.EventExceptionThrown:
		fault := e.ExceptionDetails.Text + " " + e.ExceptionDetails.URL
		if thrown := e.ExceptionDetails.Exception; thrown != nil {
			fault += " " + thrown.Description
		}
		p.faults = append(p.faults, fault)
	case *page.EventJavascriptDialogOpening:
		p.faults = append(p.faults, "dialog: "+e.Message)
	default:
		collect(p, event)
	}
}

func (p *tab) addHost(address string) {
	if u, err := url.Parse(address); err == nil && u.Host != "" {
		p.hosts[u.Host] = true
	}
}

func (p *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	require.NoError(p.t, chromedp.Do(p.ctx, steps...))
}

// eval returns the value of an expression, which may be a promise.
func eval[T any](p *tab, expression string) T {
	p.t.Helper()
	result, err := chromedp.Run(p.ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	require.NoError(p.t, err, expression)
	return result
}

// until waits for an expression to be true.
func (p *tab) until(what, expression string) {
	p.t.Helper()
	deadline := time.Now().Add(wait)
	for {
		ok, err := chromedp.Run(p.ctx, chromedp.Evaluate[bool](expression))
		if err == nil && ok {
			return
		}
		if time.Now().After(deadline) {
			p.shot("failed")
			text, _ := chromedp.Run(p.ctx, chromedp.Evaluate[string](`document.body.innerText`))
			p.t.Fatalf("the page never shows: %s (%v)\n%s", what, err, text)
		}
		time.Sleep(30 * time.Millisecond)
	}
}

// shows waits for a text in an element.
func (p *tab) shows(selector, text string) {
	p.t.Helper()
	p.until(selector+" with "+text, fmt.Sprintf("test.says(%s, %s)", quote(selector), quote(text)))
}

// click clicks the middle of an element that has a name, until the click reaches it: what moves
// meanwhile, as a drawer that opens, gets it elsewhere.
func (p *tab) click(selector, name string) {
	p.t.Helper()
	place := fmt.Sprintf("test.place(%s, %s)", quote(selector), quote(name))
	berthtest.Until(p.t, wait, "a click on "+selector+" named "+name, func() bool {
		at, _ := chromedp.Run(p.ctx, chromedp.Evaluate[[]float64](place))
		if len(at) != 2 {
			return false
		}
		p.do(chromedp.MouseClickXY(at[0], at[1]))
		missed, err := chromedp.Run(p.ctx, chromedp.Evaluate[bool]("test.clicked === false"))
		return err != nil || !missed // a click that leads to another page leaves nothing to ask
	})
}

// answer clicks a button of the open dialog, and waits until the dialog is gone.
func (p *tab) answer(name string) {
	p.t.Helper()
	p.until("a dialog", "!!document.querySelector('dialog[open]')")
	p.click("button", name)
	p.until("no dialog", "!document.querySelector('dialog[open]')")
}

// fill types a text into the input with a label, in place of its content.
func (p *tab) fill(label, text string) {
	p.t.Helper()
	focused := fmt.Sprintf("document.activeElement === test.find('input, textarea', %s)", quote(label))
	berthtest.Until(p.t, wait, "the focus in "+label, func() bool { // a page that moves meanwhile gets the click elsewhere
		p.click("input, textarea", label)
		return eval[bool](p, focused)
	})
	eval[any](p, "document.activeElement.select?.()")
	p.do(chromedp.KeyEvent(text))
}

func (p *tab) keys(keys string) { p.t.Helper(); p.do(chromedp.KeyEvent(keys)) }

// login opens the page of a daemon, and logs in.
func (p *tab) login(b *berthtest.Berth, token string) {
	p.t.Helper()
	visitLogin(p, b)
	p.keys(token + "\r")
	p.shows(".strip", "Ready")
}

// visitLogin opens the page of a daemon.
func visitLogin(p *tab, b *berthtest.Berth) {
	p.t.Helper()
	p.open("http://"+b.Addr+"/ui/", "document.activeElement?.id === 'token'")
}

// open loads an address, and waits until an expression is true.
func (p *tab) open(address, expression string) {
	p.t.Helper()
	p.do(chromedp.Navigate("about:blank"), chromedp.Navigate(address)) // another fragment alone loads nothing
	p.until(address, expression)
}

// goTo changes the place in the page.
func (p *tab) goTo(place string) { p.t.Helper(); eval[any](p, "location.hash = "+quote(place)) }

// clean requires that nothing was refused, thrown or sent elsewhere.
func (p *tab) clean(b *berthtest.Berth) {
	p.t.Helper()
	require.Empty(p.t, eval[[]string](p, "test.violations"), "CSP")
	p.mu.Lock()
	defer p.mu.Unlock()
	require.Empty(p.t, p.faults)
	require.Equal(p.t, map[string]bool{b.Addr: true}, p.hosts, "requests to other hosts")
}

// axeCore returns the code of axe-core, which it installs if it is missing.
var axeCore = sync.OnceValues(func() ([]byte, error) {
	return exec.Command("./npm.sh", "sh", "-c", `cat "$PACKAGES/axe-core/axe.min.js"`).Output()
})

// axe requires that axe-core finds nothing serious in what is shown.
func (p *tab) axe(view string) {
	p.t.Helper()
	before := eval[int](p, "test.violations.length")
	if !eval[bool](p, "!!window.axe") {
		source, err := axeCore()
		require.NoError(p.t, err)
		eval[any](p, "void (() => {"+string(source)+"\n})()")
	}
	found := eval[string](p, `axe.run(document, { resultTypes: ['violations'] }).then((r) => JSON.stringify(r.violations
		.filter((v) => ['serious', 'critical'].includes(v.impact))
		.map((v) => [v.id, v.nodes.map((n) => n.html.slice(0, 200) + ' ' + n.failureSummary)])))`)
	require.Equal(p.t, "[]", found, view)
	eval[any](p, "test.violations.length = "+strconv.Itoa(before)) // those of axe-core itself
}

// scheme sets the colours that the user prefers.
func (p *tab) scheme(name string) {
	p.t.Helper()
	_, err := chromedp.Call(p.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}}})
	require.NoError(p.t, err)
}

// shot stores a screenshot in the directory of BERTH_SCREENSHOTS.
func (p *tab) shot(name string) {
	dir := os.Getenv("BERTH_SCREENSHOTS")
	if dir == "" {
		return
	}
	picture, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, name+".png"), picture, 0o644)
	}
	if err != nil {
		p.t.Log(err)
	}
}

func quote(text string) string {
	out, _ := json.Marshal(text) // a string
	return string(out)
}
