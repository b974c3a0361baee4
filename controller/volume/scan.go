package volume

import (
	"context"
	"errors"
	"log/slog"
	"slices"
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

// Source returns a source that measures every volume with a limit in each period, and as many
// of the others, in turn, as it can meanwhile: these must not delay the detection of a volume
// over its limit. It names each volume afterwards.
func (s *Scanner) Source() controller.Source {
	return func(ctx context.Context, notify func(string)) error {
		last := "" // the last volume without a limit
		for ctx.Err() == nil {
			began := time.Now()
			limited, others, err := s.ids()
			if err != nil {
				return err
			}
			for _, id := range limited {
				s.scan(ctx, id, notify)
			}
			next, _ := slices.BinarySearch(others, last+"\x00")
			for _, id := range slices.Concat(others[next:], others[:next]) {
				s.scan(ctx, id, notify)
				last = id
				if time.Since(began) >= scanPeriod {
					break
				}
			}
			rest(ctx, scanPeriod-time.Since(began))
		}
		return nil
	}
}

// ids returns the ids of the volumes that have a directory: with a limit, and without, both
// sorted.
func (s *Scanner) ids() (limited, others []string, err error) {
	err = s.Store.View(func(tx *store.Tx) error {
		for _, v := range store.Volumes.List(tx) {
			if !v.Status.Created || v.Meta.Deleted {
				continue
			}
			if limit, err := limitOf(tx, v); err == nil && limit == 0 {
				others = append(others, v.Meta.ID)
			} else {
				limited = append(limited, v.Meta.ID)
			}
		}
		return nil
	})
	return limited, others, err
}

// scan walks a volume, names it, and rests. It does nothing if ctx has ended.
func (s *Scanner) scan(ctx context.Context, id string, notify func(string)) {
	if ctx.Err() != nil {
		return
	}
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
	notify(id)
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
