package v1

import (
	"strings"
	"time"
)

// AuditEntry is the record of one mutating request and its outcome.
type AuditEntry struct {
	Seq       uint64    `json:"seq"` // of the audit log, from 1, without gaps
	Time      time.Time `json:"time"`
	Actor     Actor     `json:"actor"`
	Action    string    `json:"action"`     // <noun>.<verb>, such as container.start
	Object    string    `json:"object"`     // id of what the action names; of files the volume's id, a slash and the path
	RequestID string    `json:"request_id"` // that of the log and of X-Request-Id
	Status    int       `json:"status"`     // of the response
}

// Audit describes a request for its AuditEntry.
type Audit struct {
	Action    string
	Object    string
	Path      string // of a file in Volume
	RequestID string
	Container string // internal_id of the container that the request names; empty: none
	Volume    string // id of the volume that it names; empty: none
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
