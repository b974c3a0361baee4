package blob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

const partPrefix = ".part-" // begins the names of files that are not complete; keys do not begin with a dot

// Directory is a Target in a directory of the host: one file of mode 0600 per archive,
// named by its key.
type Directory struct{ path string }

// NewDirectory returns the Target in the directory at path. The first Put creates the
// directory with mode 0700.
func NewDirectory(path string) *Directory { return &Directory{path} }

// Put implements Target.
func (d *Directory) Put(ctx context.Context, key string, write func(ctx context.Context, w io.Writer) error) (int64, error) {
	if err := checkKey(key); err != nil {
		return 0, err
	}
	root, err := d.makeRoot()
	if err != nil {
		return 0, err
	}
	defer root.Close()
	part := partPrefix + key
	size, err := create(ctx, root, part, write)
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

// makeRoot opens the directory, which it creates if there is none.
func (d *Directory) makeRoot() (*os.Root, error) {
	if err := os.MkdirAll(d.path, 0o700); err != nil {
		return nil, unwritable(err)
	}
	root, err := os.OpenRoot(d.path)
	if err != nil {
		return nil, unwritable(err)
	}
	return root, nil
}

// create makes a new file with what write writes, and returns its size when it is durable.
func create(ctx context.Context, root *os.Root, name string, write func(ctx context.Context, w io.Writer) error) (int64, error) {
	if err := remove(root, name); err != nil {
		return 0, unwritable(err)
	}
	f, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, unwritable(err)
	}
	defer f.Close()
	if err := write(ctx, f); err != nil {
		return 0, err
	}
	info, err := f.Stat()
	if err == nil {
		err = errors.Join(ctx.Err(), f.Sync(), f.Close())
	}
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// unwritable returns an error that names the directory for what it is: its path is for
// operators only.
func unwritable(err error) error {
	return fmt.Errorf("the directory of the backups cannot be written: %w", err)
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
	return d.remove(key, partPrefix+key, sumPrefix+key, key)
}

// Abort implements Target.
func (d *Directory) Abort(_ context.Context, key string) error {
	return d.remove(key, partPrefix+key, sumPrefix+key)
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
