package volume

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	v1 "berth/api/v1"
	"berth/runtime/volume/backup"
)

// Restore extracts an archive beside the volume's content and replaces the content in
// one step, after it verified the archive. After an error, and after a
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
	if err := s.m.Sweep(ctx, id); err != nil { // what a killed restore left takes space
		return err
	}
	vol, err := s.m.open(ctx, id)
	if err != nil {
		return err
	}
	defer vol.close()
	o, err := vol.ownerIn(root)
	if err != nil {
		return err
	}
	x, err := vol.newTemp(o)
	if err != nil {
		return err
	}
	return refuse(id, (&restore{vol: vol, temp: x, archive: a, opt: opt}).run(ctx, r))
}

// restore is one restore of a volume.
type restore struct {
	vol     *openVolume
	temp    *temp // the new tree, and the old one after commit; run closes it
	archive v1.SnapshotArchive
	opt     v1.RestoreOptions
}

func (x *restore) run(ctx context.Context, r io.Reader) error {
	m, id := x.vol.m, x.vol.id
	if err := m.projects.limit(id, 0); err != nil { // two trees are in the project for a while
		x.temp.close()
		return err
	}
	defer m.limitAgain(id)
	err := x.extract(ctx, r)
	if err == nil {
		err = x.commit()
	}
	if err != nil {
		x.temp.close()
		return err
	}
	m.abandon(id)
	x.vol.close() // the last reader that may be in the old tree
	_ = m.gate.drain(ctx, id)
	x.temp.close()
	if _, err := m.Scan(ctx, id); err == nil {
		m.changes.add(id)
	}
	return nil
}

// limitAgain sets the hard limit of a volume after a restore. If that fails, Check returns the error.
func (m *Manager) limitAgain(id string) {
	m.projects.read(id)
	_ = m.projects.limit(id, m.quota(id).Limit())
}

// commit makes the new tree durable and exchanges it with the volume's directory. If it
// fails, the volume is as it was.
func (x *restore) commit() error {
	in := x.temp.in
	top, err := x.vol.m.openBase(x.vol.id)
	if err != nil {
		return err
	}
	defer top.Close()
	base, err := openFolder(top, root)
	if err != nil {
		return err
	}
	defer base.close()
	if err := unix.Syncfs(int(in.file.Fd())); err != nil {
		return os.NewSyscallError("syncfs", err)
	}
	swap := func() error { return in.rename(x.temp.name, base, x.vol.id, unix.RENAME_EXCHANGE) }
	sync := func() error { return errors.Join(base.sync(), in.sync()) }
	switch err := swap(); {
	case is(err, syscall.EBUSY, syscall.EXDEV):
		return v1.Errorf(v1.Unavailable, "Volume directory is a mount point, which cannot be replaced")
	case is(err, syscall.EINVAL, syscall.ENOSYS):
		return v1.Errorf(v1.Unavailable, "The file system of the volumes cannot exchange directories (renameat2)")
	case err != nil:
		return err
	}
	if err := sync(); err != nil {
		return errors.Join(err, swap(), sync())
	}
	return nil
}

// extract creates the new tree.
func (x *restore) extract(ctx context.Context, r io.Reader) error {
	to, err := x.temp.mkdir()
	if err != nil {
		return err
	}
	defer to.close()
	m, id := x.vol.m, x.vol.id
	if err := m.projects.add(filepath.Join(m.base, tempDir, id, x.temp.name), id); err != nil {
		return err
	}
	var credit int64
	if x.opt.Mode == v1.RestoreReplace {
		credit = x.vol.quota.Used().Bytes
	}
	reservation := x.vol.newReservation(credit)
	defer reservation.Release()
	opt := backup.ExtractOptions{Reserve: reservation.Grow, Progress: progressOf(x.opt.Progress, x.archive.Bytes)}
	if err := backup.Extract(ctx, r, x.archive, to.Root, opt); err != nil {
		return err
	}
	if x.opt.Mode == v1.RestoreMerge { // the entries of the old tree that the archive lacks
		if err := backup.Merge(ctx, x.vol.root, to.Root, opt); err != nil {
			return err
		}
	}
	return ctx.Err()
}
