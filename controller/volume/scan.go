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

// The scanner walks one volume at a time. After each walk it rests restFactor times as
// long as the walk took.
const (
	scanPeriod  = time.Minute      // for volumes with a limit
	scanEvery   = 5                // periods, for volumes without a limit
	scanTimeout = 10 * time.Minute // for one walk
	restFactor  = 3
	minRest     = 20 * time.Millisecond
)

// Scanner measures the disk usage of volumes periodically. The API counts its own
// writes; the scanner finds the writes of containers.
type Scanner struct {
	Store       *store.Store
	Directories Directories
	Log         *slog.Logger
}

// Source returns a source that measures every volume in turn, volumes with a limit more
// often, and names each after its walk.
func (s *Scanner) Source() controller.Source {
	return func(ctx context.Context, notify func(string)) error {
		for period := 0; ctx.Err() == nil; period++ {
			began := time.Now()
			ids, err := s.ids(period%scanEvery == 0)
			if err != nil {
				return err
			}
			for _, id := range ids {
				s.scan(ctx, id)
				notify(id)
			}
			rest(ctx, scanPeriod-time.Since(began))
		}
		return nil
	}
}

// ids returns the ids of the volumes to measure: all, or only those with a limit.
func (s *Scanner) ids(all bool) (ids []string, err error) {
	err = s.Store.View(func(tx *store.Tx) error {
		list, err := store.Volumes.List(tx)
		if err != nil {
			return err
		}
		for _, v := range list {
			limit, err := limitOf(tx, v)
			if err != nil {
				return err
			}
			if v.Status.Created && !v.Meta.Deleted && (all || limit > 0) {
				ids = append(ids, v.Meta.ID)
			}
		}
		return nil
	})
	return ids, err
}

func (s *Scanner) scan(ctx context.Context, id string) {
	began := time.Now()
	limited, cancel := context.WithTimeout(ctx, scanTimeout)
	defer cancel()
	_, err := s.Directories.Scan(limited, id)
	reported := errors.Is(err, v1.ErrDirectoryMissing) || errors.Is(err, v1.ErrNotADirectory) // by DirectoryReady
	if err != nil && ctx.Err() == nil && !reported {
		s.Log.Warn("could not measure the disk usage of a volume", "volume", id, "err", err)
	}
	rest(ctx, restFactor*time.Since(began))
}

// rest waits for d, but at least for minRest, or until ctx ends.
func rest(ctx context.Context, d time.Duration) {
	t := time.NewTimer(max(d, minRest))
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
