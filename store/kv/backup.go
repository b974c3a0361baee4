package kv

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
)

// Backup writes one consistent state of the database to w, while it is used.
func (db *DB) Backup(w io.Writer) error {
	_, end, err := db.beginView() // Close waits for it
	if err != nil {
		return err
	}
	defer end()
	s := db.badger.NewStream()
	s.NumGo = 1 // each goroutine would read a state of its own
	if _, err := s.Backup(w, 0); err != nil {
		return fmt.Errorf("%w: backup: %w", ErrFailed, err)
	}
	return db.Err() // it may have read what was not committed
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
