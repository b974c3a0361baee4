package e2e_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"berth/hack/test/berthtest"
)

// stored is a transition in GET /events.
type stored struct {
	Seq                    uint64
	Time                   string
	Container, Event, Data string
}

func events(t *testing.T, b *berthtest.Berth) (all []stored) {
	t.Helper()
	var body struct{ Events []stored }
	b.Get(t, "/events?limit=10000", &body)
	return body.Events
}

// checkNumbers requires that a node-wide socket that was open from the beginning
// has received every stored transition once, in order, without a gap in seq, and
// equal to GET /events; and that the last one of each container is its state.
func checkNumbers(t *testing.T, b *berthtest.Berth, s *berthtest.Socket) {
	t.Helper()
	all := events(t, b)
	newest := all[len(all)-1].Seq
	s.Await(t, "the newest transition", func(received []berthtest.Message) bool { return lastSeq(received) >= newest })
	var received []berthtest.Message
	for _, m := range s.Messages() {
		if m.Seq > 0 && m.Seq <= newest {
			received = append(received, m)
		}
	}
	require.Len(t, received, len(all))
	last := map[string]string{}
	for i, e := range all {
		require.EqualValues(t, i+1, e.Seq, "numbers without a gap")
		m := received[i]
		require.Equal(t, e, stored{m.Seq, m.Time.Format(timeFormat), m.Container, m.Event, m.Data})
		if e.Event == "event" {
			last[e.Container] = e.Data
		}
	}
	var list struct{ Containers []berthtest.Container }
	b.Get(t, "/containers", &list)
	for _, c := range list.Containers {
		require.Equal(t, last[c.InternalID], string(c.State), c.InternalID)
	}
}

const timeFormat = "2006-01-02T15:04:05.999999999Z07:00"

func lastSeq(all []berthtest.Message) (seq uint64) {
	for _, m := range all {
		seq = max(seq, m.Seq)
	}
	return seq
}
