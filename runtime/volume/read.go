package volume

import (
	"context"
	"errors"
	"os"

	v1 "berth/api/v1"
)

// Open opens the regular file at p for reading. It follows links that stay in the
// volume, and never opens anything but a regular file.
func (f Files) Open(ctx context.Context, id, p string) (*os.File, error) {
	p, err := parseEntry(p)
	if err != nil {
		return nil, err
	}
	vol, err := f.m.open(ctx, id)
	if err != nil {
		return nil, err
	}
	defer vol.close()
	file, err := vol.openFile(p, os.O_RDONLY)
	return file, refuseRead(p, err)
}

// openFile opens the regular file that p leads to, with flags of open(2).
func (vol *openVolume) openFile(p string, flags int) (*os.File, error) {
	dir, base, err := vol.resolve(p)
	if err != nil {
		return nil, err
	}
	defer dir.close()
	return dir.openFile(base, flags)
}

func notAFile(p string) error {
	return v1.Errorf(v1.InvalidRequest, "Not a file: %s", v1.EscapePath(p))
}

// refuseRead is refuse for operations that only read.
func refuseRead(p string, err error) error {
	err = refuse(p, err)
	if errors.Is(err, v1.ErrWriteDenied) {
		return v1.Errorf(v1.WriteDenied, "Failed to read file: permission denied")
	}
	return err
}
