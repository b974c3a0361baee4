package store

import (
	"encoding/json"
	"errors"
	"time"
)

// Outcome is the response to a request with an idempotency key, for its repetitions.
type Outcome struct {
	Time        time.Time `json:"time"`
	Owner       string    `json:"owner"`       // id of the token
	Quota       string    `json:"quota"`       // by which outcomes are counted
	Key         string    `json:"key"`         // hash of the idempotency key, in hex
	Fingerprint string    `json:"fingerprint"` // of the request
	Status      int       `json:"status"`
	Code        string    `json:"code,omitempty"` // of X-Error-Code
	Body        []byte    `json:"body"`
}

const outcomeLog sequence = "outcome"

func (o Outcome) lookupKey() string { return "outcome-key/" + o.Owner + "/" + o.Key }
func quotaKey(quota string) string  { return "outcome-count/" + quota }
func (o Outcome) equals(p Outcome) bool {
	return o.Status == p.Status && o.Code == p.Code && string(o.Body) == string(p.Body)
}

// FindOutcome returns the stored outcome of an owner's idempotency key, or ErrNotFound.
func FindOutcome(tx *Tx, owner, key string) (o Outcome, err error) {
	seq, err := tx.number(Outcome{Owner: owner, Key: key}.lookupKey())
	if err != nil {
		return o, err
	}
	err = tx.read(outcomeLog.key(seq), func(b []byte) error { return json.Unmarshal(b, &o) })
	return o, err
}

// Outcomes returns the number of stored outcomes of a quota.
func Outcomes(tx *Tx, quota string) uint64 {
	n, err := tx.number(quotaKey(quota))
	tx.fail(err)
	return n
}

// putOutcome stores an outcome, or replaces the one of the same owner and key.
func putOutcome(tx *Tx, o Outcome) error {
	o.Time = tx.now
	seq, err := tx.number(o.lookupKey())
	if err != nil {
		return err
	}
	if seq != 0 {
		b, err := json.Marshal(o)
		return errors.Join(err, tx.set(outcomeLog.key(seq), b))
	}
	err = outcomeLog.append(tx, func(next uint64) any { seq = next; return o })
	return errors.Join(err, tx.setNumbers(o.lookupKey(), seq), countOutcome(tx, o.Quota, 1))
}

// dropOutcome removes an outcome if it is stored.
func dropOutcome(tx *Tx, o Outcome) error {
	seq, err := tx.number(o.lookupKey())
	if err != nil || seq == 0 {
		return err
	}
	return errors.Join(tx.remove(outcomeLog.key(seq)), tx.remove(o.lookupKey()), countOutcome(tx, o.Quota, -1))
}

// countOutcome changes the number of outcomes of a quota, and removes it if it is 0.
func countOutcome(tx *Tx, quota string, by int) error {
	n, err := tx.number(quotaKey(quota))
	if err != nil {
		return err
	}
	if n = uint64(max(0, int(n)+by)); n == 0 {
		return tx.remove(quotaKey(quota))
	}
	return tx.setNumbers(quotaKey(quota), n)
}

// TrimOutcomes removes the outcomes that are older than before. It needs several
// updates, and returns the number of outcomes that it has removed.
func (s *Store) TrimOutcomes(before time.Time) (removed int, err error) {
	for {
		n := 0
		err := s.Update(func(tx *Tx) (err error) {
			n, err = trimOutcomes(tx, before)
			return err
		})
		if removed += n; err != nil || n < trimChunk {
			return removed, err
		}
	}
}

func trimOutcomes(tx *Tx, before time.Time) (n int, err error) {
	oldest, newest, err := outcomeLog.bounds(tx)
	if err != nil || oldest > newest {
		return 0, err
	}
	var old []Outcome
	next := newest + 1 // if none is left
	for entry := range tx.scan(outcomeLog.prefix(), outcomeLog.key(oldest)) {
		var o Outcome
		if err := entry.read(func(b []byte) error { return json.Unmarshal(b, &o) }); err != nil {
			return 0, err
		}
		if len(old) == trimChunk || !o.Time.Before(before) {
			next = outcomeLog.seq(entry.key)
			break
		}
		old = append(old, o)
	}
	if tx.err != nil || next == oldest {
		return 0, tx.err
	}
	for _, o := range old {
		if err := dropOutcome(tx, o); err != nil {
			return 0, err
		}
	}
	return len(old), tx.setNumbers(outcomeLog.boundsKey(), next, newest)
}
