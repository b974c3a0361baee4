package store

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
)

// putOutcomes stores outcomes with the keys k0, k1, ….
func putOutcomes(t *testing.T, s *Store, n int) {
	t.Helper()
	require.NoError(t, s.Update(func(tx *Tx) error {
		for i := range n {
			if err := putOutcome(tx, Outcome{Owner: "t", Quota: "t", Key: fmt.Sprint("k", i)}); err != nil {
				return err
			}
		}
		return nil
	}))
}

// TestTrimUnreadableOutcomes: outcomes that cannot be decoded are removed with their keys
// and logged once, wherever they are, and the others are trimmed as ever.
func TestTrimUnreadableOutcomes(t *testing.T) {
	s := openIn(t, t.TempDir())
	var log bytes.Buffer
	s.log = slog.New(slog.NewTextHandler(&log, nil))
	putOutcomes(t, s, 6)
	require.NoError(t, s.Update(func(tx *Tx) error {
		for _, seq := range []uint64{1, 3, 5} {
			if err := tx.set(outcomeLog.key(seq), []byte("{")); err != nil {
				return err
			}
		}
		return nil
	}))
	kept := func() (keys []string) {
		require.NoError(t, s.View(func(tx *Tx) error {
			for entry := range tx.scan("outcome", "outcome") {
				keys = append(keys, strings.TrimPrefix(entry.key, lookupPrefix))
			}
			return tx.err
		}))
		return keys
	}
	n, err := s.TrimOutcomes(time.Now().Add(-time.Hour))
	require.NoError(t, err)
	require.Equal(t, 1, n, "the others are as young as the first that can be read")
	n, err = s.TrimOutcomes(time.Now().Add(time.Hour))
	require.NoError(t, err)
	require.Equal(t, 5, n)
	require.Equal(t, []string{"outcome-count/t"}, kept())
	require.Equal(t, 3, strings.Count(log.String(), "removed an outcome that cannot be read"), log.String())
	for _, seq := range []string{"seq=1 ", "seq=3 ", "seq=5 "} {
		require.Equal(t, 1, strings.Count(log.String(), seq))
	}

	putOutcomes(t, s, 1)
	require.NoError(t, s.View(func(tx *Tx) error {
		_, err := FindOutcome(tx, "t", "k0")
		oldest, newest, bad := outcomeLog.bounds(tx)
		require.Equal(t, []uint64{7, 7}, []uint64{oldest, newest})
		require.NoError(t, bad)
		return err
	}))
}

// TestTrimManyOutcomes: a chunk that is full of unreadable outcomes is not the last one.
func TestTrimManyOutcomes(t *testing.T) {
	s := openIn(t, "")
	putOutcomes(t, s, trimChunk+2)
	require.NoError(t, s.Update(func(tx *Tx) error {
		for seq := range uint64(trimChunk) {
			if err := tx.set(outcomeLog.key(seq+1), []byte("{")); err != nil {
				return err
			}
		}
		return nil
	}))
	commits := 0
	s.commit = func(commit func() error) error { commits++; return commit() }
	n, err := s.TrimOutcomes(time.Now().Add(time.Hour))
	require.NoError(t, err)
	require.Equal(t, []int{trimChunk + 2, 2}, []int{n, commits})
}

// TestOutcomeNamesItsObject: the entry of a repetition names what the first request did.
func TestOutcomeNamesItsObject(t *testing.T) {
	s := openIn(t, "")
	r := NewRequest(s, alice(), v1.Audit{Action: "volume.create"})
	r.Outcome = &Outcome{Owner: "t", Quota: "t", Key: "k", Status: 409}
	require.NoError(t, r.Update(func(tx *Tx) error { return Volumes.Create(tx, "v", v1.VolumeSpec{}) }))
	final := *r.Outcome
	final.Status = 201
	require.NoError(t, r.Finish(201, &final, false))
	require.NoError(t, s.View(func(tx *Tx) error {
		o, err := FindOutcome(tx, "t", "k")
		a := v1.Audit{Action: "volume.create", Path: "x"}
		o.Describe(&a)
		require.Equal(t, v1.Audit{Action: "volume.create", Object: "v", Volume: "v"}, a)
		return err
	}))
	a := v1.Audit{Object: "mc", Container: "mc"}
	Outcome{}.Describe(&a)
	require.Equal(t, v1.Audit{Object: "mc", Container: "mc"}, a, "an outcome of an older berth names none")
}
