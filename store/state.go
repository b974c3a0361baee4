package store

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/google/btree"

	v1 "berth/api/v1"
	"berth/store/kv"
)

// schemaVersion is the version of the key space that doc.go describes.
const schemaVersion = 1

// The keys of single values.
const (
	schemaKey       entry[int]            = "meta/schema"
	idKey           entry[string]         = "meta/id"
	revisionKey     entry[uint64]         = "meta/revision"
	incarnationsKey entry[[]incarnation]  = "meta/incarnations"
	nodeKey         entry[[]v1.Condition] = "meta/node"
	engineKey       entry[string]         = "meta/engine"
)

// state is everything that is kept in memory, at one time. Copies share what they have in
// common: a change of one is not seen in another.
type state struct {
	rows     *btree.BTreeG[row]
	revision uint64
}

// row is a value by its key. Values are never changed: a change replaces them.
type row struct {
	key   string
	value any // nil: the key of an index; an error: it cannot be decoded
}

func newState() *state {
	const degree = 16 // of 4 to 64, the fastest for updates
	return &state{rows: btree.NewG(degree, func(a, b row) bool { return a.key < b.key })}
}

func (s state) get(key string) (value any, found bool) {
	r, found := s.rows.Get(row{key: key})
	return r.value, found
}

// from yields the rows whose keys begin with prefix, from a key on, in order.
func (s state) from(prefix, key string) iter.Seq2[string, any] {
	return func(yield func(string, any) bool) {
		s.rows.AscendGreaterOrEqual(row{key: max(prefix, key)}, func(r row) bool {
			return strings.HasPrefix(r.key, prefix) && yield(r.key, r.value)
		})
	}
}

// entry is the key of a value that is stored as JSON.
type entry[V any] string

// get returns the value, which must not be changed: the zero V if there is none.
func (e entry[V]) get(tx *Tx) (v V, err error) {
	value, _ := tx.get(string(e))
	switch value := value.(type) {
	case V:
		return value, nil
	case error:
		return v, fmt.Errorf("%w: %s: %w", ErrFailed, e, value)
	}
	return v, nil
}

func (e entry[V]) set(tx *Tx, v V) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if err := tx.write(string(e), text); err != nil {
		return err
	}
	tx.rows.ReplaceOrInsert(row{string(e), v})
	return nil
}

func (e entry[V]) remove(tx *Tx) error {
	if err := tx.write(string(e), nil); err != nil {
		return err
	}
	tx.rows.Delete(row{key: string(e)})
	return nil
}

// load reads the stored value of e, or of every key that begins with e.
func (e entry[V]) load(s *Store, to *state, key string, text []byte) {
	var v V
	if err := json.Unmarshal(text, &v); err != nil {
		s.log.Error("cannot read a value", "key", key, "err", err)
		to.rows.ReplaceOrInsert(row{key, fmt.Errorf("%w: %w", ErrDamaged, err)})
		return
	}
	to.rows.ReplaceOrInsert(row{key, v})
}

// loader reads a stored key into a state.
type loader func(s *Store, to *state, key string, text []byte)

// loaders returns how the keys are read that begin with a text. Others stay on the disk.
func loaders() map[string]loader {
	return map[string]loader{
		string(revisionKey):          revisionKey.load,
		string(incarnationsKey):      incarnationsKey.load,
		string(nodeKey):              nodeKey.load,
		string(engineKey):            engineKey.load,
		string(jumpKey):              jumpKey.load,
		string(eventLog.boundsKey()): eventLog.boundsKey().load,
		string(auditLog.boundsKey()): auditLog.boundsKey().load,
		claimPrefix:                  entry[v1.Claim](claimPrefix).load,
		cursorPrefix:                 entry[uint64](cursorPrefix).load,
		restoringPrefix:              entry[string](restoringPrefix).load,
		Containers.prefix():          Containers.load,
		Volumes.prefix():             Volumes.load,
		Pools.prefix():               Pools.load,
		Tokens.prefix():              Tokens.load,
		Backups.prefix():             Backups.load,
		Policies.prefix():            Policies.load,
		Restores.prefix():            Restores.load,
		Pulls.prefix():               Pulls.load,
		Images.prefix():              Images.load,
		Schedules.prefix():           Schedules.load,
		Transfers.prefix():           Transfers.load,
		Arrivals.prefix():            Arrivals.load,
	}
}

// load reads the store.
func (s *Store) load() (isNew bool, err error) {
	to := newState()
	err = s.db.View(func(t *kv.Txn) error {
		if isNew, err = s.checkSchema(t); isNew || err != nil {
			return err
		}
		for prefix, load := range loaders() {
			for item := range t.Scan(prefix, prefix) {
				if err := item.Value(func(text []byte) error { load(s, to, item.Key(), text); return nil }); err != nil {
					return err
				}
			}
		}
		return nil
	})
	s.state.Store(to)
	if err != nil || isNew {
		return isNew, err
	}
	tx := s.Read()
	to.revision, err = revisionKey.get(tx)
	_, damage := incarnationsKey.get(tx)
	return false, errors.Join(err, damage, eventLog.check(tx), auditLog.check(tx))
}

// checkSchema reads the id of the store, and returns an error if its version is another
// than that of this berth.
func (s *Store) checkSchema(t *kv.Txn) (isNew bool, err error) {
	var version int
	if err = readEntry(t, schemaKey, &version); err == nil {
		err = readEntry(t, idKey, &s.id)
	}
	switch {
	case errors.Is(err, ErrNotFound):
		for item := range t.Scan("", "") {
			return false, fmt.Errorf("%w: it has the key %q but no schema version; restore a backup, or move its directory away to start with an "+
				"empty store, which never touches the containers of this one", ErrDamaged, item.Key())
		}
		return true, nil
	case err != nil && !errors.Is(err, ErrDamaged):
		return false, err
	case err != nil || version != schemaVersion:
		return false, fmt.Errorf("%w: its schema is not version %d; start the version that wrote it, or restore a backup that this one has "+
			"made, or move its directory away to start with an empty store, which never touches the containers of this one", ErrSchema,
			schemaVersion)
	}
	return false, nil
}

func readEntry[V any](t *kv.Txn, key entry[V], to *V) error {
	item, err := t.Get(string(key))
	if err != nil {
		return err
	}
	return item.Value(func(text []byte) error {
		if err := json.Unmarshal(text, to); err != nil {
			return fmt.Errorf("%w: %q: %w", ErrDamaged, key, err)
		}
		return nil
	})
}

// create writes the version and a new random id into an empty store.
func (s *Store) create() error {
	b := make([]byte, 16)
	rand.Read(b) // never fails
	id := hex.EncodeToString(b)
	err := s.Update(func(tx *Tx) error { return errors.Join(schemaKey.set(tx, schemaVersion), idKey.set(tx, id)) })
	if err == nil {
		s.id = id
	}
	return err
}
