package sftp

import (
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
)

// The functions below are deferred where what a client sends is handled: a panic there
// must not end the daemon. Package sftp calls the handlers from goroutines of its own.

// logPanic logs a panic with its stack.
func (s *Server) logPanic(p any, args ...any) {
	s.log.Error("sftp: a handler panicked", append(args, slog.String("panic", fmt.Sprint(p)), slog.String("stack", string(debug.Stack())))...)
}

// recovered ends the connection whose handling panics.
func (s *Server) recovered(address string) {
	if p := recover(); p != nil {
		s.logPanic(p, slog.String("address", address))
	}
}

// aside calls f in a goroutine of all. A panic of f ends the session.
func (s *session) aside(all *sync.WaitGroup, f func()) {
	all.Go(func() {
		defer func() {
			if p := recover(); p != nil {
				s.server.logPanic(p, slog.String("session", s.id), slog.String("volume", s.volume))
				s.cancel(errInternal)
				s.meter.Close()
			}
		}()
		f()
	})
}

// failed makes errInternal the answer to a request whose handler panics.
func (s *session) failed(err *error) {
	if p := recover(); p != nil {
		s.server.logPanic(p, slog.String("session", s.id), slog.String("volume", s.volume))
		*err = errInternal
	}
}
