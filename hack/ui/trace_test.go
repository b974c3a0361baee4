package ui_test

import (
	"encoding/json"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/cdproto/memory"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/tracing"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// traceEvent is an event of Chromium's trace. A task has its wall time and the CPU time
// of its thread, which the load of other processes does not change.
type traceEvent struct {
	Name string  `json:"name"`
	Pid  int     `json:"pid"`
	Tid  int     `json:"tid"`
	Wall float64 `json:"dur"`  // µs
	CPU  float64 `json:"tdur"` // µs
	Args struct {
		Name string `json:"name"`
	} `json:"args"`
}

// tasks are those of the page's main thread.
type tasks struct {
	wall, cpu []float64 // ms of each
}

// longest returns the longest of some times.
func longest(times []float64) (most float64) {
	for _, one := range times {
		most = max(most, one)
	}
	return most
}

// trace records the tasks of the page's main thread while run runs.
func trace(p *tab, run func()) (found tasks) {
	p.t.Helper()
	p.traced = make(chan []traceEvent, 1)
	_, err := chromedp.Call(p.ctx, tracing.Start, tracing.StartParams{TransferMode: tracing.StartTransferModeReportEvents,
		TraceConfig: &tracing.TraceConfig{RecordMode: tracing.TraceConfigRecordModeRecordUntilFull,
			IncludedCategories: []string{"disabled-by-default-devtools.timeline"}, ExcludedCategories: []string{"*"}}})
	require.NoError(p.t, err)
	run()
	_, err = chromedp.Call(p.ctx, tracing.End, cdp.Empty{})
	require.NoError(p.t, err)
	var events []traceEvent
	select {
	case events = <-p.traced:
	case <-time.After(wait):
		p.t.Fatal("the trace never ends")
	}
	main := map[[2]int]bool{}
	for _, e := range events {
		if e.Name == "thread_name" && e.Args.Name == "CrRendererMain" {
			main[[2]int{e.Pid, e.Tid}] = true
		}
	}
	for _, e := range events {
		if e.Name == "RunTask" && main[[2]int{e.Pid, e.Tid}] {
			found.wall = append(found.wall, e.Wall/1000)
			found.cpu = append(found.cpu, e.CPU/1000)
		}
	}
	require.Positive(p.t, longest(found.cpu), "the trace has the CPU time of tasks")
	return found
}

// collect keeps the events of a trace, and hands them over at its end.
func collect(p *tab, event any) {
	switch e := event.(type) {
	case *tracing.EventDataCollected:
		for _, raw := range e.Value {
			var one traceEvent
			if json.Unmarshal(raw, &one) == nil {
				p.events = append(p.events, one)
			}
		}
	case *tracing.EventTracingComplete:
		p.traced <- p.events
		p.events = nil
	}
}

// memoryOf returns the MiB of the page's JavaScript, and the number of its DOM nodes, both
// after a collection of garbage.
func memoryOf(p *tab) (heap, nodes float64) {
	p.t.Helper()
	_, err := chromedp.Call(p.ctx, heapprofiler.CollectGarbage, cdp.Empty{})
	require.NoError(p.t, err)
	usage, err := chromedp.Call(p.ctx, runtime.GetHeapUsage, cdp.Empty{})
	require.NoError(p.t, err)
	counters, err := chromedp.Call(p.ctx, memory.GetDOMCounters, cdp.Empty{})
	require.NoError(p.t, err)
	return usage.UsedSize / (1 << 20), float64(counters.Nodes)
}
