package volume

import (
	"context"
	"errors"
	"os"
	"syscall"

	v1 "berth/api/v1"
)

// Open opens the regular file at p for reading. It follows links that stay in the
// volume, and never opens anything but a regular file.
func (f Files) Open(ctx context.Context, id, p string) (*os.File, error) {
	p, err := cleanEntry(p)
	if err != nil {
		return nil, err
	}
	vol, err := f.m.open(ctx, id)
	if err != nil {
		return nil, err
	}
	defer vol.close()
	file, err := openRegular(vol.root, p)
	return file, refuseRead(p, err)
}

// openRegular checks the type before and after it opens p. O_NONBLOCK keeps open(2)
// from waiting if p was replaced by a FIFO in between.
func openRegular(r *os.Root, p string) (*os.File, error) {
	info, err := r.Stat(p)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, notAFile(p)
	}
	f, err := r.OpenFile(p, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	if info, err = f.Stat(); err == nil && !info.Mode().IsRegular() {
		err = notAFile(p)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func notAFile(p string) error { return v1.Errorf(v1.InvalidRequest, "Not a file: %s", p) }

// refuseRead is refuse for operations that only read.
func refuseRead(p string, err error) error {
	err = refuse(p, err)
	if errors.Is(err, v1.ErrWriteDenied) {
		return v1.Errorf(v1.WriteDenied, "Failed to read file: permission denied")
	}
	return err
}
