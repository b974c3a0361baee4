package store

import (
	v1 "berth/api/v1"
)

// Writer is a Store, or a Request that changes one.
type Writer interface {
	View(fn func(*Tx) error) error
	Update(fn func(*Tx) error) error
	MustUpdate(fn func(*Tx) error) error
}

// Request changes a store on behalf of the client that sent a request. Its updates
// that succeeds stores the request's entry in the audit log and its outcome too, in the
// same commit. It is for one goroutine.
type Request struct {
	Audit   v1.Audit // without an Action, the request has no entry
	Success int      // the status of the response after an update that succeeded

	// Check runs in each update before its change, which its error refuses: the request may have
	// waited since it was admitted. nil: nothing is checked.
	Check func(tx *Tx) error

	// Outcome is the response to repetitions of the request: before Finish the one
	// after an update that succeeded and whose response got lost. nil: none is stored.
	Outcome *Outcome
	// Body returns the body of the response after an update that succeeded, where the
	// update has changed the object with this id last; nil: it is not known before.
	Body func(object string) []byte

	store *Store
	actor v1.Actor
	done  recorded
}

// recorded is what a request has stored.
type recorded struct {
	entry   v1.AuditEntry // Seq 0: none
	audit   v1.Audit      // of the entry
	outcome *Outcome
}

// NewRequest returns the request of an actor, which Tx.Actor returns in its updates.
func NewRequest(s *Store, actor v1.Actor, a v1.Audit) *Request {
	return &Request{Audit: a, Success: 200, store: s, actor: actor}
}

// View is Store.View.
func (r *Request) View(fn func(*Tx) error) error { return r.store.View(fn) }

// Update is Store.Update.
func (r *Request) Update(fn func(*Tx) error) error { return r.submit(newOp(fn)) }

// MustUpdate is Store.MustUpdate.
func (r *Request) MustUpdate(fn func(*Tx) error) error {
	o := newOp(fn)
	o.onFullDisk = true
	return r.submit(o)
}

func (r *Request) submit(o *op) error {
	change, done := o.fn, r.done
	o.actor = r.actor
	o.fn = func(tx *Tx) (err error) {
		if r.Check != nil {
			err = r.Check(tx)
		}
		if err == nil {
			err = change(tx)
		}
		if err == nil {
			done, err = r.record(tx, r.Success, r.expected(tx))
		}
		return err
	}
	err := o.submit(r.store)
	if err == nil {
		r.done = done
	}
	return err
}

// expected returns the outcome of an update that succeeded.
func (r *Request) expected(tx *Tx) *Outcome {
	if r.Outcome == nil || r.Body == nil {
		return r.Outcome
	}
	o := *r.Outcome
	o.Status, o.Code, o.Body = r.Success, "", r.Body(r.audit(tx).Object)
	return &o
}

// Finish stores the status of the response in the request's entry, and the final outcome;
// nil removes an outcome that is stored. It may be called again: an entry that lasts, such
// as that of a session, is stored at its begin and completed at its end. They are on the
// disk when Finish returns nil. If onFullDisk is true, they are
// stored even while the disk is full, see Store.MustUpdate.
func (r *Request) Finish(status int, final *Outcome, onFullDisk bool) error {
	done := r.done
	sameEntry := r.Audit.Action == "" || done.entry.Seq != 0 && done.entry.Status == status
	sameOutcome := final == nil && done.outcome == nil || final != nil && done.outcome != nil && final.equals(*done.outcome)
	if sameEntry && sameOutcome {
		return nil
	}
	o := newOp(func(tx *Tx) (err error) {
		done, err = r.record(tx, status, final)
		return err
	})
	o.onFullDisk = onFullDisk
	err := o.submit(r.store)
	if err == nil {
		r.done = done
	}
	return err
}

// record stores the entry, or the status in the entry that is stored already, and the
// outcome.
func (r *Request) record(tx *Tx, status int, outcome *Outcome) (done recorded, err error) {
	switch {
	case r.Audit.Action == "":
	case r.done.entry.Seq != 0:
		done.audit = r.done.audit
		done.entry, err = SetAuditStatus(tx, r.done.entry, status)
	default:
		done.audit = r.audit(tx)
		done.entry, err = AppendAudit(tx, r.actor, done.audit, status)
	}
	if err != nil {
		return done, err
	}
	if outcome != nil {
		done.outcome, err = outcome, putOutcome(tx, outcome.of(done.audit))
	} else if r.done.outcome != nil {
		err = dropOutcome(tx, *r.done.outcome)
	}
	return done, err
}

// audit returns the description of the request, with the object that its update has
// created if the request names none.
func (r *Request) audit(tx *Tx) v1.Audit {
	a := r.Audit
	if n := len(tx.changes); n > 0 && a.Object == "" {
		last := tx.changes[n-1]
		a.Object = last.ID
		if last.Kind == Volumes.kind() {
			a.Volume = last.ID
		}
	}
	return a
}
