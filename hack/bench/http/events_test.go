package http_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/hack/bench/table"
	"berth/hack/test/berthtest"
	"berth/store"
)

// quiet is the container whose transitions are read, and how many it has.
const (
	quiet      = "quiet"
	ofTheQuiet = 100
)

// withEvents returns a daemon without an engine, with n transitions, every so many of
// them of one container.
func withEvents(b *testing.B, n int) *berthtest.Berth {
	b.Helper()
	d := berthtest.Prepare(b, berthtest.Options{Env: []string{noEngine}})
	s, err := store.Open(filepath.Join(d.Data, "store"), store.Options{})
	require.NoError(b, err)
	for from := 0; from < n; from += 1000 {
		require.NoError(b, s.Update(func(tx *store.Tx) error {
			for i := from; i < min(n, from+1000); i++ {
				e := v1.Event{Container: "busy", Event: v1.EventState, Data: string(v1.Running)}
				if i%(n/ofTheQuiet) == 0 {
					e.Container = quiet
				}
				store.Emit(tx, e)
			}
			return nil
		}))
	}
	require.NoError(b, s.Close())
	d.Run(b)
	d.Answers(b, "/healthz")
	idle(b, d.Pid())
	return d
}

// BenchmarkEventsOfOne reads the transitions of one container among 100,000, against the
// same among no others.
func BenchmarkEventsOfOne(b *testing.B) {
	const path = "/events?container=" + quiet + "&since=1"
	many, few := withEvents(b, 100_000), withEvents(b, ofTheQuiet)
	row := table.Row{Measure: "GET /events?container= among 100,000, CPU", Unit: "µs", Goal: table.AtMost(1.2)}
	for range rounds {
		for to, d := range map[*[]float64]*berthtest.Berth{&row.Berth: many, &row.Floor: few} {
			size := len(d.Do(b, "GET", path, nil).Body)
			*to = append(*to, target{d.Addr, d.Pid()}.load(b, get(d, path), size, round).cpu)
		}
	}
	table.Add(b, row)
}
