package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	v1 "berth/api/v1"
)

// The kinds of objects.
const (
	Containers Collection[v1.ContainerSpec, v1.ContainerStatus] = "container"
	Volumes    Collection[v1.VolumeSpec, v1.VolumeStatus]       = "volume"
	Pools      Collection[v1.PoolSpec, v1.PoolStatus]           = "pool"
	Tokens     Collection[v1.TokenSpec, v1.TokenStatus]         = "token"
	Backups    Collection[v1.BackupSpec, v1.BackupStatus]       = "backup"
	Policies   Collection[v1.PolicySpec, v1.PolicyStatus]       = "policy" // of backups; the id is the volume's
	Restores   Collection[v1.RestoreSpec, v1.RestoreStatus]     = "restore"
	Pulls      Collection[v1.PullSpec, v1.PullStatus]           = "pull"
	Images     Collection[v1.ImageSpec, v1.ImageStatus]         = "image"
	Schedules  Collection[v1.ScheduleSpec, v1.ScheduleStatus]   = "schedule"
	Transfers  Collection[v1.TransferSpec, v1.TransferStatus]   = "transfer"
	Arrivals   Collection[v1.ArrivalSpec, v1.ArrivalStatus]     = "arrival"
)

// Collection reads and writes the objects of one kind, which is its value. What it returns
// is shared: it must not be changed. Errors name the object.
type Collection[S, T any] string

// object is an object as it is kept in memory. A record of it that cannot be decoded has
// an error.
type object[S, T any] struct {
	v1.Object[S, T]
	spec, status error
}

// damage returns why the object cannot be read, or nil.
func (o *object[S, T]) damage() error { return errors.Join(o.spec, o.status) }

func (c Collection[S, T]) kind() string         { return string(c) }
func (c Collection[S, T]) prefix() string       { return string(c) + "/" }
func (c Collection[S, T]) key(id string) string { return string(c) + "/" + id }

func (c Collection[S, T]) wrap(id string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %s: %w", c.kind(), id, err)
}

// find returns an object, or nil.
func (c Collection[S, T]) find(tx *Tx, id string) *object[S, T] {
	value, found := tx.get(c.key(id))
	if !found {
		return nil
	}
	return c.of(value)
}

// of returns the object of a row. Storetest puts others into a collection.
func (c Collection[S, T]) of(value any) *object[S, T] {
	if o, is := value.(*object[S, T]); is {
		return o
	}
	return &object[S, T]{status: fmt.Errorf("%w: %w: of another kind", ErrFailed, ErrDamaged)}
}

// Get returns one object, or ErrNotFound, or ErrDamaged.
func (c Collection[S, T]) Get(tx *Tx, id string) (o v1.Object[S, T], err error) {
	found := c.find(tx, id)
	if found == nil {
		return o, c.wrap(id, ErrNotFound)
	}
	if err := found.damage(); err != nil {
		return o, c.wrap(id, err)
	}
	return found.Object, nil
}

// IDs returns the ids of all objects, sorted, including those that List leaves out
// because they cannot be decoded.
func (c Collection[S, T]) IDs(tx *Tx) []string { return c.IDsBeginning(tx, "") }

// IDsBeginning returns the ids of IDs that begin with text.
func (c Collection[S, T]) IDsBeginning(tx *Tx, text string) (ids []string) {
	for key := range tx.from(c.key(text), "") {
		ids = append(ids, key[len(c.prefix()):])
	}
	return ids
}

// After yields the objects whose id is greater than an id, sorted by id. An object that
// cannot be decoded is left out, so that it blocks no other.
func (c Collection[S, T]) After(tx *Tx, id string) iter.Seq[v1.Object[S, T]] {
	return func(yield func(v1.Object[S, T]) bool) {
		for key, value := range tx.from(c.prefix(), c.key(id)) {
			o := c.of(value)
			if key != c.key(id) && o.damage() == nil && !yield(o.Object) {
				return
			}
		}
	}
}

// List returns all objects, sorted by id, except for those that cannot be decoded.
func (c Collection[S, T]) List(tx *Tx) []v1.Object[S, T] { return slices.Collect(c.After(tx, "")) }

// Each yields the objects with some ids, in their order. It leaves out those that are
// missing and those that cannot be decoded.
func (c Collection[S, T]) Each(tx *Tx, ids []string) iter.Seq[v1.Object[S, T]] {
	return func(yield func(v1.Object[S, T]) bool) {
		for _, id := range ids {
			if o, err := c.Get(tx, id); err == nil && !yield(o) {
				return
			}
		}
	}
}

