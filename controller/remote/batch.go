package remote

import (
	"encoding/json"
	"errors"
	"strconv"
	"time"

	v1 "berth/api/v1"
	"berth/store"
)

// batch is the content of one request.
type batch struct {
	messages []message
	last     uint64 // the cursor after the delivery
	lost     uint64 // number of transitions that a gap replaces
}

// message is a transition or a gap, in the format of the sockets.
type message struct {
	Seq       uint64    `json:"seq,omitempty"`
	Epoch     string    `json:"epoch"` // the epoch of Seq, or of the seq in Data of a gap
	Time      time.Time `json:"time"`
	Container string    `json:"container,omitempty"`
	Event     string    `json:"event"`
	Data      string    `json:"data"`
	From      v1.Phase  `json:"from,omitempty"`
	Reason    string    `json:"reason,omitempty"`
	ExitCode  *int      `json:"exit_code,omitempty"`

	RestartCount int        `json:"restart_count,omitempty"`
	NextRetryAt  *time.Time `json:"next_retry_at,omitempty"`

	Actor   v1.Actor `json:"actor,omitzero"`
	Backup  string   `json:"backup,omitempty"`
	Restore string   `json:"restore,omitempty"`
	Pull    string   `json:"pull,omitempty"`
	Volume  string   `json:"volume,omitempty"`
}

// eventGap means that transitions before the seq in Data are no longer stored.
const eventGap = "gap"

func (b batch) empty() bool { return len(b.messages) == 0 }

// body returns the JSON body of a request.
func (b batch) body(node string) []byte {
	body, _ := json.Marshal(struct { // plain data cannot fail to marshal
		Node   string    `json:"node"`
		Events []message `json:"events"`
	}{node, b.messages})
	return body
}

// next returns the transitions after the cursor, up to the limit. A gap is sent alone, so
// that a panel that rejects it still receives the transitions after it.
func (s *Sender) next() (b batch, err error) {
	err = s.store.View(func(tx *store.Tx) error {
		cursor := store.Cursor(tx, cursorName)
		events, err := store.ReadEvents(tx, cursor, s.limit)
		if errors.Is(err, store.ErrCompacted) {
			b = gap(tx, cursor, s.store.Incarnations.Epoch())
			return nil
		}
		b = batch{last: cursor}
		for _, e := range events {
			b.messages = append(b.messages, messageOf(e))
			b.last = e.Seq
		}
		return err
	})
	return b, err
}

func messageOf(e v1.Event) message {
	return message{Seq: e.Seq, Epoch: e.Epoch, Time: e.Time, Container: e.Container, Event: e.Event, Data: e.Data,
		From: e.From, Reason: e.Reason, ExitCode: e.ExitCode, RestartCount: e.RestartCount, NextRetryAt: e.NextRetryAt,
		Actor: e.Actor, Backup: e.Backup, Restore: e.Restore, Pull: e.Pull, Volume: e.Volume}
}

// gap returns the batch that moves the cursor to the oldest stored transition.
func gap(tx *store.Tx, cursor uint64, epoch string) batch {
	oldest, _ := store.EventRange(tx)
	if oldest == 0 {
		oldest = store.LastEvent(tx) + 1
	}
	b := batch{
		messages: []message{{Epoch: epoch, Time: tx.Now(), Event: eventGap, Data: strconv.FormatUint(oldest, 10)}},
		last:     oldest - 1,
	}
	if b.last > cursor {
		b.lost = b.last - cursor
	}
	return b
}

// advance stores that the panel has received every transition up to b.last.
func (s *Sender) advance(b batch) error {
	return s.store.Update(func(tx *store.Tx) error { return store.SetCursor(tx, cursorName, b.last) })
}
