package volume

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	v1 "berth/api/v1"
	"berth/runtime/volume/quota"
	"berth/runtime/volume/walk"
)

// directoryPlace replaces a volume that is a directory: it exchanges the two
// directories.
type directoryPlace struct {
	vol    *openVolume
	beside *folder // the directory of the volumes
	name   string  // of the new tree in it, and of the old one after commit
}

func (p *directoryPlace) create(ctx context.Context) (string, error) {
	if err := p.vol.m.leftovers.remove(ctx, p.beside.root, p.name); err != nil {
		return "", err
	}
	p.vol.m.leftovers.add(p.name)
	return p.name, p.beside.dir.Mkdir(p.name)
}

func (p *directoryPlace) commit() error {
	if err := unix.Syncfs(int(p.beside.dir.File().Fd())); err != nil {
		return os.NewSyscallError("syncfs", err)
	}
	swap := func() error { return p.beside.dir.Rename(p.name, p.beside.dir, p.vol.id, unix.RENAME_EXCHANGE) }
	switch err := swap(); {
	case is(err, syscall.EBUSY, syscall.EXDEV):
		return v1.Errorf(v1.Unavailable, "Volume directory is a mount point, which cannot be replaced")
	case is(err, syscall.EINVAL, syscall.ENOSYS):
		return v1.Errorf(v1.Unavailable, "The file system of the volumes cannot exchange directories (renameat2)")
	case err != nil:
		return err
	}
	if err := p.beside.sync(); err != nil {
		return errors.Join(err, swap(), p.beside.sync())
	}
	return nil
}

func (p *directoryPlace) discard(ctx context.Context) error {
	return p.remove(ctx, p.name)
}

// remove removes a tree beside the volume.
func (p *directoryPlace) remove(ctx context.Context, name string) error {
	_, err := walk.Remove(ctx, p.beside.dir, name, quota.OnDisk)
	if err == nil {
		p.vol.m.leftovers.drop(name)
	}
	return err
}

// clean renames the old tree before it removes it: its name belongs to the next
// restore.
func (p *directoryPlace) clean(ctx context.Context) error {
	var b [8]byte
	rand.Read(b[:])
	gone := p.name + "-" + hex.EncodeToString(b[:])
	p.vol.m.leftovers.add(gone)
	if err := p.beside.dir.RenameNew(p.name, p.beside.dir, gone); err != nil {
		return err
	}
	p.vol.m.leftovers.drop(p.name)
	return p.remove(ctx, gone)
}

// imagePlace replaces a volume that has a file system of its own, whose root no rename
// can replace: it creates a second image.
type imagePlace struct {
	vol   *openVolume
	image *quota.Replacement
}

func (p *imagePlace) create(ctx context.Context) (name string, err error) {
	if p.image, err = p.vol.m.images.Replace(ctx, p.vol.id, p.vol.quota.Limit()); err != nil {
		return "", err
	}
	return p.image.Name(), nil
}

func (p *imagePlace) commit() error {
	if err := p.image.Sync(); err != nil {
		return err
	}
	return p.image.Commit()
}

func (p *imagePlace) discard(context.Context) error { return p.image.Remove() }

// clean does nothing: the kernel frees the old image with its last user.
func (p *imagePlace) clean(context.Context) error { return nil }
