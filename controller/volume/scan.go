package volume

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	v1 "berth/api/v1"
	"berth/controller"
	"berth/store"
)

// The scanner walks one volume at a time, and all of them once in a period. After each walk it
// rests restFactor times as long as the walk took. The volumes whose last walk took slowWalk have
// turns of their own: they delay one another alone.
const (
	scanPeriod  = time.Minute      // at most
	scanTimeout = 10 * time.Minute // for one walk
	restFactor  = 3
	slowWalk    = 2 * time.Second
	idleTurns   = 8 // between two walks of a volume without a limit that does not change, at most
)

// Scanner measures the disk usage of volumes periodically. The API counts its own
// writes; the scanner finds the writes of containers.
type Scanner struct {
	Store       *store.Store
	Directories Directories
	Period      time.Duration // between two walks of a volume with a limit, at most a minute; 0 is a minute
	Log         *slog.Logger

	slow sync.Map // ids of volumes whose last walk took slowWalk
}

// Source returns a source that measures every volume with a limit in each period, and as many
// of the others, in turn, as it can meanwhile: these must not delay the detection of a volume
// over its limit. One of the others whose usage does not change is measured less often, the longer that
// lasts. It names a volume afterwards if its record differs.
func (s *Scanner) Source() controller.Source {
	return func(ctx context.Context, notify func(string)) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		ended := make(chan error, 2)
		for _, slow := range []bool{false, true} {
			go func() {
				ended <- controller.Catch(s.Log, "disk usage scan", func() error { return s.turns(slow)(ctx, notify) })
			}()
		}
		err := <-ended
		cancel()
		return errors.Join(err, <-ended)
	}
}

// turns returns a source that measures the volumes that are slow, or the others.
func (s *Scanner) turns(slow bool) controller.Source {
	return func(ctx context.Context, notify func(string)) error {
		period := min(cmp.Or(s.Period, scanPeriod), scanPeriod)
		last := "" // the last volume without a limit
		paces := map[string]pace{}
		for turn := 0; ctx.Err() == nil; turn++ {
			began := time.Now()
			limited, others := s.ids(slow)
			for _, id := range limited {
				s.scan(ctx, id, notify)
			}
			next, _ := slices.BinarySearch(others, last+"\x00")
			for _, id := range slices.Concat(others[next:], others[:next]) {
				if turn < paces[id].next {
					continue
				}
				s.scan(ctx, id, notify)
				paces[id] = paces[id].after(turn, s.Directories.Used(id))
				last = id
				if time.Since(began) >= period {
					break
				}
			}
			maps.DeleteFunc(paces, func(id string, _ pace) bool { _, is := slices.BinarySearch(others, id); return !is })
			controller.Sleep(ctx, period-time.Since(began))
		}
		return nil
	}
}

// pace is how often a volume without a limit is measured, in turns of the scanner.
type pace struct {
	used        v1.Usage
	every, next int // number of turns between two walks, and the turn of the next one; 0: it was not walked
}

// after returns the pace after a walk that measured a usage.
func (p pace) after(turn int, used v1.Usage) pace {
	every := 1
	if p.every > 0 && p.used == used {
		every = min(2*p.every, idleTurns)
	}
	return pace{used, every, turn + every}
}

// ids returns the ids of the volumes that have a directory: with a limit, and without, both
// sorted.
func (s *Scanner) ids(slow bool) (limited, others []string) {
	tx := s.Store.Read()
	for _, v := range store.Volumes.List(tx) {
		if _, is := s.slow.Load(v.Meta.ID); !v.Status.Created || v.Meta.Deleted || is != slow {
			continue
		}
		if store.LimitOf(tx, v) == 0 {
			others = append(others, v.Meta.ID)
		} else {
			limited = append(limited, v.Meta.ID)
		}
	}
	return limited, others
}

// settled reports whether the record of a volume has the result of its walk.
func (s *Scanner) settled(id string) bool {
	v, err := store.Volumes.Get(s.Store.Read(), id)
	return err == nil && settled(v, s.Directories)
}

// scan walks a volume, names it if its record differs, and rests. It does nothing if ctx has ended.
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
	took := time.Since(began)
	if err != nil || !s.settled(id) {
		notify(id)
	}
	_, was := s.slow.Load(id)
	switch {
	case errors.Is(err, v1.ErrDirectoryMissing), took < slowWalk:
		s.slow.Delete(id)
	case !was: // its rest is left to the next turn, so that it delays the others once by its walk alone
		s.slow.Store(id, true)
		return
	}
	controller.Sleep(ctx, restFactor*took)
}
