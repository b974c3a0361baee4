package store

import (
	"bytes"
	"encoding/json"
	"fmt"

	v1 "berth/api/v1"
)

// half is the stored half of an object: its spec or its status.
type half[V any] struct {
	Meta  v1.Meta
	Value V
}

// readHalf returns a half, and the bytes of its value as they are stored.
func readHalf[V any](tx *Tx, key string) (h half[V], value []byte, err error) {
	err = tx.read(key, func(b []byte) error {
		_, v, _ := bytes.Cut(b, []byte{'\n'})
		if tx.update {
			value = bytes.Clone(v)
		}
		h, err = decode[V](b)
		return err
	})
	return h, value, err
}

func decode[V any](b []byte) (h half[V], err error) {
	meta, value, ok := bytes.Cut(b, []byte{'\n'})
	if !ok {
		return h, fmt.Errorf("%w: %w: not two lines", ErrFailed, ErrDamaged)
	}
	if err = json.Unmarshal(meta, &h.Meta); err == nil {
		err = json.Unmarshal(value, &h.Value)
	}
	if err != nil {
		return h, fmt.Errorf("%w: %w: %w", ErrFailed, ErrDamaged, err)
	}
	return h, nil
}

// writeHalf stores meta and the encoded value.
func writeHalf(tx *Tx, key string, meta v1.Meta, value []byte) error {
	m, err := json.Marshal(meta)
	if err != nil {
		return err
	}
	b := make([]byte, 0, len(m)+1+len(value))
	return tx.set(key, append(append(append(b, m...), '\n'), value...))
}
