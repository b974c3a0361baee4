package store

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
)

// emitOf stores n transitions, one of each container in turn, and of the node.
func emitOf(t testing.TB, s *Store, n int, containers ...string) {
	require.NoError(t, s.Update(func(tx *Tx) error {
		for i := range n {
			Emit(tx, v1.Event{Container: containers[i%len(containers)], Event: v1.EventState, Data: fmt.Sprint(i)})
		}
		return nil
	}))
}

// seqsOf returns the seqs of ReadEventsOf.
func seqsOf(t testing.TB, s *Store, since uint64, limit int, containers ...string) (seqs []uint64) {
	require.NoError(t, s.View(func(tx *Tx) error {
		list, err := ReadEventsOf(tx, containers, since, limit)
		for _, e := range list {
			require.Contains(t, containers, e.Container)
			require.NotEmpty(t, e.Epoch)
			seqs = append(seqs, e.Seq)
		}
		return err
	}))
	return seqs
}

// indexed returns the number of keys in the index of transitions.
func indexed(t testing.TB, s *Store) (n int) {
	require.NoError(t, s.View(func(tx *Tx) error {
		for range tx.scan("index/event/", "index/event/") {
			n++
		}
		return tx.err
	}))
	return n
}

func TestEventsOfContainers(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	s, err := Open(t.TempDir(), Options{Now: func() time.Time { return now }})
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	emitOf(t, s, 300, "a", "a-b", "", "b", "a") // a: 1, 5, 6, 10, …
	require.Equal(t, []uint64{1, 5, 6}, seqsOf(t, s, 0, 3, "a"))
	require.Equal(t, []uint64{6, 10}, seqsOf(t, s, 5, 2, "a"))
	require.Equal(t, []uint64{2, 4, 7}, seqsOf(t, s, 1, 3, "b", "a-b", "b"))
	require.Len(t, seqsOf(t, s, 0, 1000, "a"), 120)
	require.Empty(t, seqsOf(t, s, 300, 10, "a"))
	require.Empty(t, seqsOf(t, s, 0, 10, "none"))
	require.Empty(t, seqsOf(t, s, 0, 10))
	require.Equal(t, 240, indexed(t, s))

	now = now.Add(time.Hour)
	emitOf(t, s, 2, "a")
	removed, err := s.TrimEvents(now, 100)
	require.NoError(t, err)
	require.Equal(t, 300, removed)
	require.Equal(t, []uint64{301, 302}, seqsOf(t, s, 0, 10, "a"))
	require.Equal(t, 2, indexed(t, s), "retention removes the keys of the index")
}

// TestEventsOfOneReadFew expects that the cost of reading one container's transitions does
// not depend on the number of all.
func TestEventsOfOneReadFew(t *testing.T) {
	s := openIn(t, t.TempDir())
	for i := range 20 {
		emitOf(t, s, 500, "busy")
		if i%10 == 0 {
			emitOf(t, s, 1, "quiet")
		}
	}
	allocs := testing.AllocsPerRun(5, func() { require.Len(t, seqsOf(t, s, 0, 1000, "quiet"), 2) })
	require.Less(t, allocs, 1000.0, "10,000 transitions are not read")
}

// TestMigrationIndexesEvents removes the index, as a store of version 2 has none.
func TestMigrationIndexesEvents(t *testing.T) {
	dir := t.TempDir()
	s, err := open(dir, Options{}, migrations()[:1])
	require.NoError(t, err)
	emitOf(t, s, 2500, "a", "b", "")
	require.NoError(t, s.Update(func(tx *Tx) error {
		var keys []string
		for e := range tx.scan("index/event/", "index/event/") {
			keys = append(keys, e.key)
		}
		for _, key := range keys {
			if err := tx.remove(key); err != nil {
				return err
			}
		}
		return tx.set(eventLog.key(7), []byte(strings.Repeat("x", 5))) // cannot be decoded
	}))
	require.Zero(t, indexed(t, s))
	require.NoError(t, s.Close())
	s = openIn(t, dir)
	require.EqualValues(t, newestVersion(), version(t, s))
	require.Equal(t, []uint64{1, 4, 10}, seqsOf(t, s, 0, 3, "a"))
	require.Len(t, seqsOf(t, s, 0, 5000, "a", "b"), 1666)
}

// TestEventsOfManyAreMerged: the order is that of all, also where a container has more
// transitions than are read ahead.
func TestEventsOfManyAreMerged(t *testing.T) {
	s := openIn(t, t.TempDir())
	emitOf(t, s, 10, "late", "other")
	emitOf(t, s, 2*seqChunk+3, "a", "a", "other", "b")
	emitOf(t, s, 3*seqChunk, "a")
	emitOf(t, s, 5, "late")
	require.NoError(t, s.View(func(tx *Tx) error {
		for _, since := range []uint64{0, 7, 300} {
			var want, got []uint64
			for e := range EventsAfter(tx, since) {
				if e.Container != "other" {
					want = append(want, e.Seq)
				}
			}
			for e := range EventsOf(tx, []string{"late", "b", "a", "none", "a"}, since) {
				got = append(got, e.Seq)
			}
			require.Greater(t, len(want), 3*seqChunk)
			require.Equal(t, want, got)
		}
		return nil
	}))
}
