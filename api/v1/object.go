package v1

import (
	"fmt"
	"math"
	"strings"
	"time"
	"unicode"
)

// Object is one stored resource: its desired and its observed state.
type Object[S, T any] struct {
	Meta   Meta `json:"meta"`
	Spec   S    `json:"spec"`
	Status T    `json:"status"`
}

// Meta is the metadata of an object.
type Meta struct {
	ID         string    `json:"id"`
	UID        string    `json:"uid,omitempty"`     // UUID of this creation: a later object with the same ID has another
	Generation uint64    `json:"generation"`        // counts changes of Spec, from 1
	Revision   uint64    `json:"revision"`          // the store's revision at the last change of the spec or the status
	Created    uint64    `json:"created,omitempty"` // the store's revision at the creation; 0: by a berth that did not store it
	CreatedAt  time.Time `json:"created_at"`
	UpdatedAt  time.Time `json:"updated_at"`
	Deleted    bool      `json:"deleted,omitempty"` // deletion requested; the controller of the object purges it
}

// Rank returns a text that sorts an object before those that were created earlier. It compares
// revisions, because the clock of the host may be set back.
func (m Meta) Rank() string {
	return fmt.Sprintf("%020d/%019d/%s", math.MaxUint64-m.Created, math.MaxInt64-m.CreatedAt.UnixNano(), m.ID)
}

// NewestFirst compares two objects for a list that begins with the one that was created last.
func NewestFirst[S, T any](a, b Object[S, T]) int {
	return strings.Compare(a.Meta.Rank(), b.Meta.Rank())
}

// Condition is one observed fact about an object.
type Condition struct {
	Type    string    `json:"type"`    // such as ImageAvailable
	Status  string    `json:"status"`  // True, False or Unknown
	Reason  string    `json:"reason"`  // one word for machines
	Message string    `json:"message"` // one sentence for people
	Since   time.Time `json:"since"`   // when Status last changed
}

// The values of Condition.Status.
const (
	True    = "True"
	False   = "False"
	Unknown = "Unknown"
)

// maxMessage is the maximum size of a message for clients, in bytes.
const maxMessage = 500

// MessageText returns a text, which may come from a registry, an engine or a tenant, as a message
// for clients: one line without control characters, of at most 500 bytes of UTF-8.
func MessageText(text string) string { return ClippedText(text, maxMessage) }

// ClippedText is MessageText for a text of at most limit bytes.
func ClippedText(text string, limit int) string {
	const end = "…"
	short := text[:min(len(text), 4*limit)] // whatever the size of the text is
	words := strings.FieldsFunc(strings.ToValidUTF8(short, ""), func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)
	})
	line := strings.Join(words, " ")
	if len(line) <= limit && len(short) == len(text) {
		return line
	}
	return strings.ToValidUTF8(line[:min(len(line), limit-len(end))], "") + end
}

// SetCondition replaces the condition of the type of c in list. Since is kept while the
// status stays the same, and is now otherwise. Its message becomes a MessageText.
func SetCondition(list []Condition, c Condition, now time.Time) []Condition {
	c.Since, c.Message = now, MessageText(c.Message)
	for i, old := range list {
		if old.Type != c.Type {
			continue
		}
		if old.Status == c.Status {
			c.Since = old.Since
		}
		list[i] = c
		return list
	}
	return append(list, c)
}

// FindCondition returns the condition of a type, or the zero Condition.
func FindCondition(list []Condition, kind string) Condition {
	for _, c := range list {
		if c.Type == kind {
			return c
		}
	}
	return Condition{}
}

// Image is an image that berth has pulled. Its id is the engine's.
type Image = Object[ImageSpec, ImageStatus]

// ImageSpec is the origin of an image.
type ImageSpec struct {
	Ref  string   `json:"ref"`            // by which it was pulled first
	Also []string `json:"also,omitempty"` // further references by which it was pulled
}

// Refs returns all references by which the image was pulled.
func (s ImageSpec) Refs() []string { return append([]string{s.Ref}, s.Also...) }

// ImageStatus is the observed state of an image.
type ImageStatus struct {
	UnusedSince *time.Time `json:"unused_since,omitempty"` // since when no container names it; nil: one does, or it is unknown
}
