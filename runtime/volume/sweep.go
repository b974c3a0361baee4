package volume

import (
	"cmp"
	"context"
	"errors"
	"sync"

	"berth/runtime/volume/quota"
	"berth/runtime/volume/walk"
)

// Sweep removes the temporary entries that a crash left in the volume, and the trees
// that one left beside it. A tenant may create such entries faster than they are removed:
// after Limits.SweepSteps the rest is left to the next scan. It returns
// v1.ErrVolumeRestoring during a restore.
func (m *Manager) Sweep(ctx context.Context, id string) error {
	done, err := m.gate.change(id)
	if err != nil {
		return err
	}
	defer done()
	vol, err := m.open(ctx, id, false)
	if err != nil {
		return err
	}
	defer vol.close()
	top, err := walk.OpenDir(vol.root, root)
	if err != nil {
		return err
	}
	defer top.Close()
	base, err := m.openBase(id)
	if err != nil {
		return err
	}
	defer base.Close()
	b, err := boundsOf(top, 0)
	if err != nil {
		return err
	}
	s := sweeper{ctxErr: ctx.Err, steps: cmp.Or(m.opt.Limits.SweepSteps, b.Steps)}
	beside := s.removeLeftovers(m.leftovers, base, restoringPrefix+id) // first: no tenant can add to it
	err = errors.Join(beside, s.sweep(top, func(name string) bool { return isTemp(name) && !m.inUse(name) }))
	if errors.Is(err, errEnough) {
		m.sweeps.request(id)
		return nil
	}
	return err
}

const (
	sweepAtOnce = 512 // names in a batch of a sweep
	sweepCost   = 64  // steps of a removal, which takes as long as reading so many names
)

// sweeper removes entries until it has no steps left. A step is a name that it reads.
type sweeper struct {
	ctxErr func() error
	steps  int64
}

// spend takes n steps. It returns errEnough if they are not left.
func (s *sweeper) spend(n int64) error {
	if s.steps < n {
		return errEnough
	}
	s.steps -= n
	return s.ctxErr()
}

// sweep removes the entries of d that isLeft selects, in batches, because there may be
// very many, until it finds none.
func (s *sweeper) sweep(d *walk.Dir, isLeft func(name string) bool) error {
	for {
		removed, err := s.pass(d, isLeft)
		if err != nil || removed == 0 {
			return err
		}
	}
}

// pass reads the names of d once.
func (s *sweeper) pass(d *walk.Dir, isLeft func(name string) bool) (removed int, err error) {
	var left []string
	err = d.Each(func(name string) error {
		if isLeft(name) {
			left = append(left, name)
		}
		if len(left) == sweepAtOnce {
			removed += len(left)
			if err := s.remove(d, left); err != nil {
				return err
			}
			left = left[:0]
		}
		return s.spend(1)
	})
	if err == nil {
		err = s.remove(d, left)
	}
	return removed + len(left), err
}

// remove removes the entries with these names.
func (s *sweeper) remove(d *walk.Dir, names []string) error {
	for _, name := range names {
		if err := s.spend(sweepCost); err != nil {
			return err
		}
		if _, err := walk.RemoveWhile(func() error { return s.spend(sweepCost) }, d, name, quota.OnDisk); err != nil {
			return err
		}
	}
	return nil
}

// sweeps holds the volumes that need no sweep, which are those without remains of a
// crash or of an interrupted removal.
type sweeps struct {
	mu    sync.Mutex
	clean map[string]bool
}

func newSweeps() *sweeps { return &sweeps{clean: map[string]bool{}} }

// start reports whether the volume needs a sweep, and records that it is swept. So
// a removal that fails during the sweep requests another one.
func (s *sweeps) start(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	needed := !s.clean[id]
	s.clean[id] = true
	return needed
}

// request makes the next scan sweep the volume.
func (s *sweeps) request(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.clean, id)
}
