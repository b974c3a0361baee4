package v1

import "time"

// The kinds of Event that are stored. Others (console, stats, logs, gap) exist
// only on sockets.
const (
	EventState   = "event"          // Data is a Phase
	EventMessage = "daemon_message" // Data is a sentence
)

// Event is one stored transition. It is stored in the same transaction as the status
// that it reports.
type Event struct {
	Seq       uint64    `json:"seq"`             // node-wide, from 1, without gaps
	Epoch     string    `json:"epoch,omitempty"` // of Seq: the store and its incarnation; not stored
	Time      time.Time `json:"time"`
	Container string    `json:"container"`     // internal_id
	UID       string    `json:"uid,omitempty"` // of the container; empty: stored by an older version
	Event     string    `json:"event"`
	Data      string    `json:"data"`

	// Of a state: the one before, why it was entered (the reason of a condition, or
	// empty), and the exit code of the run or the installation that ended with it.
	From     Phase  `json:"from,omitempty"`
	Reason   string `json:"reason,omitempty"`
	ExitCode *int   `json:"exit_code,omitempty"`
}
