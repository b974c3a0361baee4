package volume

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"

	"berth/runtime/volume/quota"
	"berth/runtime/volume/walk"
)

// Sweep removes the temporary entries that a crash left in the volume, and the trees
// that one left beside it. It returns v1.ErrVolumeRestoring during a restore.
func (m *Manager) Sweep(ctx context.Context, id string) error {
	done, err := m.gate.change(id)
	if err != nil {
		return err
	}
	defer done()
	vol, err := m.open(ctx, id)
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
	return errors.Join(sweep(ctx, top, func(name string) bool { return isTemp(name) && !m.inUse(name) }),
		removeFrom(ctx, base, restoringPrefix+id))
}

// sweep removes the entries of d that isLeft selects, in batches, because there
// may be very many.
func sweep(ctx context.Context, d *walk.Dir, isLeft func(name string) bool) error {
	for {
		var left []string
		err := d.Each(func(name string) error {
			if isLeft(name) && len(left) < sweepAtOnce {
				left = append(left, name)
			}
			return ctx.Err()
		})
		if err != nil || len(left) == 0 {
			return err
		}
		for _, name := range left {
			if _, err := walk.Remove(ctx, d, name, quota.OnDisk); err != nil {
				return err
			}
		}
	}
}

// sweepAtOnce is how many names a batch of a sweep has.
const sweepAtOnce = 512

// removeFrom removes the entry gone of base and everything in it, and the entries
// that an older version of berth moved up from it.
func removeFrom(ctx context.Context, base *os.Root, gone string) error {
	all, err := walk.OpenDir(base, root)
	if err != nil {
		return err
	}
	defer all.Close()
	return sweep(ctx, all, func(name string) bool { return name == gone || strings.HasPrefix(name, gone+"-") })
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
