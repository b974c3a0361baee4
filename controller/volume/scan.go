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

// What measuring may cost: volumes are walked one after the other, with a rest
// as long as the walk times restFactor between two.
const (
	scanPeriod  = time.Minute      // of volumes with a limit
	scanEvery   = 5                // of the others, in periods
	scanLimit   = 10 * time.Minute // of one walk
	restFactor  = 3
	restAtLeast = 20 * time.Millisecond
)

// Scanner measures what volumes use, again and again. What the API writes is
// counted without it; it finds what containers write.
type Scanner struct {
	Store       *store.Store
	Directories Directories
	Log         *slog.Logger
}

// Source measures every volume in turn, those with a limit more often, and names
// each when it is done.
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

// ids lists the volumes that can be measured: all, or those with a limit.
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
	limited, cancel := context.WithTimeout(ctx, scanLimit)
	defer cancel()
	_, err := s.Directories.Scan(limited, id)
	known := errors.Is(err, v1.ErrDirectoryMissing) || errors.Is(err, v1.ErrNotADirectory) // told by its condition
	if err != nil && ctx.Err() == nil && !known {
		s.Log.Warn("a volume could not be measured", "volume", id, "err", err)
	}
	rest(ctx, restFactor*time.Since(began))
}

// rest waits for d, restAtLeast at the least, or until ctx ends.
func rest(ctx context.Context, d time.Duration) {
	t := time.NewTimer(max(d, restAtLeast))
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
