package store

import v1 "berth/api/v1"

// Writer is a Store, or a Request that changes one.
type Writer interface {
	Read() *Tx
	Update(fn func(*Tx) error) error
	MustUpdate(fn func(*Tx) error) error
}

// Request changes a store on behalf of the client that sent a request. Each of its updates
// that succeeds stores the request's entry in the audit log and its outcome too, in the
// same commit. It is for one goroutine.
type Request struct {
	Audit   v1.Audit // without an Action, the request has no entry
	Success int      // the status of the response after an update that succeeded; 500: it took back what was made

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
	entry   AuditRecord // Seq 0: none
	audit   v1.Audit    // of the entry
	outcome *Outcome
}

// NewRequest returns the request of an actor, which Tx.Actor returns in its updates.
func NewRequest(s *Store, actor v1.Actor, a v1.Audit) *Request {
	return &Request{Audit: a, Success: 200, store: s, actor: actor}
}

// Read is Store.Read.
func (r *Request) Read() *Tx { return r.store.Read() }

// Update is Store.Update.
func (r *Request) Update(fn func(*Tx) error) error { return r.submit(r.withRecord(fn), false) }

// MustUpdate is Store.MustUpdate.
func (r *Request) MustUpdate(fn func(*Tx) error) error { return r.submit(r.withRecord(fn), true) }

// withRecord returns an update that checks the request, changes, and records the request.
func (r *Request) withRecord(change func(*Tx) error) func(tx *Tx, next *recorded) error {
	return func(tx *Tx, next *recorded) error {
		if r.Check != nil {
			if err := r.Check(tx); err != nil {
				return err
			}
		}
		if err := change(tx); err != nil {
			return err
		}
		return r.record(tx, next, r.Success, r.expected(tx))
	}
}

// expected returns the outcome of an update that succeeded. After one that takes back what the request
// has made there is none: a repetition is carried out again.
func (r *Request) expected(tx *Tx) *Outcome {
	switch {
	case r.Success >= 500:
		return nil
	case r.Outcome == nil || r.Body == nil:
		return r.Outcome
	}
	o, object := *r.Outcome, ""
	if n := len(tx.changes); n > 0 {
		object = tx.changes[n-1].ID
	}
	o.Status, o.Code, o.Body = r.Success, "", r.Body(object)
	return &o
}

// Stored reports whether the request has an entry.
func (r *Request) Stored() bool { return r.done.entry.Seq != 0 }

// Finish stores the status of the response in the request's entry, and the final outcome;
// nil removes an outcome that is stored. It may be called again: an entry that lasts, such
// as that of a session, is stored at its begin and completed at its end. They are on the
// disk when Finish returns nil.
func (r *Request) Finish(status int, final *Outcome) error { return r.finish(status, final, false) }

// MustFinish is Finish even while the disk is full, see Store.MustUpdate.
func (r *Request) MustFinish(status int, final *Outcome) error { return r.finish(status, final, true) }

func (r *Request) finish(status int, final *Outcome, onFullDisk bool) error {
	done := r.done
	sameEntry := r.Audit.Action == "" || done.entry.Seq != 0 && done.entry.Status == status
	sameOutcome := final == nil && done.outcome == nil || final != nil && done.outcome != nil && final.equals(*done.outcome)
	if sameEntry && sameOutcome {
		return nil
	}
	return r.submit(func(tx *Tx, next *recorded) error { return r.record(tx, next, status, final) }, onFullDisk)
}

// submit runs an update, which changes what the request has stored.
func (r *Request) submit(change func(tx *Tx, next *recorded) error, onFullDisk bool) error {
	next := r.done
	o := newOp(func(tx *Tx) error { return change(tx, &next) })
	o.actor, o.onFullDisk = r.actor, onFullDisk
	err := r.store.submit(o)
	if err == nil {
		r.done = next
	}
	return err
}

// record stores the entry, or the status in the entry that is stored already, and the
// outcome.
func (r *Request) record(tx *Tx, next *recorded, status int, outcome *Outcome) (err error) {
	switch {
	case r.Audit.Action == "":
	case next.entry.Seq != 0:
		next.entry, err = SetAuditStatus(tx, next.entry, status)
	default:
		next.audit = r.audit(tx)
		next.entry, err = AppendAudit(tx, r.actor, next.audit, status)
	}
	if err != nil {
		return err
	}
	before := next.outcome
	next.outcome = outcome
	switch {
	case outcome != nil:
		return outcome.of(next.audit).put(tx)
	case before != nil:
		return tx.write(before.key(), nil)
	}
	return nil
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
