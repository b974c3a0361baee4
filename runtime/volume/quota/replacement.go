package quota

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Replacement is a second image of a volume. A restore fills it, and it takes the place
// of the first one in one step: the rename of its file. The mount follows, and
// OpenImages completes that after a crash.
type Replacement struct {
	images *Images
	id     string
	place  string // directory where it is mounted until Commit
}

// replacementPrefix begins the name of the directory beside the volumes where a
// Replacement is mounted. The volume's id follows.
const replacementPrefix = ".replacing-"

func (i *Images) replacement(id string) *Replacement {
	return &Replacement{images: i, id: id, place: filepath.Join(i.base, replacementPrefix+id)}
}

// Replace creates an empty image for the volume and mounts it beside the volume. It
// removes what an earlier attempt left.
func (i *Images) Replace(ctx context.Context, id string, limit int64) (*Replacement, error) {
	r := i.replacement(id)
	info, err := os.Stat(i.file(id))
	if err != nil {
		return nil, err
	}
	size := info.Size()
	if limit > 0 {
		size = max(size, imageSize(limit))
	}
	if err := r.Remove(); err != nil {
		return nil, err
	}
	if err := format(ctx, r.file(), size); err != nil {
		return nil, errors.Join(err, r.Remove())
	}
	if err := mountImage(ctx, r.file(), r.place); err != nil {
		return nil, errors.Join(err, r.Remove())
	}
	return r, nil
}

// Name returns the name of the directory beside the volumes where the image is mounted.
func (r *Replacement) Name() string { return filepath.Base(r.place) }

func (r *Replacement) file() string { return r.images.file(r.id) + ".new" }

// Sync makes what was written to the image durable.
func (r *Replacement) Sync() error {
	for _, p := range []string{r.place, r.images.dir} {
		d, err := os.Open(p)
		if err != nil {
			return err
		}
		err = os.NewSyscallError("syncfs", unix.Syncfs(int(d.Fd())))
		if err := errors.Join(err, d.Close()); err != nil {
			return err
		}
	}
	return nil
}

// Commit puts the image in place of the volume's. After the rename of its file the
// restore is complete, also if the daemon ends before it is mounted. So an error means
// that nothing changed, or that the new image could not be mounted, which EnsureSize
// tries again.
func (r *Replacement) Commit() error {
	if err := os.Rename(r.file(), r.images.file(r.id)); err != nil {
		return err
	}
	if d, err := os.Open(r.images.dir); err == nil {
		_ = d.Sync() // nothing can undo the rename
		d.Close()
	}
	return errors.Join(removeFile(r.images.growMark(r.id)), r.show())
}

// show mounts the image at the volume's directory instead of the first one, whose
// users keep it. Hold keeps readers from the moment between the two calls.
func (r *Replacement) show() error {
	i := r.images
	i.switching.Lock()
	err := i.detach(r.id)
	if err == nil {
		err = os.NewSyscallError("mount", unix.Mount(r.place, i.mountPoint(r.id), "", unix.MS_BIND, ""))
	}
	i.switching.Unlock()
	if err != nil {
		return errors.Join(err, i.mount(context.Background(), r.id))
	}
	return r.unmount()
}

// unmount unmounts the image from its own directory and removes that.
func (r *Replacement) unmount() error {
	if r.images.mountedAt(r.place) {
		if err := unix.Unmount(r.place, unix.MNT_DETACH); err != nil {
			return &os.PathError{Op: "unmount", Path: r.id, Err: err}
		}
	}
	return removeFile(r.place)
}

// Remove removes the image, unless Commit renamed it, and what it is mounted at.
func (r *Replacement) Remove() error {
	return errors.Join(r.unmount(), removeFile(r.file()))
}

// recover completes the replacement of a volume's image, or removes it, whichever a
// crash of the daemon requires.
func (r *Replacement) recover() error {
	_, err := os.Lstat(r.file())
	if errors.Is(err, fs.ErrNotExist) && r.images.mountedAt(r.place) {
		return r.show()
	}
	return r.Remove()
}

// Hold keeps the images of all volumes mounted where they are until release is called.
// It must not be held for long.
func (i *Images) Hold() (release func()) {
	i.switching.RLock()
	return i.switching.RUnlock
}