// Create stores a new object, or returns ErrExists.
func (c Collection[S, T]) Create(tx *Tx, id string, spec S) error {
	return c.create(tx, id, spec, tx.now)
}

// Import stores a new object as another node had it, or returns ErrExists. It is for objects about whose status nothing is left to
// be observed: their controller has not seen it before.
func (c Collection[S, T]) Import(tx *Tx, id string, o v1.Object[S, T]) error {
	if err := c.create(tx, id, o.Spec, o.Meta.CreatedAt); err != nil {
		return err
	}
	return c.SetStatus(tx, id, func(s *T) { *s = o.Status })
}

func (c Collection[S, T]) create(tx *Tx, id string, spec S, at time.Time) error {
	if id == "" || strings.Contains(id, "/") {
		return fmt.Errorf("%s %q: an id must not be empty or have a slash", c.kind(), id)
	}
	if c.find(tx, id) != nil {
		return c.wrap(id, ErrExists)
	}
	own, text, err := ownCopy(spec)
	if err != nil {
		return c.wrap(id, err)
	}
	o := &object[S, T]{}
	o.Spec = own
	o.Meta = v1.Meta{ID: id, UID: uuid.NewString(), Generation: 1, Created: tx.Revision(), CreatedAt: at}
	return c.writeSpec(tx, o, text)
}

// SetSpec changes the desired state and raises the generation. It returns
// ErrNotFound, or the error of change. A change that leaves the spec as it was
// writes nothing.
func (c Collection[S, T]) SetSpec(tx *Tx, id string, change func(*S) error) error {
	old := c.find(tx, id)
	if old == nil {
		return c.wrap(id, ErrNotFound)
	}
	if old.spec != nil {
		return c.wrap(id, old.spec)
	}
	spec, before, err := ownCopy(old.Spec)
	if err != nil {
		return c.wrap(id, err)
	}
	if err := change(&spec); err != nil {
		return err
	}
	own, text, err := ownCopy(spec)
	if err != nil || bytes.Equal(text, before) {
		return c.wrap(id, err)
	}
	o := *old
	o.Spec = own
	o.Meta.Generation++
	return c.writeSpec(tx, &o, text)
}

// Delete marks the object as deleted, or returns ErrNotFound. Its controller purges
// it when nothing is left of it on the host. Deleting it again changes nothing.
func (c Collection[S, T]) Delete(tx *Tx, id string) error {
	old := c.find(tx, id)
	if old == nil {
		return c.wrap(id, ErrNotFound)
	}
	if old.spec != nil || old.Meta.Deleted {
		return c.wrap(id, old.spec)
	}
	text, err := json.Marshal(old.Spec)
	if err != nil {
		return c.wrap(id, err)
	}
	o := *old
	o.Meta.Deleted = true
	return c.writeSpec(tx, &o, text)
}

// writeSpec stores an object with a spec.
func (c Collection[S, T]) writeSpec(tx *Tx, o *object[S, T], spec []byte) error {
	id := o.Meta.ID
	o.Meta.Revision, o.Meta.UpdatedAt = tx.Revision(), latest(o.Meta.UpdatedAt, tx.now)
	meta, err := json.Marshal(o.Meta)
	if err != nil {
		return c.wrap(id, err)
	}
	return c.wrap(id, c.put(tx, SpecChanged, o, c.key(id)+"/spec", lines(meta, spec)))
}

// SetStatus changes the observed state, or returns ErrNotFound. A change that leaves
// the status as it was writes nothing. A status with a method Transition emits the
// transition that the change is.
func (c Collection[S, T]) SetStatus(tx *Tx, id string, change func(*T)) error {
	old := c.find(tx, id)
	if old == nil {
		return c.wrap(id, ErrNotFound)
	}
	if old.status != nil {
		return c.wrap(id, old.status)
	}
	status, before, err := ownCopy(old.Status)
	if err != nil {
		return c.wrap(id, err)
	}
	change(&status)
	if t, is := any(&status).(transitioner[S, T]); is {
		t.Transition(old.Object, tx.Emit)
	}
	own, text, err := ownCopy(status)
	if err != nil || bytes.Equal(text, before) {
		return c.wrap(id, err)
	}
	if now := c.find(tx, id); now != nil {
		old = now // change has changed the spec
	}
	o := *old
	o.Status = own
	o.Meta.Revision, o.Meta.UpdatedAt = tx.Revision(), latest(o.Meta.UpdatedAt, tx.now)
	meta, err := json.Marshal(statusMeta{o.Meta.Revision, o.Meta.UpdatedAt})
	if err != nil {
		return c.wrap(id, err)
	}
	return c.wrap(id, c.put(tx, StatusChanged, &o, c.key(id)+"/status", lines(meta, text)))
}

