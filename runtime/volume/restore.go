package volume

import (
	"context"
	"errors"
	"fmt"
	"io"

	v1 "berth/api/v1"
	"berth/runtime/volume/snapshot"
	"berth/runtime/volume/walk"
)

// restoringPrefix begins the names, beside the volumes, of trees that a restore
// extracts, and of trees that it replaced. The volume's id follows.
const restoringPrefix = ".restoring-"

// Restore extracts an archive beside the volume's content and replaces the content in
// one step, after it verified the archive as Verify does. After an error, and after a
// crash, the volume is as it was, or completely restored. Changes through Files are
// refused meanwhile. No container may use the volume.
func (s Snapshots) Restore(ctx context.Context, id string, r io.Reader, a v1.SnapshotArchive, opt v1.RestoreOptions) error {
	if opt.Mode != v1.RestoreReplace && opt.Mode != v1.RestoreMerge {
		return fmt.Errorf("restore mode %q is not supported", opt.Mode)
	}
	done, err := s.m.gate.restore(ctx, id)
	if err != nil {
		return err
	}
	defer done()
	if err := s.Fits(id, a, opt.Mode); err != nil {
		return err
	}
	vol, err := s.m.open(ctx, id, false)
	if err != nil {
		return err
	}
	defer vol.close()
	beside, err := openBeside(s.m, id)
	if err != nil {
		return err
	}
	defer beside.close()
	x := restore{vol: vol, beside: beside, archive: a, opt: opt}
	if s.m.images.Exists(id) {
		x.place = &imagePlace{vol: vol}
	} else {
		x.place = &directoryPlace{vol: vol, beside: beside, name: restoringPrefix + id}
	}
	err = refuse(id, x.run(ctx, r))
	if errors.Is(err, v1.ErrDiskFull) && s.m.images.Exists(id) && !errors.Is(s.m.space.Check(), v1.ErrDiskFull) {
		return v1.ErrSizeLimit // the new image is full, not the host
	}
	return err
}

// openBeside opens the directory of the volumes, which contains the volume id.
func openBeside(m *Manager, id string) (*folder, error) {
	base, err := m.openBase(id)
	if err != nil {
		return nil, err
	}
	d, err := walk.OpenDir(base, root)
	if err != nil {
		base.Close()
		return nil, err
	}
	return &folder{root: base, dir: d}, nil
}

// restore is one restore of a volume.
type restore struct {
	vol     *openVolume
	beside  *folder // the directory of the volumes
	place   place
	archive v1.SnapshotArchive
	opt     v1.RestoreOptions
}

// place is where the new tree is created, beside the volume.
type place interface {
	// create creates an empty folder beside the volume and returns its name. It removes
	// what a crash left.
	create(ctx context.Context) (name string, err error)
	// commit makes the new tree durable and puts it in place of the volume's, in one
	// step. If it fails, the volume is as it was.
	commit() error
	// discard removes the new tree.
	discard(ctx context.Context) error
	// clean removes the old tree, which no reader uses any more.
	clean(ctx context.Context) error
}

func (x *restore) run(ctx context.Context, r io.Reader) error {
	name, err := x.place.create(ctx)
	if err != nil {
		return err
	}
	err = x.extract(ctx, name, r)
	if err == nil {
		err = x.place.commit()
	}
	if err != nil {
		return errors.Join(err, x.place.discard(context.WithoutCancel(ctx)))
	}
	m, id := x.vol.m, x.vol.id
	m.abandon(id)
	x.vol.close() // the last reader that may be in the old tree
	if err := errors.Join(m.gate.drain(ctx, id), x.place.clean(ctx)); err != nil {
		m.sweeps.request(id) // a scan removes it
	}
	if _, err := m.Scan(ctx, id); err == nil {
		m.changes.add(id)
	}
	return nil
}

// extract creates the new tree in the folder name.
func (x *restore) extract(ctx context.Context, name string, r io.Reader) error {
	var credit int64
	if x.opt.Mode == v1.RestoreReplace {
		credit = x.vol.quota.Used().Bytes
	}
	reservation := x.vol.newReservation(credit)
	defer reservation.Release()
	opt := snapshot.ExtractOptions{Reserve: reservation.Grow, Progress: progressOf(x.opt.Progress, x.archive.Bytes)}
	if err := snapshot.Extract(ctx, r, x.archive, x.beside.dir, name, opt); err != nil {
		return err
	}
	if x.opt.Mode == v1.RestoreMerge {
		if err := x.merge(ctx, name, opt); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// merge adds the entries of the old tree that the archive lacks.
func (x *restore) merge(ctx context.Context, name string, opt snapshot.ExtractOptions) error {
	top, err := x.vol.top()
	if err != nil {
		return err
	}
	defer top.close()
	return snapshot.Merge(ctx, top.dir, x.beside.dir, name, isTemp, opt)
}
