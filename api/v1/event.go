package v1

import (
	"cmp"
	"time"
)

// The kinds of Event that are stored. Others (console, stats, logs, gap) exist
// only on sockets.
const (
	EventState   = "event"          // Data is a Phase
	EventMessage = "daemon_message" // Data is a sentence
	EventBackup  = "backup"         // Data is a JobState
	EventRestore = "restore"        // Data is a JobState
	EventPull    = "pull"           // Data is a PullState
)

// Event is one stored transition. It is stored in the same transaction as the status
// that it reports.
type Event struct {
	Seq       uint64    `json:"seq"`             // node-wide, from 1, without gaps
	Epoch     string    `json:"epoch,omitempty"` // of Seq: the store and its incarnation; not stored
	Time      time.Time `json:"time"`
	Container string    `json:"container,omitempty"` // internal_id; empty: about the node itself, or a volume
	UID       string    `json:"uid,omitempty"`       // of the container; empty: stored by an older version
	Event     string    `json:"event"`
	Data      string    `json:"data"`

	// Of a state: the one before, why it was entered (the reason of a condition, or
	// empty), and the exit code of the run or the installation that ended with it. A
	// message with a reason is a warning.
	From     Phase  `json:"from,omitempty"`
	Reason   string `json:"reason,omitempty"`
	ExitCode *int   `json:"exit_code,omitempty"`

	// Of an exit after which a backoff begins: the starts without a request since the last
	// one, and when the container is started again.
	RestartCount int        `json:"restart_count,omitempty"`
	NextRetryAt  *time.Time `json:"next_retry_at,omitempty"`

	Actor Actor `json:"actor,omitzero"` // who caused it

	// Of a backup, a restore or a download. Users are the containers that used the volume then: their
	// clients receive the event too. Responses leave them out.
	Backup  string         `json:"backup,omitempty"`
	Restore string         `json:"restore,omitempty"`
	Pull    string         `json:"pull,omitempty"`
	Volume  string         `json:"volume,omitempty"` // of a restore the target
	Users   []ContainerRef `json:"users,omitempty"`
}

// EventList is a part of the stored transitions.
type EventList struct {
	Events []Event `json:"events"`
	Epoch  string  `json:"epoch"`  // of every seq
	Oldest uint64  `json:"oldest"` // seq of the oldest stored transition; 0: there is none
	Newest uint64  `json:"newest"`
}

// Job returns the id of the backup, restore or download that e is about, or "".
func (e Event) Job() string { return cmp.Or(e.Restore, e.Backup, e.Pull) }

// UserIDs returns the internal_ids of e.Users.
func (e Event) UserIDs() (ids []string) {
	for _, u := range e.Users {
		ids = append(ids, u.ID)
	}
	return ids
}
