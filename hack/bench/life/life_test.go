package life

import (
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"berth/hack/bench/table"
	"berth/hack/test/berthtest"
	"berth/hack/test/enginetest"
)

const (
	many     = 50
	twinName = "berth-bench-twin"

	turns     = 20 // of a start and a kill
	fifties   = 3
	comeBacks = 9
)

// limited is the settings of every container here.
func limited(more berthtest.Spec) berthtest.Spec {
	spec := berthtest.Spec{"limits": map[string]any{"memory": 64 << 20, "cpu": 1}}
	for k, v := range more {
		spec[k] = v
	}
	return spec
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func median(of []float64) float64 {
	slices.Sort(of)
	return of[len(of)/2]
}

// report shows the medians of what berth and the bare API took, and their ratio.
func report(b *testing.B, what string, berth, bare []float64) {
	b.Helper()
	table.Add(b, table.Row{Measure: what + " until its event", Unit: "ms", Berth: berth, Floor: bare, Goal: table.AtMost(1.05)})
	b.ReportMetric(median(berth), what+"-berth-ms")
	b.ReportMetric(median(bare), what+"-bare-ms")
	b.ReportMetric(median(berth)/median(bare), what+"-ratio")
	b.ReportMetric(0, "ns/op")
}

// twinOf is the settings of a container of berth's, read back by inspect, for
// the bare API.
func twinOf(of enginetest.Container) map[string]any {
	spec := map[string]any{"HostConfig": of.Raw["HostConfig"]}
	for k, v := range of.Raw["Config"].(map[string]any) {
		if k != "Labels" && k != "Hostname" {
			spec[k] = v
		}
	}
	return spec
}

// verb posts a verb and returns the milliseconds until a socket receives the state.
func verb(b *testing.B, d *berthtest.Berth, s *berthtest.Socket, verb, state string) float64 {
	b.Helper()
	received := len(s.Messages())
	began := time.Now()
	d.Verb(b, "mc", verb)
	m, _ := s.Event(b, received, "mc", state)
	return milliseconds(m.Read.Sub(began))
}

func bareVerb(b *testing.B, e *enginetest.Client, verb string) float64 {
	b.Helper()
	began := time.Now()
	e.Must(b, http.MethodPost, "/containers/"+twinName+"/"+verb, nil)
	return milliseconds(time.Since(began))
}

// BenchmarkStartAndKill alternates: POST start and POST restart to the event running against the
// engine's own start and restart, and POST kill to exit against its own kill.
func BenchmarkStartAndKill(b *testing.B) {
	d := berthtest.Start(b, berthtest.Options{})
	s := d.Listen(b, "/ws")
	d.Made(b, "mc", limited(nil))
	mine, _ := d.Engine.Inspect(b, d.Container(b, "mc").ContainerID)
	d.Engine.Must(b, http.MethodPost, "/containers/create?name="+twinName, twinOf(mine))
	defer d.Engine.Do(b, http.MethodDelete, "/containers/"+twinName+"?force=1", nil)
	bare, _ := d.Engine.Inspect(b, twinName)
	require.True(b, reflect.DeepEqual(mine.Raw["HostConfig"], bare.Raw["HostConfig"]), "the same settings")

	var starts, bareStarts, restarts, bareRestarts, kills, bareKills []float64
	for range turns {
		starts = append(starts, verb(b, d, s, "start", "running"))
		bareStarts = append(bareStarts, bareVerb(b, d.Engine, "start"))
		restarts = append(restarts, verb(b, d, s, "restart", "running"))
		bareRestarts = append(bareRestarts, bareVerb(b, d.Engine, "restart"))
		kills = append(kills, verb(b, d, s, "kill", "exit"))
		bareKills = append(bareKills, bareVerb(b, d.Engine, "kill"))
	}
	report(b, "start", starts, bareStarts)
	report(b, "restart", restarts, bareRestarts)
	report(b, "kill", kills, bareKills)
}

// BenchmarkFifty creates and starts fifty containers at once, against the bare
// API with the best of some numbers of workers.
func BenchmarkFifty(b *testing.B) {
	d := berthtest.Start(b, berthtest.Options{})
	d.Made(b, "model", limited(nil))
	model, _ := d.Engine.Inspect(b, d.Container(b, "model").ContainerID)
	mine, bare := []float64{}, map[int][]float64{}
	for range fifties {
		mine = append(mine, fifty(b, d))
		for i := range many {
			d.Delete(b, fmt.Sprintf("m%d", i))
		}
		for _, workers := range []int{2, 4, 8} {
			bare[workers] = append(bare[workers], bareFifty(b, d.Engine, twinOf(model), workers))
			for i := range many {
				d.Engine.Must(b, http.MethodDelete, fmt.Sprintf("/containers/%s-%d?force=1", twinName, i), nil)
			}
		}
	}
	best := bare[4]
	for workers, took := range bare {
		b.ReportMetric(many*1000/median(took), fmt.Sprintf("bare-%d-workers/s", workers))
		if median(took) < median(best) {
			best = took
		}
	}
	table.Add(b, table.Row{Measure: "50 created and started at once", Unit: "/s", Berth: rates(mine), Floor: rates(best), Goal: table.AtLeast(0.9)})
	b.ReportMetric(0, "ns/op")
}

// rates returns the containers a second of what fifty of them took, in ms.
func rates(took []float64) (list []float64) {
	for _, ms := range took {
		list = append(list, many*1000/ms)
	}
	return list
}

func fifty(b *testing.B, d *berthtest.Berth) float64 {
	b.Helper()
	s := d.Listen(b, "/ws")
	defer s.Close()
	bodies := make([]berthtest.Spec, many)
	for i := range bodies {
		bodies[i] = d.Body(b, fmt.Sprintf("m%d", i), limited(berthtest.Spec{"power": "running"}))
	}
	began := time.Now()
	var wg sync.WaitGroup
	for _, body := range bodies {
		wg.Go(func() { d.Post(b, "/containers", body) })
	}
	seen, run := 0, 0
	s.Await(b, "all run", func(all []berthtest.Message) bool {
		for _, m := range all[seen:] {
			if m.Event == "event" && m.Data == "running" {
				run++
			}
		}
		seen = len(all)
		return run == many
	})
	took := time.Since(began)
	wg.Wait()
	return milliseconds(took)
}

func bareFifty(b *testing.B, e *enginetest.Client, spec map[string]any, workers int) float64 {
	b.Helper()
	names := make(chan string, many)
	for i := range many {
		names <- fmt.Sprintf("%s-%d", twinName, i)
	}
	close(names)
	began := time.Now()
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for name := range names {
				e.Must(b, http.MethodPost, "/containers/create?name="+name, spec)
				e.Must(b, http.MethodPost, "/containers/"+name+"/start", nil)
			}
		})
	}
	wg.Wait()
	return milliseconds(time.Since(began))
}

