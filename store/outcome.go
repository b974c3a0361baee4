package store

import (
	"encoding/json"

	v1 "berth/api/v1"
	"berth/store/kv"
)

// Outcome is the response to a request with an idempotency key, for its repetitions. It
// vanishes after v1.OutcomeRetention.
type Outcome struct {
	TokenID     string `json:"owner"`         // of the token that made the request
	Quota       string `json:"quota"`         // by which outcomes are counted
	Key         string `json:"key"`           // hash of the idempotency key, in hex
	Fingerprint string `json:"fingerprint"`   // of the request
	UID         string `json:"uid,omitempty"` // of the container that it names
	Status      int    `json:"status"`
	Code        string `json:"code,omitempty"` // of X-Error-Code
	Body        []byte `json:"body"`

	// Of the entry in the audit log, for the entries of repetitions.
	Object    string `json:"object,omitempty"`
	Container string `json:"container,omitempty"`
	Volume    string `json:"volume,omitempty"`
}

const outcomePrefix = "outcome/"

func outcomesOf(quota string) string { return outcomePrefix + quota + "/" }
func (o Outcome) key() string        { return outcomesOf(o.Quota) + o.TokenID + "/" + o.Key }

// of returns the outcome with the names in the description of its request.
func (o Outcome) of(a v1.Audit) Outcome {
	o.Object, o.Container, o.Volume = v1.AuditObject(a.Name()), v1.AuditObject(a.Container), v1.AuditObject(a.Volume)
	return o
}

// Describe completes the description of a repetition of the outcome's request.
func (o Outcome) Describe(a *v1.Audit) {
	if o.Object != "" {
		a.Object, a.Path, a.Container, a.Volume = o.Object, "", o.Container, o.Volume
	}
}

func (o Outcome) equals(p Outcome) bool {
	return o.Status == p.Status && o.Code == p.Code && string(o.Body) == string(p.Body)
}

// FindOutcome returns the stored outcome of the token, the quota and the key of another one,
// or ErrNotFound. It is for views.
func FindOutcome(tx *Tx, like Outcome) (o Outcome, err error) {
	err = tx.read(func(t *kv.Txn) error {
		item, err := t.Get(like.key())
		if err != nil {
			return err
		}
		return unmarshal(item, &o)
	})
	return o, err
}

// put stores an outcome, or replaces the one of the same key.
func (o Outcome) put(tx *Tx) error {
	text, err := json.Marshal(o)
	if err != nil {
		return err
	}
	return tx.write(o.key(), text)
}
