package stream

import (
	"bytes"
	"encoding/json"
	"strconv"
	"time"

	v1 "berth/api/v1"
)

// The events that exist only on sockets, beside v1.EventState and v1.EventMessage.
const (
	EventConsole = "console"
	EventLogs    = "logs"
	EventStats   = "stats"
	EventGap     = "gap"
)

// Message is one message for a socket.
type Message struct {
	Event     string      `json:"event"`
	Container string      `json:"container,omitempty"` // on the socket of the node
	Data      *string     `json:"data,omitempty"`      // nil: of stats
	*v1.Stats             // nil: of another event
	Time      time.Time   `json:"time"`
	Times     []time.Time `json:"times,omitzero"`       // of each line in Data; nil: it has one, of Time
	Line      string      `json:"line,omitempty"`       // a Cursor: the receiver has read up to here
	SinceLine string      `json:"since_line,omitempty"` // a Cursor: the lines from here to Line are missing

	// Of a stored transition.
	Seq          uint64     `json:"seq,omitempty"`
	Epoch        string     `json:"epoch,omitempty"`
	From         v1.Phase   `json:"from,omitempty"`
	Reason       string     `json:"reason,omitempty"`
	ExitCode     *int       `json:"exit_code,omitempty"`
	RestartCount int        `json:"restart_count,omitempty"`
	NextRetryAt  *time.Time `json:"next_retry_at,omitempty"`
	Backup       string     `json:"backup,omitempty"`
	Restore      string     `json:"restore,omitempty"`
	Pull         string     `json:"pull,omitempty"`
	Volume       string     `json:"volume,omitempty"`
	Actor        v1.Actor   `json:"actor,omitzero"`

	Transition *v1.Event `json:"-"` // that the message reports; nil: none. It is shared.
}

// NewMessage returns a message with a text.
func NewMessage(event, container, data string, at time.Time) Message {
	return Message{Event: event, Container: container, Data: &data, Time: at.UTC()}
}

// GapMessage returns the message that transitions before the seq oldest are not kept, or are of another
// epoch.
func GapMessage(oldest uint64, epoch string, at time.Time) Message {
	m := NewMessage(EventGap, "", strconv.FormatUint(oldest, 10), at)
	m.Epoch = epoch
	return m
}

// StatsMessage returns the message of a sample.
func StatsMessage(container string, s v1.Stats, at time.Time) Message {
	return Message{Event: EventStats, Container: container, Stats: &s, Time: at.UTC()}
}

// LogsMessage returns the message of a history.
func LogsMessage(container string, x History, at time.Time) Message {
	var text []byte
	times := make([]time.Time, 0, len(x.Lines))
	for _, l := range x.Lines {
		if text = append(text, l.Data...); !l.Partial {
			text = append(text, '\n')
		}
		times = append(times, l.Time)
	}
	m := NewMessage(EventLogs, container, string(text), at)
	m.Times, m.Line = times, x.Line.String()
	return m
}

// NodeMessage is EventMessage for the socket of the node: it names the container.
func NodeMessage(e *v1.Event) Message {
	m := EventMessage(e)
	m.Container = e.Container
	return m
}

// EventMessage returns the message of a stored transition.
func EventMessage(e *v1.Event) Message {
	m := NewMessage(e.Event, "", e.Data, e.Time)
	m.Seq, m.Epoch, m.From, m.Reason, m.ExitCode, m.RestartCount = e.Seq, e.Epoch, e.From, e.Reason, e.ExitCode, e.RestartCount
	if e.NextRetryAt != nil {
		m.NextRetryAt = new(e.NextRetryAt.UTC())
	}
	m.Backup, m.Restore, m.Pull, m.Volume, m.Actor = e.Backup, e.Restore, e.Pull, e.Volume, e.Actor
	m.Transition = e
	return m
}

// Encode returns the JSON of a message, one text frame. Bytes of data that are not UTF-8 become U+FFFD.
func (m Message) Encode() []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(m) != nil { // stats that are not numbers
		m.Stats = nil
		b.Reset()
		_ = e.Encode(m)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
