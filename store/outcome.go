package store

import (
	"encoding/json"
	"sync"
	"time"

	v1 "berth/api/v1"
	"berth/store/kv"
)

// Outcome is the response to a request with an idempotency key, for its repetitions. It
// vanishes after v1.OutcomeRetention.
type Outcome struct {
	Owner       string `json:"owner"`       // id of the token
	Quota       string `json:"quota"`       // by which outcomes are counted
	Key         string `json:"key"`         // hash of the idempotency key, in hex
	Fingerprint string `json:"fingerprint"` // of the request
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
func (o Outcome) key() string        { return outcomesOf(o.Quota) + o.Owner + "/" + o.Key }

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

// FindOutcome returns the stored outcome of the owner, the quota and the key of another one,
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

// countedFor is how long a number of outcomes is added to before they are counted again.
const countedFor = time.Minute

// outcomeCounts has the numbers of the outcomes of quotas, as far as they were counted lately.
// They are only limited, so an old number may be too large: outcomes vanish by themselves.
type outcomeCounts struct {
	mu sync.Mutex
	of map[string]outcomeCount
}

type outcomeCount struct {
	n  int
	at time.Time
}

func (c *outcomeCounts) add(quota string, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if was, counted := c.of[quota]; counted {
		c.of[quota] = outcomeCount{was.n + n, was.at}
	}
}

func (c *outcomeCounts) get(quota string, now time.Time) (n int, found bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	was, found := c.of[quota]
	return was.n, found && now.Sub(was.at) < countedFor
}

func (c *outcomeCounts) set(quota string, n int, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.of) >= 1000 || c.of == nil {
		c.of = map[string]outcomeCount{}
	}
	c.of[quota] = outcomeCount{n, now}
}

// Outcomes returns the number of stored outcomes of a quota. It is for views.
func Outcomes(tx *Tx, quota string) (n int, err error) {
	if n, found := tx.store.outcomes.get(quota, tx.now); found {
		return n, nil
	}
	err = tx.read(func(t *kv.Txn) error {
		for range t.Scan(outcomesOf(quota), outcomesOf(quota)) {
			n++
		}
		return nil
	})
	if err == nil {
		tx.store.outcomes.set(quota, n, tx.now)
	}
	return n, err
}
