package v1

import (
	"time"
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
	UID        string    `json:"uid,omitempty"` // UUID of this creation: a later object with the same ID has another
	Generation uint64    `json:"generation"`    // counts changes of Spec, from 1
	Revision   uint64    `json:"revision"`      // the store's revision at the last change of the spec or the status
	CreatedAt  time.Time `json:"created_at"`
	UpdatedAt  time.Time `json:"updated_at"`
	Deleted    bool      `json:"deleted,omitempty"` // deletion requested; the controller of the object purges it
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

// SetCondition replaces the condition of the type of c in list. Since is kept while the
// status stays the same, and is now otherwise.
func SetCondition(list []Condition, c Condition, now time.Time) []Condition {
	c.Since = now
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
	Ref string `json:"ref"` // by which it was pulled first
}

// ImageStatus is the observed state of an image.
type ImageStatus struct {
	UnusedSince *time.Time `json:"unused_since,omitempty"` // since when no container names it; nil: one does, or it is unknown
}
