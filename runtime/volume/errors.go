package volume

import (
	"context"
	"errors"
	"io/fs"
	"syscall"

	v1 "berth/api/v1"
	"berth/runtime/volume/fsys"
)

// refuse converts a file system error about path to the error that a client
// receives. An error that the request did not cause is returned unchanged.
func refuse(path string, err error) error {
	var known *v1.Error
	switch {
	case err == nil, errors.As(err, &known),
		errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case fsys.Escapes(err), fsys.Is(err, syscall.ELOOP, syscall.EINVAL):
		return v1.ErrInvalidPath
	case errors.Is(err, syscall.ENAMETOOLONG):
		return v1.ErrNameTooLong
	case fsys.Is(err, fs.ErrNotExist, syscall.ENOTDIR):
		return notFound(path)
	case errors.Is(err, fsys.ErrNotRegular):
		return notAFile(path)
	case errors.Is(err, syscall.EMLINK):
		return v1.Errorf(v1.InvalidRequest, "File has as many hard links as its file system allows: %s", v1.EscapePath(path))
	case errors.Is(err, syscall.EXDEV):
		return v1.Errorf(v1.Unavailable, "Another file system is mounted in the volume, or at its directory: files cannot be moved there")
	case fsys.Is(err, syscall.ENOSPC, syscall.EDQUOT):
		return v1.ErrDiskFull
	case fsys.Is(err, fs.ErrPermission, syscall.EROFS):
		return v1.ErrWriteDenied
	case fsys.Is(err, fs.ErrExist, syscall.EISDIR):
		return exists(path)
	}
	return err
}

var errChanged = errors.New("the entry was changed")

// changed adds errChanged to err if it means that an entry was removed, or
// replaced by an entry of another type, after its folder was read.
func changed(err error) error {
	if fsys.Is(err, fsys.ErrNotRegular, fs.ErrNotExist, syscall.ELOOP, syscall.EINVAL, syscall.ENXIO) {
		return errors.Join(errChanged, err)
	}
	return err
}

func ignoreChanged(err error) error {
	if errors.Is(err, errChanged) {
		return nil
	}
	return err
}

func notFound(path string) error {
	return v1.Errorf(v1.PathNotFound, "Path not found: %s", v1.EscapePath(path))
}

func exists(path string) error {
	return v1.Errorf(v1.FileExists, "File already exists at path: %s", v1.EscapePath(path))
}

func invalidArchive(format string, args ...any) error {
	return v1.Errorf(v1.InvalidArchive, format, args...)
}

var errEnough = errors.New("enough found")
