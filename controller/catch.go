package controller

import (
	"fmt"
	"log/slog"
	"runtime/debug"
)

// Catch calls f. It turns a panic into an error and logs its stack, so that one bad
// object cannot end the daemon. what names the work in the log, and args are attributes of
// slog.
func Catch(log *slog.Logger, what string, f func() error, args ...any) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = Panicked(log, what, p, args...)
		}
	}()
	return f()
}

// Panicked logs a panic that a deferred function has recovered, with its stack, and
// returns it as an error.
func Panicked(log *slog.Logger, what string, p any, args ...any) error {
	log.Error(what+" panicked", append(args, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))...)
	return fmt.Errorf("panic: %v", p)
}
