package volume

import (
	"context"
	"errors"
	"log/slog"
	"time"

	v1 "berth/api/v1"
	"berth/controller"
	"berth/store"
)

// The scanner walks one volume at a time, and all of them once in a period. After each walk it
// rests restFactor times as long as the walk took.
const (
	scanPeriod  = time.Minute
	scanTimeout = 10 * time.Minute // for one walk
	restFactor  = 3
)

// Scanner measures the disk usage of volumes periodically. The API counts its own
// writes; the scanner finds the writes of containers.
type Scanner struct {
	Store       *store.Store
	Directories Directories
	Log         *slog.Logger
}

// Source returns a source that measures every volume in each period, and names it afterwards.
func (s *Scanner) Source() controller.Source {
	return func(ctx context.Context, notify func(string)) error {
		for ctx.Err() == nil {
			began := time.Now()
			ids, err := s.ids()
			if err != nil {
				return err
			}
			for _, id := range ids {
				if ctx.Err() != nil {
					return nil
				}
				s.scan(ctx, id)
				notify(id)
			}
			rest(ctx, scanPeriod-time.Since(began))
		}
		return nil
	}
}

// ids returns the ids of the volumes that have a directory.
func (s *Scanner) ids() (ids []string, err error) {
	err = s.Store.View(func(tx *store.Tx) error {
		list, err := store.Volumes.List(tx)
		for _, v := range list {
			if v.Status.Created && !v.Meta.Deleted {
				ids = append(ids, v.Meta.ID)
			}
		}
		return err
	})
	return ids, err
}

// scan walks a volume, and rests.
func (s *Scanner) scan(ctx context.Context, id string) {
	began := time.Now()
	limited, cancel := context.WithTimeout(ctx, scanTimeout)
	defer cancel()
	err := controller.Catch(s.Log, "disk usage scan", func() error {
		_, err := s.Directories.Scan(limited, id)
		return err
	}, "volume", id)
	reported := errors.Is(err, v1.ErrDirectoryMissing) || errors.Is(err, v1.ErrNotADirectory) // by DirectoryReady
	if err != nil && ctx.Err() == nil && !reported {
		s.Log.Warn("could not measure the disk usage of a volume", "volume", id, "err", err)
	}
	rest(ctx, restFactor*time.Since(began))
}

// rest waits for d, or until ctx ends.
func rest(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