// BenchmarkComeBack kills a daemon with fifty running containers, starts it
// again, and measures until it answers, is ready, and reports all as running.
func BenchmarkComeBack(b *testing.B) {
	d := berthtest.Start(b, berthtest.Options{})
	fifty(b, d)
	var ping, ready, all []float64
	for range comeBacks {
		d.Kill9(b)
		began := time.Now()
		d.Run(b)
		d.Answers(b, "/api/v1/public/ping")
		ping = append(ping, milliseconds(time.Since(began)))
		d.Ready(b)
		ready = append(ready, milliseconds(time.Since(began)))
		berthtest.Until(b, time.Minute, "all run", func() bool { return running(b, d) == many })
		all = append(all, milliseconds(time.Since(began)))
	}
	table.Add(b, table.Row{Measure: "kill -9 with 50 running until all are running", Unit: "ms", Berth: all, Goal: table.AtMost(250)})
	b.ReportMetric(median(ping), "ping-ms")
	b.ReportMetric(median(ready), "ready-ms")
	b.ReportMetric(median(all), "all-running-ms")
	b.ReportMetric(0, "ns/op")
}

func running(b *testing.B, d *berthtest.Berth) (n int) {
	b.Helper()
	var list struct {
		Containers []struct{ State string }
	}
	d.Get(b, "/containers", &list)
	for _, c := range list.Containers {
		if c.State == "running" {
			n++
		}
	}
	return n
}