// transitioner is the pointer to a status some of whose changes are transitions.
type transitioner[S, T any] interface {
	// Transition emits the transition from the status of an object to this one, if there is one,
	// and may keep the Seq of it.
	Transition(from v1.Object[S, T], emit func(v1.Event) v1.Event)
}

// Purge removes the records of the object, if there is one.
func (c Collection[S, T]) Purge(tx *Tx, id string) error {
	old := c.find(tx, id)
	if old == nil {
		return nil
	}
	for _, key := range []string{c.key(id) + "/spec", c.key(id) + "/status"} {
		if err := tx.write(key, nil); err != nil {
			return c.wrap(id, err)
		}
	}
	if c.kind() == Backups.kind() {
		tx.writes[skippedKey(id)] = nil
	}
	c.unindex(&tx.state, old)
	tx.rows.Delete(row{key: c.key(id)})
	tx.recordChange(Change{Kind: c.kind(), ID: id, What: Purged})
	return nil
}

// put stores a record of an object.
func (c Collection[S, T]) put(tx *Tx, what What, o *object[S, T], key string, text []byte) error {
	if err := tx.write(key, text); err != nil {
		return err
	}
	c.keep(&tx.state, o)
	tx.recordChange(Change{Kind: c.kind(), ID: o.Meta.ID, What: what})
	return nil
}

// recordChange adds a change for the watchers, unless it equals the one before.
func (tx *Tx) recordChange(c Change) {
	if n := len(tx.changes); n == 0 || tx.changes[n-1] != c {
		tx.changes = append(tx.changes, c)
	}
}

// ownCopy returns a deep copy, and the value as it is stored. An object that is kept is such a copy: it
// shares nothing with the caller's, and is the same after a restart.
func ownCopy[V any](v V) (own V, text []byte, err error) {
	if text, err = json.Marshal(v); err == nil {
		err = json.Unmarshal(text, &own)
	}
	return own, text, err
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// statusMeta is what a status has instead of an object's Meta, which is the spec's.
type statusMeta struct {
	Revision  uint64    `json:"revision"`
	UpdatedAt time.Time `json:"updated_at"`
}

// lines returns a record: meta and a value.
func lines(meta, value []byte) []byte {
	b := make([]byte, 0, len(meta)+1+len(value))
	return append(append(append(b, meta...), '\n'), value...)
}

// decode decodes a record.
func decode(text []byte, meta, value any) error {
	first, second, two := bytes.Cut(text, []byte{'\n'})
	if !two {
		return fmt.Errorf("%w: %w: not two lines", ErrFailed, ErrDamaged)
	}
	err := json.Unmarshal(first, meta)
	if err == nil {
		err = json.Unmarshal(second, value)
	}
	if err != nil {
		return fmt.Errorf("%w: %w: %w", ErrFailed, ErrDamaged, err)
	}
	return nil
}

// load reads a record of an object: its spec comes before its status. A status without a
// spec is left out.
func (c Collection[S, T]) load(s *Store, to *state, key string, text []byte) {
	id, part, _ := strings.Cut(key[len(c.prefix()):], "/")
	o := &object[S, T]{}
	var err error
	if part == "spec" {
		err = decode(text, &o.Meta, &o.Spec)
		o.Meta.ID, o.spec = id, err
	} else if value, found := to.get(c.key(id)); found {
		*o = *c.of(value)
		var m statusMeta
		err = decode(text, &m, &o.Status)
		o.status = err
		o.Meta.Revision, o.Meta.UpdatedAt = max(o.Meta.Revision, m.Revision), latest(o.Meta.UpdatedAt, m.UpdatedAt)
	} else {
		return
	}
	if err != nil {
		s.log.Error("cannot read an object", "kind", c.kind(), "id", id, "part", part, "err", err)
	}
	c.keep(to, o)
}
