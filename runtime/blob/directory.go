package blob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

const (
	partPrefix = ".part-" // begins the names of files that are not complete; keys do not begin with a dot
	window     = 8 << 20  // bytes of a file after which they are sent to the disk
)

// Directory is a Target in a directory of the host: one file of mode 0600 per archive,
// named by its key.
type Directory struct {
	path  string
	space func() error
}

// NewDirectory returns the Target in the directory at path. The first Put creates the
// directory with mode 0700. Put calls space before every 8 MiB and ends with its
// error; nil means that no space is reserved.
func NewDirectory(path string, space func() error) *Directory {
	if space == nil {
		space = func() error { return nil }
	}
	return &Directory{path, space}
}

// Put implements Target.
func (d *Directory) Put(ctx context.Context, key string, r io.Reader) (int64, error) {
	if err := checkKey(key); err != nil {
		return 0, err
	}
	if err := os.MkdirAll(d.path, 0o700); err != nil {
		return 0, fmt.Errorf("backups: %w", err)
	}
	root, err := os.OpenRoot(d.path)
	if err != nil {
		return 0, fmt.Errorf("backups: %w", err)
	}
	defer root.Close()
	part := partPrefix + key
	size, err := d.write(ctx, root, part, r)
	if err == nil {
		err = root.Rename(part, key)
	}
	if err != nil {
		return 0, errors.Join(err, remove(root, part))
	}
	if err := syncRoot(root); err != nil {
		return 0, errors.Join(err, remove(root, key))
	}
	return size, nil
}

// write writes what r returns to a new durable file.
func (d *Directory) write(ctx context.Context, root *os.Root, name string, r io.Reader) (int64, error) {
	if err := remove(root, name); err != nil {
		return 0, err
	}
	f, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	size, err := d.copy(ctx, f, r)
	if err != nil {
		return 0, err
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return 0, err
	}
	return size, nil
}

// copy copies r to f. After each window it starts to write the window to the disk,
// so that the sync at the end does not block the disk for everybody else, and lets
// the kernel forget the window before it.
func (d *Directory) copy(ctx context.Context, f *os.File, r io.Reader) (size int64, err error) {
	for {
		if err := errors.Join(ctx.Err(), d.space()); err != nil {
			return 0, err
		}
		n, err := io.CopyN(f, r, window)
		if n > 0 {
			flush(f, size, n)
		}
		size += n
		if errors.Is(err, io.EOF) && n < window {
			return size, nil
		}
		if err != nil {
			return 0, err
		}
	}
}

// flush gives the kernel hints. Both are optional, and not every file system knows them.
func flush(f *os.File, offset, n int64) {
	_ = unix.SyncFileRange(int(f.Fd()), offset, n, unix.SYNC_FILE_RANGE_WRITE)
	if offset > 0 {
		_ = unix.Fadvise(int(f.Fd()), 0, offset, unix.FADV_DONTNEED)
	}
}

// Open implements Target.
func (d *Directory) Open(_ context.Context, key string, offset int64) (io.ReadCloser, int64, error) {
	if err := checkKey(key); err != nil {
		return nil, 0, err
	}
	f, err := os.OpenInRoot(d.path, key)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, ErrNotFound
	}
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err == nil {
		_, err = f.Seek(offset, io.SeekStart)
	}
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	return f, info.Size(), nil
}

// Delete implements Target.
func (d *Directory) Delete(_ context.Context, key string) error {
	return d.remove(key, partPrefix+key, key)
}

// Abort implements Target.
func (d *Directory) Abort(_ context.Context, key string) error {
	return d.remove(key, partPrefix+key)
}

func (d *Directory) remove(key string, names ...string) error {
	if err := checkKey(key); err != nil {
		return err
	}
	root, err := os.OpenRoot(d.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer root.Close()
	return remove(root, names...)
}

// remove removes files that may exist, and makes that durable.
func remove(root *os.Root, names ...string) error {
	removed := false
	for _, name := range names {
		err := root.Remove(name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		removed = removed || err == nil
	}
	if !removed {
		return nil
	}
	return syncRoot(root)
}

func syncRoot(root *os.Root) error {
	dir, err := root.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
