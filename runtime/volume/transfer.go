package volume

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"

	v1 "berth/api/v1"
	"berth/runtime/volume/backup"
)

// Tree writes the listing of a volume's tree to w, and returns its digest.
func (m *Manager) Tree(ctx context.Context, id string, w io.Writer, p v1.Priority) (tree v1.TreeSum, err error) {
	err = m.read(ctx, id, root, func(vol *Volume) error {
		tree, err = backup.ListTree(ctx, vol.root.Root, w, m.opt.Limits.NameBytes, p)
		return err
	})
	return tree, err
}

// Send writes to w what the tree needs that has a listing to become equal to the volume. See backup.Send.
func (m *Manager) Send(ctx context.Context, id string, listing io.Reader, w io.Writer, opt v1.SendOptions) (sent v1.Sent, err error) {
	err = m.read(ctx, id, root, func(vol *Volume) error {
		bounds, err := boundsOf(vol)
		if err != nil {
			return err
		}
		sent, err = backup.Send(ctx, vol.root.Root, listing, w, backup.SendOptions{SendOptions: opt, Bounds: bounds,
			NameBytes: m.opt.Limits.NameBytes})
		return err
	})
	return sent, err
}

// Flush writes what containers have changed in memory to the disk of a volume. A change after the call is recorded
// in the time of its file's last change, also if it is made through memory.
func (m *Manager) Flush(ctx context.Context, id string) error {
	return m.read(ctx, id, root, func(vol *Volume) error {
		return os.NewSyscallError("syncfs", unix.Syncfs(int(vol.root.File.Fd())))
	})
}

// AwaitChanges waits until the changes of a volume's files that were begun before it was reserved have ended.
func (m *Manager) AwaitChanges(ctx context.Context, id string) error {
	return m.Alone(ctx, id, func() error { return nil })
}

// Alone calls do while nothing changes the files of a volume, and nothing else is called so. It returns
// v1.ErrVolumeRestoring during another call, or a restore.
func (m *Manager) Alone(ctx context.Context, id string, do func() error) error {
	done, err := m.of(id).restore(ctx)
	if err != nil {
		return err
	}
	defer done()
	return do()
}

// Receive changes a volume that an arrival has reserved into the tree that Send has written to r. The volume may
// grow to most bytes meanwhile, whatever its limit is.
func (m *Manager) Receive(ctx context.Context, id string, r io.Reader, most int64, p v1.Priority) error {
	done, err := m.of(id).restore(ctx)
	if err != nil {
		return err
	}
	defer done()
	if err := m.projects.limit(id, 0); err != nil {
		return err
	}
	defer m.limitAgain(id)
	return m.read(ctx, id, root, func(vol *Volume) error {
		// of its own: entries are replaced while the volume is near its limit
		use := &quota{known: true, used: vol.quota.Used().Bytes, limit: most}
		space := &reservation{quota: use, space: vol.space}
		defer space.Release()
		err := backup.Receive(ctx, r, most, vol.root.Root, backup.ExtractOptions{Reserve: space.Grow, Priority: p})
		if _, failed := m.Scan(context.WithoutCancel(ctx), id); err == nil {
			err = failed
		}
		vol.quota.Add(0) // Changed reports it
		return err
	})
}

// Verified calls commit if a volume that an arrival has reserved has the digest of a tree. Nothing changes the volume meanwhile,
// and what it holds is durable.
func (m *Manager) Verified(ctx context.Context, id, digest string, commit func() error) error {
	done, err := m.of(id).restore(ctx)
	if err != nil {
		return err
	}
	defer done()
	if err := m.Flush(ctx, id); err != nil {
		return err
	}
	tree, err := m.Tree(ctx, id, io.Discard, v1.NormalPriority)
	if err != nil {
		return err
	}
	if tree.Digest != digest {
		return v1.Errorf(v1.Precondition, "The files that have arrived are not those of the source: their digest is %s", tree.Digest)
	}
	return commit()
}

// CheckSpace returns v1.ErrDiskFull if the host has no space for so many bytes of volumes, and in another directory for others, besides
// the reserve of the store.
func (m *Manager) CheckSpace(bytes int64, dir string, others int64) error {
	if others == 0 {
		return checkSpace(m.base, bytes)
	}
	var a, b unix.Stat_t
	if err := errors.Join(unix.Stat(m.base, &a), unix.Stat(dir, &b)); err != nil {
		return os.NewSyscallError("stat", err)
	}
	if a.Dev == b.Dev {
		return checkSpace(m.base, bytes+others)
	}
	return cmp.Or(checkSpace(m.base, bytes), checkSpace(dir, others))
}

func checkSpace(dir string, bytes int64) error {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return os.NewSyscallError("statfs", err)
	}
	block := int64(st.Bsize)
	if bytes > int64(st.Bavail)*block-v1.DiskReserve(int64(st.Blocks)*block) {
		return v1.ErrDiskFull
	}
	return nil
}
