package store

import (
	"errors"
	"fmt"
	"sync"
	"time"

	v1 "berth/api/v1"
)

const (
	// maxDrift is the largest step of the host's clock that counts at once: what such a step makes
	// too old would be removed soon anyway.
	maxDrift = time.Hour
	// jumpCounts is how long a clock goes on after a larger step until it counts as right.
	jumpCounts = 24 * time.Hour
	// maxQuiet is how long before a start the newest record may be without being reported: berth did not
	// run, or nothing happened.
	maxQuiet = 30 * 24 * time.Hour
)

// jump is a step of the host's clock that does not count yet. The zero jump is none.
type jump struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
}

const jumpKey entry[jump] = "meta/jump"

// next returns the jump after this one where the clock shows now and is expected to show due, which is a
// time since From by a clock that never jumps.
func (j jump) next(due, now time.Time) jump {
	switch {
	case near(due, now): // steady, or corrected
		return jump{}
	case j == jump{} || !near(j.To.Add(due.Sub(j.From)), now):
		return jump{From: due, To: now}
	case due.Sub(j.From) >= jumpCounts:
		return jump{}
	}
	return j
}

func near(a, b time.Time) bool { return a.Sub(b).Abs() <= maxDrift }

// clock is what the host's clock is expected to show.
type clock struct {
	mu      sync.Mutex
	due     time.Time // expected
	at      time.Time // when, monotonic
	started bool      // it was compared with the host's since the start
}

// AgeTime returns the time by which records are removed because of their age: that of the host, unless its clock
// jumped forward by more than an hour. Then it goes on from the time before, until the clock is
// corrected or has gone on for a day. A jump is a condition of the node.
func (s *Store) AgeTime() time.Time {
	before, _ := jumpKey.get(s.Read()) // one that cannot be read is none
	now := s.time()
	c := &s.clock
	c.mu.Lock()
	first := !c.started
	c.started = true
	due := c.due.Add(time.Since(c.at))
	after := before.next(due, now)
	if c.due, c.at = due, time.Now(); after == (jump{}) {
		c.due = now
	}
	age := earlier(c.due, now)
	c.mu.Unlock()
	if after != before {
		gap := now.Sub(due)
		if err := s.recordJump(before, after, !first || gap < 0 || gap > maxQuiet); err != nil {
			s.log.Error("could not record that the clock of the host jumped", "err", err) // the next call does
		}
	}
	return age
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// recordJump stores a jump, and a condition if it is to be reported.
func (s *Store) recordJump(before, after jump, report bool) error {
	c := v1.Condition{Type: v1.ClockSteady, Status: v1.True, Reason: v1.ReasonSteady,
		Message: "the clock of the host is steady: what is older than its retention is removed again"}
	if after != (jump{}) {
		c.Status, c.Reason = v1.False, v1.ReasonClockJumped
		c.Message = fmt.Sprintf("the clock of the host jumped from %s to %s: nothing is removed because of its age until the clock is "+
			"corrected, or has gone on for %.0f hours", after.From.Format(time.RFC3339), after.To.Format(time.RFC3339), jumpCounts.Hours())
	}
	if report {
		s.log.Warn(c.Message)
	}
	return s.MustUpdate(func(tx *Tx) error {
		if now, err := jumpKey.get(tx); err == nil && now != before {
			return nil // another call has recorded it
		}
		err := jumpKey.set(tx, after)
		if report || c.Status == v1.True {
			err = errors.Join(err, SetNodeCondition(tx, c))
		}
		return err
	})
}

// startClock begins to expect a time: the one before a jump that does not count yet, or that of the
// newest record of the logs.
func (s *Store) startClock() error {
	now := s.time()
	s.clock.due, s.clock.at = now, time.Now()
	tx := s.Read()
	if j, err := jumpKey.get(tx); err == nil && j != (jump{}) {
		s.clock.due = j.From.Add(max(0, now.Sub(j.To)))
		return nil
	}
	events, err := eventLog.last(tx)
	entries, failed := auditLog.last(tx)
	s.clock.due = newestOf(now, events, entries)
	return errors.Join(err, failed)
}

// newestOf returns the newest of two times that is not after now, or the earlier one; now if there is none.
// The zero time is none.
func newestOf(now, a, b time.Time) time.Time {
	switch {
	case a.IsZero() && b.IsZero():
		return now
	case a.IsZero():
		return b
	case b.IsZero():
		return a
	case a.After(now) || b.After(now):
		return earlier(a, b)
	}
	return latest(a, b)
}

// last returns the time of the newest value; zero: there is none, or it cannot be read.
func (l sequence) last(tx *Tx) (at time.Time, err error) {
	for n, err := range l.backward(tx) {
		if err != nil {
			return at, err
		}
		return timeOf(n), nil
	}
	return at, nil
}

// timeOf returns the time of a value; zero: it cannot be read.
func timeOf(n numbered) time.Time {
	var value struct {
		Time time.Time `json:"time"`
	}
	_ = unmarshal(n.item, &value)
	return value.Time
}
