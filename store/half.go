package store

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/google/uuid"

	v1 "berth/api/v1"
)

// record is the stored half of an object: its spec or its status.
type record[V any] struct {
	Meta  v1.Meta
	Value V
}

// readRecord returns a half that is the caller's own.
func readRecord[V any](tx *Tx, key string, clone func(V) V) (h record[V], err error) {
	e, err := tx.find(key)
	if err != nil {
		return h, err
	}
	return load(tx, e, clone)
}

// load decodes a half, or takes it from the cache. What is not committed yet is
// not cached: it is this update's own, or has the version that its batch reads at.
func load[V any](tx *Tx, e entry, clone func(V) V) (h record[V], err error) {
	if e.item == nil || tx.update && e.item.Version() >= tx.txn.ReadTs() {
		h, _, err = decodeEntry[V](e)
		return h, err
	}
	version := e.item.Version()
	if kept, ok := tx.store.cache.get(e.key, version).(*record[V]); ok {
		return record[V]{kept.Meta, clone(kept.Value)}, nil
	}
	if h, _, err = decodeEntry[V](e); err == nil {
		tx.store.cache.put(e.key, version, &record[V]{h.Meta, clone(h.Value)})
	}
	return h, err
}

// changeRecord returns a half to change, and the bytes of its value as stored.
func changeRecord[V any](tx *Tx, key string) (h record[V], value []byte, err error) {
	e, err := tx.find(key)
	if err != nil {
		return h, nil, err
	}
	return decodeEntry[V](e)
}

func decodeEntry[V any](e entry) (h record[V], value []byte, err error) {
	err = e.read(func(b []byte) error {
		_, v, _ := bytes.Cut(b, []byte{'\n'})
		value = bytes.Clone(v)
		h, err = decode[V](b)
		return err
	})
	return h, value, err
}

func decode[V any](b []byte) (h record[V], err error) {
	meta, value, ok := bytes.Cut(b, []byte{'\n'})
	if !ok {
		return h, fmt.Errorf("%w: %w: not two lines", ErrFailed, ErrDamaged)
	}
	if err = json.Unmarshal(meta, &h.Meta); err == nil {
		err = json.Unmarshal(value, &h.Value)
	}
	if h.Meta.UID == "" {
		h.Meta.UID = derivedUID(h.Meta)
	}
	if err != nil {
		return h, fmt.Errorf("%w: %w: %w", ErrFailed, ErrDamaged, err)
	}
	return h, nil
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

// derivedUID is the UID of an object that an older berth made: always the same,
// and stored with the next change of its spec. A status has none.
func derivedUID(m v1.Meta) string {
	if m.CreatedAt.IsZero() {
		return ""
	}
	return uuid.NewSHA1(uuid.NameSpaceOID, fmt.Appendf(nil, "%s %d", m.ID, m.CreatedAt.UnixNano())).String()
}
