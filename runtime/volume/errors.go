package volume

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"syscall"

	v1 "berth/api/v1"
)

// refuse converts a file system error about path to the error that a client
// receives. An error that the request did not cause is returned unchanged.
func refuse(path string, err error) error {
	var known *v1.Error
	switch {
	case err == nil, errors.As(err, &known),
		errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case escapes(err), is(err, syscall.ELOOP, syscall.EINVAL):
		return v1.ErrInvalidPath
	case errors.Is(err, syscall.ENAMETOOLONG):
		return v1.ErrNameTooLong
	case is(err, fs.ErrNotExist, syscall.ENOTDIR):
		return notFound(path)
	case errors.Is(err, errNotRegular):
		return notAFile(path)
	case errors.Is(err, syscall.EXDEV):
		return v1.Errorf(v1.Unavailable, "Another file system is mounted in the volume, or at its directory: files cannot be moved there")
	case is(err, syscall.ENOSPC, syscall.EDQUOT):
		return v1.ErrDiskFull
	case is(err, fs.ErrPermission, syscall.EROFS):
		return v1.ErrWriteDenied
	case is(err, fs.ErrExist, syscall.EISDIR):
		return exists(path)
	}
	return err
}

var errChanged = errors.New("the entry was changed")

// changed adds errChanged to err if it means that an entry was removed, or
// replaced by an entry of another type, after its folder was read.
func changed(err error) error {
	if is(err, errNotRegular, fs.ErrNotExist, syscall.ELOOP, syscall.EINVAL, syscall.ENXIO) {
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

func is(err error, targets ...error) bool {
	for _, t := range targets {
		if errors.Is(err, t) {
			return true
		}
	}
	return false
}

// escapes reports whether an os.Root refused a path that leaves it. The standard
// library exports no error value for this; a test checks that its text is unchanged.
func escapes(err error) bool {
	for err != nil {
		if err.Error() == "path escapes from parent" {
			return true
		}
		if all, joined := err.(interface{ Unwrap() []error }); joined {
			return slices.ContainsFunc(all.Unwrap(), escapes)
		}
		err = errors.Unwrap(err)
	}
	return false
}

var errEnough = errors.New("enough found")
