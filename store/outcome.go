package store

import (
	"encoding/json"
	"errors"
	"time"

	v1 "berth/api/v1"
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

	// Of the entry in the audit log, for the entries of repetitions.
	Object    string `json:"object,omitempty"`
	Container string `json:"container,omitempty"`
	Volume    string `json:"volume,omitempty"`
}

const outcomeLog sequence = "outcome"

// lookupPrefix begins the keys of the numbers of outcomes.
const lookupPrefix = "outcome-key/"

func (o Outcome) lookupKey() string { return lookupPrefix + o.Owner + "/" + o.Key }
func quotaKey(quota string) string  { return "outcome-count/" + quota }

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
// updates, and returns the number of outcomes that it has removed. An outcome that cannot
// be read counts as old, and is logged once: when it is removed.
func (s *Store) TrimOutcomes(before time.Time) (removed int, err error) {
	for {
		var old oldOutcomes
		err := s.Update(func(tx *Tx) (err error) {
			old, err = trimOutcomes(tx, before)
			return err
		})
		if err != nil {
			return removed, err
		}
		for seq, err := range old.unreadable {
			s.log.Error("removed an outcome that cannot be read", "seq", seq, "err", err)
		}
		if removed += old.len(); old.len() < trimChunk {
			return removed, nil
		}
	}
}

// oldOutcomes are the outcomes that one update removes.
type oldOutcomes struct {
	list       []Outcome
	unreadable map[uint64]error // by seq
}

func (o oldOutcomes) len() int { return len(o.list) + len(o.unreadable) }

func trimOutcomes(tx *Tx, before time.Time) (old oldOutcomes, err error) {
	oldest, newest, err := outcomeLog.bounds(tx)
	if err != nil || oldest > newest {
		return old, err
	}
	old.unreadable = map[uint64]error{}
	next := newest + 1 // if none is left
	for entry := range tx.scan(outcomeLog.prefix(), outcomeLog.key(oldest)) {
		var o Outcome
		seq, damage := outcomeLog.seq(entry.key), entry.read(func(b []byte) error { return json.Unmarshal(b, &o) })
		if old.len() == trimChunk || damage == nil && !o.Time.Before(before) {
			next = seq
			break
		}
		if damage != nil {
			old.unreadable[seq] = damage
			continue
		}
		old.list = append(old.list, o)
	}
	if tx.err != nil || next == oldest {
		return oldOutcomes{}, tx.err
	}
	for _, o := range old.list {
		if err := dropOutcome(tx, o); err != nil {
			return old, err
		}
	}
	return old, errors.Join(dropUnreadable(tx, old.unreadable), tx.setNumbers(outcomeLog.boundsKey(), next, newest))
}

// dropUnreadable removes outcomes by their seq, and their keys. Their quotas are unknown
// and go on counting them: no client can damage an outcome, so that is rare.
func dropUnreadable(tx *Tx, seqs map[uint64]error) error {
	if len(seqs) == 0 {
		return nil
	}
	var keys []string
	for seq := range seqs {
		keys = append(keys, outcomeLog.key(seq))
	}
	for entry := range tx.scan(lookupPrefix, lookupPrefix) {
		seq, err := tx.number(entry.key)
		if err != nil {
			return err
		}
		if _, is := seqs[seq]; is {
			keys = append(keys, entry.key)
		}
	}
	for _, key := range keys {
		if err := tx.remove(key); err != nil {
			return err
		}
	}
	return tx.err
}
