package sftp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
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
		s.server.log.Error("sftp: a change could not be recorded", slog.String("session", s.id), slog.Any("err", err))
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
	s.server.log.Error("sftp: request failed", slog.String("session", s.id), slog.String("volume", s.volume),
		slog.String("path", v1.MaskTokens(path)), slog.Any("err", err))
	return errInternal
}

func statusOfRefusal(refusal *v1.Error) error {
	switch refusal.Code {
	case v1.PathNotFound:
		return sftp.ErrSSHFxNoSuchFile
	case v1.InvalidPath, v1.WriteDenied:
		return sftp.ErrSSHFxPermissionDenied
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
	s.log.Error("sftp: a handler panicked", append(args, slog.String("panic", fmt.Sprint(p)), slog.String("stack", string(debug.Stack())))...)
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
		s.server.logPanic(p, slog.String("session", s.id), slog.String("volume", s.volume))
		*err = errInternal
	}
}
