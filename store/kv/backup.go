package kv

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
)

// Backup writes one consistent state of the database to w, while it is used.
func Backup(db *DB, w io.Writer) error {
	b, err := db.borrow()
	if err != nil {
		return err
	}
	defer db.views.Done()
	version := b.begin()
	defer b.end(version)
	if _, err := b.NewStreamAt(version).Backup(w, 0); err != nil {
		return fmt.Errorf("%w: backup: %w", ErrFailed, err)
	}
	return nil
}

// loadAtOnce is how many batches of Load are written at the same time.
const loadAtOnce = 16

// Load creates a database in dir from what Backup has written.
func Load(dir string, r io.Reader) error {
	o := badgerOptions(dir, slog.New(slog.DiscardHandler)).WithNumCompactors(2)
	b, err := openBadger(o)
	if err != nil {
		return err
	}
	err = b.Load(r, loadAtOnce)
	return errors.Join(err, b.Close())
}
