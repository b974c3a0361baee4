package ui_test

import (
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"berth/api/ui"
	v1 "berth/api/v1"
	"berth/hack/bench/table"
	"berth/hack/test/berthtest"
)

// withoutEngine starts a daemon whose engine does not answer: the page shows a list, and
// no engine has to create all of it.
func withoutEngine(b *testing.B) *berthtest.Berth {
	b.Helper()
	d := berthtest.Prepare(b, berthtest.Options{Config: "reconcile: {create_wait: 0s}", Env: []string{"DOCKER_HOST=unix:///nonexistent.sock"}})
	d.Run(b)
	d.Answers(b, "/healthz")
	return d
}

// list creates n containers on a volume.
func list(b *testing.B, d *berthtest.Berth, volume, prefix string, n int) {
	b.Helper()
	const writers = 20 // whose requests share commits
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for i := w; i < n; i += writers {
				assert.NoError(b, d.API.Containers().Create(b.Context(), v1.ContainerSpec{InternalID: fmt.Sprintf("%s-%04d", prefix, i), Image: "games/survival:1",
					VolumeID: volume, Labels: map[string]string{"customer": fmt.Sprint(i)}}))
			}
		})
	}
	all.Wait()
}

// loggedIn opens the page of a daemon, and logs in.
func loggedIn(b *testing.B, d *berthtest.Berth) *tab {
	b.Helper()
	p := openTab(b)
	visitLogin(p, d)
	p.keys(d.Token + "\r")
	p.until("the strip", "!!document.querySelector('.strip')")
	return p
}

// firstRows loads the page as a browser does that has none of its files. It returns the
// ms from the address to the first painted row, and the CPU time of the main thread.
func firstRows(p *tab, d *berthtest.Berth) (wall, cpu float64) {
	p.t.Helper()
	_, err := chromedp.Call(p.ctx, network.SetCacheDisabled, network.SetCacheDisabledParams{CacheDisabled: true})
	require.NoError(p.t, err)
	p.do(chromedp.Navigate("about:blank"))
	found := trace(p, func() {
		p.do(chromedp.Navigate("http://" + d.Addr + "/ui/"))
		wall = eval[float64](p, `new Promise((done) => {
			const look = () => (document.querySelector('.rows .row') ? setTimeout(() => done(performance.now())) : requestAnimationFrame(look));
			look();
		})`)
	})
	for _, one := range found.cpu {
		cpu += one
	}
	return wall, cpu
}

// BenchmarkPage measures the page with long lists: the time from the address to rows, and
// from a key in the filter to the painted result.
func BenchmarkPage(b *testing.B) {
	d := withoutEngine(b)
	volume := d.Volume(b)
	list(b, d, volume, "server", 500)
	p := loggedIn(b, d)
	first := table.Row{Measure: "page, first rows of 500 containers, cold cache", Unit: "ms", Goal: table.AtMost(1000)}
	cpu := table.Row{Measure: "page, its main thread until then (CPU)", Unit: "ms", Goal: table.AtMost(300)}
	for range 9 {
		wall, used := firstRows(p, d)
		first.Berth, cpu.Berth = append(first.Berth, wall), append(cpu.Berth, used)
	}
	b.Logf("first rows: %.0f ms", first.Berth)
	table.Add(b, first)
	table.Add(b, cpu)
	list(b, d, volume, "lobby", 500)
	p.until("all rows", "document.querySelector('.count')?.textContent === '1000'")
	filter := table.Row{Measure: "page, a key in the filter of 1,000 containers", Unit: "ms", Goal: table.AtMost(50)}
	for _, text := range []string{"s", "se", "server-04", "server-049", "state:installing", "!server-1", "customer=7", ""} {
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

// loudest is the command of a container that prints well over 10,000 lines a second.
const loudest = `while :; do awk 'BEGIN { for (i = 0; i < 2000; i++) printf "\033[32m[INFO]\033[0m chunk \033[1;36m%d\033[0m of the world is saved\n", i }'; sleep 0.09; done`

// BenchmarkPageConsole measures the page while a container prints 10,000 lines a second:
// the longest task, and the memory at the end. BERTH_CONSOLE_TIME is how long (20s).
func BenchmarkPageConsole(b *testing.B) {
	d := berthtest.Start(b, berthtest.Options{})
	d.Made(b, "loud", berthtest.Spec{"startup_command": loudest})
	p := loggedIn(b, d)
	p.goTo("#/containers/loud/console")
	p.click("button", "Start")
	p.shows(".line", "INFO")
	long, err := time.ParseDuration(os.Getenv("BERTH_CONSOLE_TIME"))
	if err != nil {
		long = 20 * time.Second
	}
	task := table.Row{Measure: "page, longest task at 10,000 console lines/s (CPU)", Unit: "ms", Goal: table.AtMost(100)}
	heap := table.Row{Measure: "page, memory at 10,000 console lines/s", Unit: "MiB", Goal: table.AtMost(50)}
	var all tasks
	received := func() float64 {
		return eval[float64](p, "Number([...document.querySelectorAll('.line')].at(-1).dataset.number)")
	}
	before, began := received(), time.Now()
	for time.Since(began) < long {
		found := trace(p, func() { time.Sleep(min(long/10, 20*time.Second)) })
		all.wall, all.cpu = append(all.wall, found.wall...), append(all.cpu, found.cpu...)
		mib, count := memoryOf(p)
		heap.Berth = []float64{max(longest(heap.Berth), mib)}
		b.Logf("%d tasks, the longest %.1f ms CPU, %.1f ms wall; %.1f MiB, %.0f nodes", len(found.cpu), longest(found.cpu), longest(found.wall), mib, count)
	}
	task.Berth = []float64{longest(all.cpu)}
	table.Add(b, task)
	table.Add(b, heap)
	table.Add(b, table.Row{Measure: "page, console lines/s that it received", Unit: "lines/s",
		Berth: []float64{(received() - before) / time.Since(began).Seconds()}, Goal: table.AtLeast(10_000)})
	require.LessOrEqual(b, eval[int](p, "document.querySelectorAll('.line').length"), 1000)
}
