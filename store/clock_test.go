package store

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
)

// TestClockOfTheHost: what counts as the time while the host's clock is set, and what is reported.
func TestClockOfTheHost(t *testing.T) {
	const day = 24 * time.Hour
	dir, ahead, slept := t.TempDir(), time.Duration(0), time.Duration(0)
	now := func() time.Time { return time.Now().Add(slept + ahead) }
	reopen := func(s *Store) *Store {
		if s != nil {
			require.NoError(t, s.Close())
		}
		s, err := Open(dir, Options{Now: now})
		require.NoError(t, err)
		return s
	}
	s := reopen(nil)
	defer func() { require.NoError(t, s.Close()) }()
	reasons := func() (list []string) {
		all, err := read(s, 0, 100)
		require.NoError(t, err)
		for _, e := range all {
			if e.Reason != "" {
				list = append(list, e.Reason)
			}
		}
		return list
	}
	sleep := func(d time.Duration) {
		slept += d
		s.clock.at = s.clock.at.Add(-d)
	}
	is := func(text string, want time.Duration) { // by how much the time that counts is ahead of the true one
		t.Helper()
		require.WithinDuration(t, time.Now().Add(slept+want), s.AgeTime(), time.Minute, text)
	}
	is("a new store", 0)
	require.NoError(t, emit(s, 1))
	ahead = 30 * time.Minute
	is("a small step", ahead)
	ahead = 0
	is("and back", 0)
	ahead = 100 * day
	is("a jump", 0)
	require.Equal(t, []string{v1.ReasonClockJumped}, reasons())
	sleep(10 * time.Hour)
	is("after some hours", 0)
	ahead = 50 * day
	is("another jump", 0)
	s = reopen(s)
	is("a start", 0)
	ahead = 0
	is("corrected", 0)
	require.Equal(t, []string{v1.ReasonClockJumped, v1.ReasonSteady}, reasons())
	ahead = -10 * day
	is("set back", ahead)
	require.Equal(t, []string{v1.ReasonClockJumped, v1.ReasonSteady, v1.ReasonClockJumped}, reasons())
	sleep(day + time.Minute)
	is("set back for good", ahead)
	ahead = 0
	require.Equal(t, v1.ReasonSteady, reasons()[3])
	is("a jump", -10*day)
	sleep(day + time.Minute)
	is("that goes on", 0)
	require.Len(t, reasons(), 6)

	require.NoError(t, emit(s, 1))
	sleep(20 * day)
	_ = s.AgeTime()
	s = reopen(s)
	is("a start after a quiet time", -20*day)
	require.Len(t, reasons(), 6, "nothing to report")
	sleep(day + time.Minute)
	is("a day later", 0)
}
