package kv

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"
	"github.com/dgraph-io/badger/v4/table"
	"github.com/dgraph-io/ristretto/v2/z"
)

// verify reads every block of the tables that Badger is about to open. Badger
// itself ends a scan early at a bad block, without an error, and panics in a
// goroutine of its own on a truncated table.
func verify(o badger.Options) error {
	f, err := os.Open(filepath.Join(o.Dir, badger.ManifestFilename))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrFailed, err)
	}
	defer f.Close()
	manifest, _, err := badger.ReplayManifestFile(f, o.ExternalMagicVersion, o)
	if err != nil {
		return damaged(f.Name(), err)
	}
	for id := range manifest.Tables {
		name := table.NewFilename(id, o.Dir)
		if err := verifyTable(name, o); err != nil {
			return damaged(name, err)
		}
	}
	return nil
}

func damaged(name string, err error) error {
	return fmt.Errorf("%w: %s: %w; restore a backup, or move the directory away to start with an empty store, which never touches the containers of this one", ErrDamaged, name, err)
}

// verifyTable verifies a table with Badger's own function.
func verifyTable(name string, o badger.Options) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errors.New("it is not a readable table")
		}
	}()
	file, err := z.OpenMmapFile(name, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	t, err := table.OpenTable(file, table.Options{
		ReadOnly:    true,
		BlockSize:   o.BlockSize,
		Compression: o.Compression,
		ChkMode:     options.OnTableRead,
	})
	if err != nil {
		return err
	}
	return t.Close(-1)
}
