package volume

import (
	"context"
	"errors"
	"hash/fnv"
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

// Source returns a source that measures every volume in turn and names each after its walk:
// all in the first period, then those with a limit in each period, and a part of the
// others, so that each of them is measured once in scanEvery periods. In a period the
// volumes whose usage changes are measured first.
func (s *Scanner) Source() controller.Source {
	return func(ctx context.Context, notify func(string)) error {
		last := newWalks()
		for period := 0; ctx.Err() == nil; period++ {
			began := time.Now()
			all, ids, err := s.ids(period)
			if err != nil {
				return err
			}
			last.keep(all)
			last.order(ids)
			for _, id := range ids {
				if ctx.Err() != nil {
					return nil
				}
				if used, ok := s.scan(ctx, id); ok {
					last.record(id, used)
				}
				notify(id)
			}
			rest(ctx, scanPeriod-time.Since(began))
		}
		return nil
	}
}

// ids returns the ids of all volumes, and of those to measure in a period.
func (s *Scanner) ids(period int) (all, due []string, err error) {
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
			if !v.Status.Created || v.Meta.Deleted {
				continue
			}
			all = append(all, v.Meta.ID)
			if period == 0 || limit > 0 || turnOf(v.Meta.ID) == period%scanEvery {
				due = append(due, v.Meta.ID)
			}
		}
		return nil
	})
	return all, due, err
}

// turnOf returns the period, of scanEvery, in which a volume without a limit is measured.
func turnOf(id string) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(id)) // never fails
	return int(h.Sum32() % scanEvery)
}

// scan walks a volume, rests, and returns the usage, and whether it was measured.
func (s *Scanner) scan(ctx context.Context, id string) (used v1.Usage, ok bool) {
	began := time.Now()
	limited, cancel := context.WithTimeout(ctx, scanTimeout)
	defer cancel()
	err := controller.Catch(s.Log, "disk usage scan", func() (err error) {
		used, err = s.Directories.Scan(limited, id)
		return err
	}, "volume", id)
	reported := errors.Is(err, v1.ErrDirectoryMissing) || errors.Is(err, v1.ErrNotADirectory) // by DirectoryReady
	if err != nil && ctx.Err() == nil && !reported {
		s.Log.Warn("could not measure the disk usage of a volume", "volume", id, "err", err)
	}
	rest(ctx, restFactor*time.Since(began))
	return used, err == nil
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
