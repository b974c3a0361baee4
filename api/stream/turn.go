package stream

import (
	"context"
	"time"
)

// Reading and parsing lines costs a processor, and a tenant with many sockets would
// leave the other containers none. So the readers of one container's journals take
// turns, and together get a share of the time.
const (
	turnBurst = 250 * time.Millisecond // of reading at once
	turnShare = 4                      // in the long run, one part of the time in so many
)

// turn is a semaphore of one. It holds the time at which the readings so far would
// have ended if each had taken its share only. A nil turn is everybody's at any time.
type turn chan time.Time

func newTurn() turn {
	t := make(turn, 1)
	t <- time.Time{}
	return t
}

// take waits for the turn, or until ctx ends: then it returns ErrBusy.
func (t turn) take(ctx context.Context) (due time.Time, err error) {
	if t == nil {
		return due, nil
	}
	select {
	case due = <-t:
	case <-ctx.Done():
		return due, ErrBusy
	}
	wait := time.Until(due.Add(-(turnShare - 1) * turnBurst))
	if wait <= 0 {
		return due, nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return due, nil
	case <-ctx.Done():
		t.pass(due)
		return due, ErrBusy
	}
}

// leave ends the turn of a reader, which has begun to read at a time.
func (t turn) leave(due, began time.Time) {
	read := time.Since(began)
	if due.Before(began) {
		due = began
	}
	t.pass(due.Add(turnShare * read))
}

// pass gives the turn to the next reader.
func (t turn) pass(due time.Time) {
	if t != nil {
		t <- due
	}
}
