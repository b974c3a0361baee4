package sftp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"runtime/debug"
	"syscall"

	"github.com/pkg/sftp"

	v1 "berth/api/v1"
	"berth/store"
)

// The texts of failures that have no status of their own in version 3 of the protocol.
var (
	errQuota    = errors.New("quota exceeded")
	errDiskFull = errors.New("no space left on the host")
	errFlags    = errors.New("bad file flags")
	errHandles  = errors.New("too many open files: close some")
	errHost     = errors.New("the host has too many open files: try again later")
	errStore    = errors.New("the change could not be recorded: the database failed")
	errInternal = errors.New("internal error")
)

// statusOf returns the error whose status and text the client receives. It logs an error
// that the client has not caused.
func (s *session) statusOf(path string, err error) error {
	var refusal *v1.Error
	switch {
	case err == nil, errors.Is(err, io.EOF):
		return err
	case errors.Is(err, store.ErrDiskFull), errors.Is(err, store.ErrFailed), errors.Is(err, store.ErrClosed):
		s.logFault("sftp: a change could not be recorded", slog.Any("err", err))
		return errStore
	case errors.As(err, &refusal):
		return statusOfRefusal(refusal)
	case errors.Is(err, context.Canceled):
		return sftp.ErrSSHFxConnectionLost
	case errors.Is(err, syscall.ETXTBSY):
		return errors.New("file is being executed")
	case errors.Is(err, syscall.EFBIG):
		return errQuota
	}
	s.logFault("sftp: request failed", slog.String("path", v1.MaskTokens(path[:min(len(path), maxLogged)])), slog.Any("err", causeOf(err)))
	return errInternal
}

// maxLogged bounds a path in the log, in bytes.
const maxLogged = 256

// causeOf returns an error without the path that an error of package os has.
func causeOf(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return fmt.Errorf("%s: %w", path.Op, path.Err)
	}
	var link *os.LinkError
	if errors.As(err, &link) {
		return fmt.Errorf("%s: %w", link.Op, link.Err)
	}
	return err
}

// logFault writes a line to the log, unless the tenant has caused too many.
func (s *session) logFault(text string, args ...any) {
	if s.server.limits.errors.Take(s.tenant, 1) == 0 {
		s.server.log.Error(text, append(args, slog.String("session", s.id), slog.String("volume", s.volume))...)
	}
}

func statusOfRefusal(refusal *v1.Error) error {
	switch refusal.Code {
	case v1.PathNotFound:
		return sftp.ErrSSHFxNoSuchFile
	case v1.InvalidPath, v1.WriteDenied:
		return sftp.ErrSSHFxPermissionDenied
	case v1.FileDenied:
		return fmt.Errorf("%s: %w", refusal.Message, sftp.ErrSSHFxPermissionDenied)
	case v1.SizeLimit:
		return errQuota
	case v1.DiskFull:
		return errDiskFull
	}
	return errors.New(refusal.Message)
}

// The functions below are deferred where what a client sends is handled: a panic there
// must not end the daemon. Package sftp calls the handlers from goroutines of its own.

// logPanic logs a panic with its stack.
func (s *Server) logPanic(p any, args ...any) {
	s.log.Error("sftp: a handler panicked", append(args, panicked(p)...)...)
}

// panicked describes a panic, with its stack.
func panicked(p any) []any {
	return []any{slog.String("panic", fmt.Sprint(p)), slog.String("stack", string(debug.Stack()))}
}

// recovered ends the connection, or the session, whose handling panics.
func (s *Server) recovered(end func(), args ...any) {
	if p := recover(); p != nil {
		s.logPanic(p, args...)
		end()
	}
}

// failed makes errInternal the answer to a request whose handler panics.
func (s *session) failed(err *error) {
	if p := recover(); p != nil {
		s.logFault("sftp: a handler panicked", panicked(p)...)
		*err = errInternal
	}
}
