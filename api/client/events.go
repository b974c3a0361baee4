package client

import (
	"context"
	"iter"
	"slices"
	"strconv"

	v1 "berth/api/v1"
)

// Events are the calls for stored transitions, in the order in which they happened.
type Events struct{ c *Client }

// EventFilter selects transitions. Empty fields select all.
type EventFilter struct {
	Container string // internal_id
	Volume    string // id of a volume: it, and the containers that use it now
	Type      string // such as v1.EventState
}

func (f EventFilter) query() []string {
	return []string{"container", f.Container, "volume", f.Volume, "type", f.Type}
}

// List returns at most limit transitions after a cursor that f selects. If the cursor
// is of another epoch, it returns the oldest ones.
func (s Events) List(ctx context.Context, after Cursor, limit int, f EventFilter) (list v1.EventList, err error) {
	parameters := slices.Concat(after.query(), f.query(), []string{"limit", strconv.Itoa(limit)})
	err = s.c.get(ctx, "/events"+query(parameters...), &list)
	return list, err
}

// Last returns the last transitions that f selects, at most limit, oldest first.
func (s Events) Last(ctx context.Context, limit int, f EventFilter) (list v1.EventList, err error) {
	err = s.c.get(ctx, "/events"+query(append(f.query(), "last", strconv.Itoa(limit))...), &list)
	return list, err
}

// Newest returns the cursor of the newest transition. Watching from it delivers only
// what happens afterwards.
func (s Events) Newest(ctx context.Context) (Cursor, error) {
	var list v1.EventList
	err := s.c.get(ctx, "/events?limit=1", &list)
	return Cursor{list.Newest, list.Epoch}, err
}

// Watch delivers every transition after a cursor, once and in order, until ctx ends
// or the daemon refuses the client. It reconnects when the connection breaks and
// resumes after the last transition that it has delivered.
//
// A message with EventGap means that transitions are missing: those before the seq
// in its data are not stored any more. If its epoch differs from that of the cursor,
// the daemon's store was restored from a backup, and the numbers begin anew: the
// caller has to read the state of all containers again.
//
// The last element is an error, unless the caller ends the loop. It is ctx.Err() if
// ctx ended.
func (s Events) Watch(ctx context.Context, after Cursor) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		at := after
		s.c.resume(ctx, func() (*Stream, error) { return s.Open(ctx, at) }, func(m Message, err error) bool {
			return err == nil && !at.pass(m) || yield(m, err)
		})
	}
}

// pass moves the cursor to a message, and reports whether Watch delivers it: not what is not stored,
// and not the current state of the containers, with which each stream begins.
func (c *Cursor) pass(m Message) bool {
	if m.Epoch != "" && m.Epoch != c.Epoch {
		if c.Epoch != "" {
			c.Seq = 0
		}
		c.Epoch = m.Epoch
	}
	if m.Event == EventGap {
		return true
	}
	if m.Seq <= c.Seq {
		return false
	}
	c.Seq = m.Seq
	return true
}

// Audit are the calls for the audit log.
type Audit struct{ c *Client }

// List returns at most limit entries after seq since that f selects, oldest first.
func (s Audit) List(ctx context.Context, since uint64, limit int, f v1.AuditFilter) ([]v1.AuditEntry, error) {
	return s.list(ctx, f, "since", strconv.FormatUint(since, 10), "limit", strconv.Itoa(limit))
}

// Last returns the last entries that f selects, at most limit, oldest first.
func (s Audit) Last(ctx context.Context, limit int, f v1.AuditFilter) ([]v1.AuditEntry, error) {
	return s.list(ctx, f, "last", strconv.Itoa(limit))
}

func (s Audit) list(ctx context.Context, f v1.AuditFilter, parameters ...string) ([]v1.AuditEntry, error) {
	return list[[]v1.AuditEntry](ctx, s.c, "/audit"+query(append(parameters, "container", f.Container, "volume", f.Volume,
		"actor", f.Actor)...), "entries")
}
