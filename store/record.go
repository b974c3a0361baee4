package store

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/google/uuid"

	v1 "berth/api/v1"
)

// record is what is stored of an object under one key: its spec or its status.
type record[V any] struct {
	Meta  v1.Meta
	Value V
}

// readRecord returns a record that is the caller's own.
func readRecord[V cloner[V]](tx *Tx, key string) (r record[V], err error) {
	e, err := tx.find(key)
	if err != nil {
		return r, err
	}
	return load[V](tx, e)
}

// load decodes a record, or takes it from the cache. Only committed records are
// cached.
func load[V cloner[V]](tx *Tx, e entry) (r record[V], err error) {
	version := e.version()
	if version == 0 {
		r, _, err = decodeEntry[V](e)
		return r, err
	}
	if kept, ok := tx.store.cache.get(e.key, version).(*record[V]); ok {
		return record[V]{kept.Meta, kept.Value.Clone()}, nil
	}
	if r, _, err = decodeEntry[V](e); err == nil {
		tx.store.cache.put(e.key, version, &record[V]{r.Meta, r.Value.Clone()})
	}
	return r, err
}

// recordToChange returns a record to change, and its value as stored.
func recordToChange[V any](tx *Tx, key string) (r record[V], value []byte, err error) {
	e, err := tx.find(key)
	if err != nil {
		return r, nil, err
	}
	return decodeEntry[V](e)
}

func decodeEntry[V any](e entry) (r record[V], value []byte, err error) {
	err = e.read(func(b []byte) error {
		_, v, _ := bytes.Cut(b, []byte{'\n'})
		value = bytes.Clone(v)
		r, err = decode[V](b)
		return err
	})
	return r, value, err
}

func decode[V any](b []byte) (r record[V], err error) {
	meta, value, ok := bytes.Cut(b, []byte{'\n'})
	if !ok {
		return r, fmt.Errorf("%w: %w: not two lines", ErrFailed, ErrDamaged)
	}
	if err = json.Unmarshal(meta, &r.Meta); err == nil {
		err = json.Unmarshal(value, &r.Value)
	}
	if r.Meta.UID == "" {
		r.Meta.UID = derivedUID(r.Meta)
	}
	if err != nil {
		return r, fmt.Errorf("%w: %w: %w", ErrFailed, ErrDamaged, err)
	}
	return r, nil
}

// writeRecord stores meta and the encoded value.
func writeRecord(tx *Tx, key string, meta v1.Meta, value []byte) error {
	m, err := json.Marshal(meta)
	if err != nil {
		return err
	}
	b := make([]byte, 0, len(m)+1+len(value))
	return tx.set(key, append(append(append(b, m...), '\n'), value...))
}

// derivedUID returns the UID of an object that an older berth created: always the
// same, and stored with the next change of its spec. A status has none.
func derivedUID(m v1.Meta) string {
	if m.CreatedAt.IsZero() {
		return ""
	}
	return uuid.NewSHA1(uuid.NameSpaceOID, fmt.Appendf(nil, "%s %d", m.ID, m.CreatedAt.UnixNano())).String()
}
