package soak_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"berth/hack/test/berthtest"
)

// start is one start of the good tenant's container.
type start struct {
	began, answered   time.Time     // the request and its answer
	starting, running time.Time     // when the socket received these states
	bare              time.Duration // a start of the bare container right after it
	afterRestart      bool          // the first one after a restart of the engine
}

func (s start) took() time.Duration { return s.running.Sub(s.began) }

// parts returns how long each part of a start took, in the columns of partsRow. The state
// starting is stored before the engine's call, with the permit for it.
func (s start) parts() []time.Duration {
	return []time.Duration{s.answered.Sub(s.began), s.starting.Sub(s.answered), s.running.Sub(s.starting), s.bare}
}

// starts are those of one phase.
type starts []start

func (l starts) quantile(q float64) time.Duration { return l.quantileOf(q, start.took) }

func (l starts) quantileOf(q float64, value func(start) time.Duration) time.Duration {
	var sorted []time.Duration
	for _, s := range l {
		sorted = append(sorted, value(s))
	}
	slices.Sort(sorted)
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

func (l starts) ratio(base starts) float64 {
	return float64(l.quantile(0.99)) / float64(base.quantile(0.99))
}

// afterRestarts returns how many starts were the first ones after a restart of the engine.
func (l starts) afterRestarts() (n int) {
	for _, s := range l {
		if s.afterRestart {
			n++
		}
	}
	return n
}

// row is a line of the table: the count, the median, the 99th percentile, the starts that
// were the first ones after a restart of the engine, and the 99th percentile of the others.
func (l starts) row(name string) string {
	others := l.withoutRestarts()
	text := fmt.Sprintf("%-24s %6d %8s %8s %14d", name, len(l), milliseconds(l.quantile(0.5)), milliseconds(l.quantile(0.99)), l.afterRestarts())
	if len(others) > 0 {
		text += fmt.Sprintf(" %12s", milliseconds(others.quantile(0.99)))
	}
	return text
}

// partsRow is a line of the second table: the median of each part, the 99th percentile, and
// the mean within the slowest tenth of the starts.
func (l starts) partsRow(name string) string {
	slow := l.slowest(0.1)
	text := fmt.Sprintf("%-24s", name)
	for i := range l[0].parts() {
		part := func(s start) time.Duration { return s.parts()[i] }
		var sum time.Duration
		for _, s := range slow {
			sum += part(s)
		}
		text += fmt.Sprintf(" %20s", fmt.Sprintf("%d %d %d", l.quantileOf(0.5, part).Milliseconds(),
			l.quantileOf(0.99, part).Milliseconds(), (sum/time.Duration(len(slow))).Milliseconds()))
	}
	return text
}

// withoutRestarts returns the starts that were not the first ones after a restart of the engine.
func (l starts) withoutRestarts() starts {
	return slices.DeleteFunc(slices.Clone(l), func(s start) bool { return s.afterRestart })
}

func milliseconds(d time.Duration) string { return fmt.Sprintf("%dms", d.Milliseconds()) }

// slowest returns the slowest share of the starts, at least one.
func (l starts) slowest(share float64) starts {
	sorted := slices.SortedFunc(slices.Values(l), func(a, b start) int { return int(b.took() - a.took()) })
	return sorted[:max(1, int(share*float64(len(sorted))))]
}

// period is when a container was started: from its transition to starting until the next one.
type period struct{ from, until time.Time }

// during returns how many starts overlap one of the periods.
func (l starts) during(periods []period) (n int) {
	for _, s := range l {
		if slices.ContainsFunc(periods, func(p period) bool { return p.from.Before(s.running) && p.until.After(s.began) }) {
			n++
		}
	}
	return n
}

// startsOf returns when berth started a container, from its transitions after since, and
// the number of the last one.
func startsOf(t *testing.T, b *berthtest.Berth, id string, since uint64) (list []period, last uint64) {
	t.Helper()
	var body struct {
		Events []struct {
			Seq         uint64
			Time        time.Time
			Event, Data string
		}
	}
	b.Get(t, fmt.Sprintf("/events?container=%s&since=%d&limit=10000", id, since), &body)
	last = since
	for _, e := range body.Events {
		last = e.Seq
		if e.Event != "event" {
			continue
		}
		if n := len(list) - 1; n >= 0 && list[n].until.IsZero() {
			list[n].until = e.Time
		}
		if e.Data == "starting" {
			list = append(list, period{from: e.Time})
		}
	}
	if n := len(list) - 1; n >= 0 && list[n].until.IsZero() {
		list[n].until = time.Now()
	}
	return list, last
}

// phases are the starts of the good tenant by what happened on the host meanwhile.
type phases struct {
	alone, restarts, attack starts
	hostile                 []period // starts of the hostile tenant during the attack
}

// report logs the table and what the slowest starts of the attack coincided with.
func (p phases) report(t *testing.T) {
	t.Helper()
	t.Logf("%-24s %6s %8s %8s %14s %12s", "starts of the good tenant", "n", "p50", "p99", "after restarts", "p99 of others")
	t.Log(p.alone.row("alone, no restarts"))
	t.Log(p.restarts.row("alone, restarts"))
	t.Log(p.attack.row("under attack, restarts"))
	t.Logf("p99 ratio of the attack: %.2f to alone with restarts, %.2f to alone without", p.attack.ratio(p.restarts), p.attack.ratio(p.alone))
	t.Logf("%-24s %20s %20s %20s %20s", "ms: p50 p99 slow-tenth", "request-answer", "answer-starting", "starting-running", "bare container")
	for _, phase := range []struct {
		name string
		starts
	}{{"alone, no restarts", p.alone}, {"alone, restarts", p.restarts}, {"under attack, restarts", p.attack}} {
		t.Log(phase.partsRow(phase.name))
		if others := phase.withoutRestarts(); len(others) < len(phase.starts) && len(others) > 0 {
			t.Log(others.partsRow("  of it not after one"))
		}
	}
	bare := func(s start) time.Duration { return s.bare }
	t.Logf("p99 ratio of the bare container: %.2f to alone with restarts, %.2f to alone without",
		float64(p.attack.quantileOf(0.99, bare))/float64(p.restarts.quantileOf(0.99, bare)),
		float64(p.attack.quantileOf(0.99, bare))/float64(p.alone.quantileOf(0.99, bare)))
	slow := p.attack.slowest(0.02)
	t.Logf("the slowest 2 %% of the attack (%d): %d were the first after a restart, %d coincided with one of the %d starts of the hostile container; of all, %d did",
		len(slow), slow.afterRestarts(), slow.during(p.hostile), len(p.hostile), p.attack.during(p.hostile))
}
