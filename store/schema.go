package store

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
)

const (
	schemaKey   = "meta/schema"
	idKey       = "meta/id"
	revisionKey = "meta/revision"
)

// migration migrates a store from one version to the next. It may use several
// updates. If it is interrupted, it runs again from its beginning.
type migration func(*Store) error

// migrations returns the migrations of all versions: the one at i migrates from
// version i+1 to i+2.
func migrations() []migration { return []migration{splitClaims, indexEvents, splitSkipped} }

// migrate initialises a new store, or migrates an old one to the newest version.
func (s *Store) migrate(version uint64, steps []migration) error {
	newest := uint64(len(steps) + 1)
	if version == 0 {
		return s.Update(func(tx *Tx) error {
			return errors.Join(tx.setNumbers(schemaKey, newest), makeID(tx))
		})
	}
	if version > newest {
		return newer(version, newest)
	}
	for ; version < newest; version++ {
		s.log.Info("migrating the store", "from", version, "to", version+1)
		if err := steps[version-1](s); err != nil {
			return fmt.Errorf("migrate from version %d: %w", version, err)
		}
		err := s.Update(func(tx *Tx) error { return tx.setNumbers(schemaKey, version+1) })
		if err != nil {
			return err
		}
	}
	return nil
}

// newestVersion returns the version of the stores that this berth writes.
func newestVersion() uint64 { return uint64(len(migrations()) + 1) }

func newer(version, newest uint64) error {
	return fmt.Errorf("%w: it has version %d, this one knows up to %d; start the newer one", ErrNewer, version, newest)
}

// schema returns the version of the store, 0 if it is empty, and its id.
func schema(tx *Tx) (version uint64, id string, err error) {
	if version, err = tx.number(schemaKey); err != nil {
		return 0, "", err
	}
	err = tx.read(idKey, func(b []byte) error {
		id = string(b)
		return nil
	})
	if version != 0 && err == nil {
		return version, id, nil
	}
	if err != nil && !errors.Is(err, ErrNotFound) {
		return 0, "", err
	}
	for e := range tx.scan("", "") {
		return 0, "", fmt.Errorf("%w: it has the key %q but no schema version; restore a backup, or move its directory away to start with an empty store, which never touches the containers of this one", ErrDamaged, e.key)
	}
	return 0, "", tx.err
}

// makeID sets a new random id.
func makeID(tx *Tx) error {
	b := make([]byte, 16)
	rand.Read(b) // never fails
	tx.store.id = hex.EncodeToString(b)
	return tx.set(idKey, []byte(tx.store.id))
}
