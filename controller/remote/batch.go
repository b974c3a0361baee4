package remote

import (
	"encoding/json"
	"errors"
	"strconv"
	"time"

	v1 "berth/api/v1"
	"berth/store"
)

// batch is what one request tells.
type batch struct {
	messages []message
	last     uint64 // the cursor once it is delivered
	lost     uint64 // transitions that a gap stands for
}

// message is a transition, or a gap, as the sockets tell it.
type message struct {
	Seq       uint64    `json:"seq,omitempty"`
	Epoch     string    `json:"epoch"` // what Seq, or the seq in Data of a gap, is counted in
	Time      time.Time `json:"time"`
	Container string    `json:"container,omitempty"`
	Event     string    `json:"event"`
	Data      string    `json:"data"`
}

// eventGap says that transitions before the seq in Data are no longer kept.
const eventGap = "gap"

func (b batch) empty() bool { return len(b.messages) == 0 }

// body is the JSON of a request.
func (b batch) body(node string) []byte {
	body, _ := json.Marshal(struct { // plain data: it cannot fail
		Node   string    `json:"node"`
		Events []message `json:"events"`
	}{node, b.messages})
	return body
}

// next reads what the panel has not got yet, up to the limit. A gap goes alone,
// so that a panel which refuses it still gets what follows.
func (s *Sender) next() (b batch, err error) {
	err = s.store.View(func(tx *store.Tx) error {
		cursor := store.Cursor(tx, cursorName)
		events, err := store.ReadEvents(tx, cursor, s.limit)
		if errors.Is(err, store.ErrCompacted) {
			b = gap(tx, cursor, s.store.History.Epoch())
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
	return message{Seq: e.Seq, Epoch: e.Epoch, Time: e.Time, Container: e.Container, Event: e.Event, Data: e.Data}
}

// gap is the jump to the oldest transition that is kept.
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

// advance notes durably that the panel has got everything up to b's last.
func (s *Sender) advance(b batch) error {
	return s.store.Update(func(tx *store.Tx) error { return store.SetCursor(tx, cursorName, b.last) })
}
