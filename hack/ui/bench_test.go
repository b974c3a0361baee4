package ui_test

import (
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"berth/api/client"
	"berth/api/ui"
	"berth/hack/bench/table"
	"berth/hack/berthtest"
)

// listed starts a daemon with n containers, whose engine does not answer: the page
// shows a list, and no engine has to create all of it.
func listed(b *testing.B, n int) *berthtest.Berth {
	b.Helper()
	d := berthtest.Prepare(b, berthtest.Options{Config: "reconcile: {create_wait: 0s}", Env: []string{"DOCKER_HOST=unix:///nonexistent.sock"}})
	d.Run(b)
	d.Answers(b, "/healthz")
	volume := d.Volume(b)
	const writers = 20 // whose requests share commits
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for i := w; i < n; i += writers {
				assert.NoError(b, d.API.Containers().Create(b.Context(), client.ContainerSpec{InternalID: fmt.Sprintf("server-%04d", i), Image: "games/survival:1",
					VolumeID: volume, Labels: map[string]string{"customer": fmt.Sprint(i)}}))
			}
		})
	}
	all.Wait()
	return d
}

// loggedIn opens the page of a daemon with the token in the session.
func loggedIn(b *testing.B, d *berthtest.Berth) *tab {
	b.Helper()
	p := openTab(b)
	p.do(chromedp.Navigate("http://" + d.Addr + "/ui/"))
	eval[any](p, "sessionStorage.setItem('berth.token', "+quote(d.Token)+")")
	return p
}

// BenchmarkPage measures the page with long lists: the time from the address to rows, and
// from a key in the filter to the painted result.
func BenchmarkPage(b *testing.B) {
	d := listed(b, 1000)
	p := loggedIn(b, d)
	first := table.Row{Measure: "page, first rows of 1,000 containers", Unit: "ms", Goal: table.AtMost(1000)}
	for range 5 {
		p.do(chromedp.Navigate("about:blank"), chromedp.Navigate("http://"+d.Addr+"/ui/"))
		first.Berth = append(first.Berth, eval[float64](p, `new Promise((done) => {
			const look = () => (document.querySelector('.rows .row') ? done(performance.now()) : requestAnimationFrame(look));
			look();
		})`))
	}
	table.Add(b, first)
	filter := table.Row{Measure: "page, a key in the filter of 1,000 containers", Unit: "ms", Goal: table.AtMost(50)}
	for _, text := range []string{"s", "se", "server-09", "server-099", "state:installing", "!server-1", "customer=7", ""} {
		filter.Berth = append(filter.Berth, eval[float64](p, `new Promise((done) => {
			const input = document.querySelector('.filter');
			const began = performance.now();
			input.value = `+quote(text)+`;
			input.dispatchEvent(new Event('input', { bubbles: true }));
			requestAnimationFrame(() => setTimeout(() => done(performance.now() - began)));
		})`))
	}
	table.Add(b, filter)
	page, err := ui.New()
	require.NoError(b, err)
	table.Add(b, table.Row{Measure: "page, all assets compressed", Unit: "bytes", Berth: []float64{float64(page.Size())}, Goal: table.AtMost(100_000)})
}

// BenchmarkPageConsole measures the page while a container prints 10,000 lines a second:
// the longest task, and the memory at the end. BERTH_CONSOLE_TIME is how long (20s).
func BenchmarkPageConsole(b *testing.B) {
	d := berthtest.Start(b, berthtest.Options{})
	d.Made(b, "loud", berthtest.Spec{"startup_command": "while :; do seq 1 1000; sleep 0.09; done"})
	p := loggedIn(b, d)
	p.do(chromedp.Navigate("http://" + d.Addr + "/ui/#/containers/loud/console"))
	p.do(chromedp.Reload())
	p.click("button", "Start")
	p.shows(".line", "1000")
	long, err := time.ParseDuration(os.Getenv("BERTH_CONSOLE_TIME"))
	if err != nil {
		long = 20 * time.Second
	}
	heap := func() float64 { return eval[float64](p, "performance.memory.usedJSHeapSize") / (1 << 20) }
	eval[any](p, "test.longest = 0")
	task := table.Row{Measure: "page, longest task at 10,000 console lines/s", Unit: "ms", Goal: table.AtMost(100)}
	memory := table.Row{Measure: "page, memory at 10,000 console lines/s", Unit: "MiB", Goal: table.AtMost(100)}
	for end := time.Now().Add(long); time.Now().Before(end); {
		time.Sleep(long / 10)
		memory.Berth = append(memory.Berth, heap())
	}
	task.Berth = []float64{eval[float64](p, "test.longest")}
	table.Add(b, task)
	table.Add(b, memory)
	b.Logf("heap of each tenth, MiB: %.0f", memory.Berth)
	require.LessOrEqual(b, eval[int](p, "document.querySelectorAll('.line').length"), 1000)
}
