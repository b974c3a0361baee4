package v1

import (
	"cmp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// The kinds of Event that are stored. Others (console, stats, logs, gap) exist
// only on sockets.
const (
	EventState   = "event"          // Data is a Phase
	EventMessage = "daemon_message" // Data is a sentence
	EventBackup  = "backup"         // Data is a JobState
	EventRestore = "restore"        // Data is a JobState
	EventPull    = "pull"           // Data is a PullState

	EventSchedule = "schedule" // Data is a RunState
	EventTransfer = "transfer" // Data is a TransferState
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

	Schedule string `json:"schedule,omitempty"` // the name of that of Container
	Transfer string `json:"transfer,omitempty"` // of Container
	MovedTo  string `json:"moved_to,omitempty"` // of a transfer that is completed: the URL of the node that has Container

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

// AuditEntry is the record of one mutating request and its outcome.
type AuditEntry struct {
	Seq       uint64    `json:"seq"` // of the audit log, from 1, without gaps
	Time      time.Time `json:"time"`
	Actor     Actor     `json:"actor"`
	Action    string    `json:"action"`            // <noun>.<verb>, such as container.start
	Object    string    `json:"object"`            // id of what the action names; of files the volume's id, a slash and the path
	RequestID string    `json:"request_id"`        // that of the log and of X-Request-Id
	Status    int       `json:"status"`            // of the response
	Skipped   int       `json:"skipped,omitempty"` // refusals of the same action and tenant before it that have no entry
}

// Audit describes a request for its AuditEntry.
type Audit struct {
	Action    string
	Object    string
	Path      string // of a file in Volume
	RequestID string
	Container string // internal_id of the container that the request names; empty: none
	Volume    string // id of the volume that it names; empty: none
	Skipped   int    // refusals before it that have no entry
	Tenant    string // of the request, see package limit
}

// Name returns the AuditEntry.Object, of any size.
func (a Audit) Name() string {
	if a.Path != "" {
		return a.Volume + "/" + a.Path
	}
	return a.Object
}

// OutcomeRetention is how long the response to a request with an idempotency key is
// kept.
const OutcomeRetention = 24 * time.Hour

// maxObject is the maximum size of AuditEntry.Object, in bytes.
const maxObject = 512

// AuditObject returns text as an AuditEntry.Object: at most 512 bytes of UTF-8.
func AuditObject(text string) string {
	if len(text) > maxObject {
		text = text[:maxObject]
	}
	return strings.ToValidUTF8(text, "")
}

// AuditFilter selects entries of the audit log. Empty fields select all.
type AuditFilter struct {
	Container string // internal_id
	Volume    string // id
	Actor     string // the id or the name of a token, or an end user
}

// Matches reports whether f.Actor selects an actor.
func (f AuditFilter) Matches(a Actor) bool {
	return f.Actor == "" || f.Actor == a.TokenID || f.Actor == a.Name || f.Actor == a.OnBehalfOf
}

// Actor is who caused a transition or sent a request. The zero Actor is unknown: that
// of a transition which an older version stored.
type Actor struct {
	TokenID    string `json:"token_id,omitempty"` // Administrator for the configured token; empty: nobody asked
	Name       string `json:"name,omitempty"`     // of the token
	Via        Via    `json:"via"`
	Address    string `json:"address,omitempty"`      // of the client, without a port; that of its token comes first
	OnBehalfOf string `json:"on_behalf_of,omitempty"` // the end user that X-Berth-Actor names, or the token
}

// Via is the way on which a request arrived.
type Via string

// The values of Via. ViaController is that of an actor without a token: berth acts by
// itself. That of a step of a schedule has the name of the schedule.
const (
	ViaHTTP       Via = "http"
	ViaWebSocket  Via = "websocket"
	ViaSFTP       Via = "sftp"
	ViaSchedule   Via = "schedule"
	ViaController Via = "controller"
)

// Administrator is the TokenID and the Name of the configured token.
const Administrator = "administrator"

// Controller returns the actor of what nobody asked for.
func Controller() Actor { return Actor{Via: ViaController} }

// String returns the name of an actor for a log.
func (a Actor) String() string {
	name := cmp.Or(a.Name, a.TokenID, string(a.Via))
	if a.OnBehalfOf != "" {
		name += " on behalf of " + a.OnBehalfOf
	}
	return name
}

// maxName is the maximum number of characters of a name.
const maxName = 128

// IsName reports whether text may name a token or an end user: at most 128 printable
// characters.
func IsName(text string) bool {
	if !utf8.ValidString(text) || utf8.RuneCountInString(text) > maxName {
		return false
	}
	for _, r := range text {
		if !unicode.IsPrint(r) {
			return false
		}
	}
	return true
}

// IsReserved reports whether an actor without a minted token has this name, in any case and
// with any spaces around it.
func IsReserved(name string) bool {
	name = strings.TrimSpace(name)
	return strings.EqualFold(name, Administrator) || strings.EqualFold(name, string(ViaController))
}
