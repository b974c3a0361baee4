package main

import (
	"errors"
	"log/slog"
	"os"
	"time"

	v1 "berth/api/v1"
)

// newLog makes the daemon's log. Its level follows level, also later.
func newLog(c v1.LogConfig, level *slog.LevelVar, out *os.File) *slog.Logger {
	setLevel(level, c.Level)
	o := &slog.HandlerOptions{Level: level, ReplaceAttr: spellDuration}
	if textLog(c.Format, out) {
		return slog.New(slog.NewTextHandler(out, o))
	}
	return slog.New(slog.NewJSONHandler(out, o))
}

// textLog reports whether a log of this format is text on out, and not JSON.
func textLog(format string, out *os.File) bool {
	return format == "text" || format != "json" && isTerminal(out)
}

// formatError is an error of a daemon that has read its configuration.
type formatError struct {
	error
	format string // log.format
}

func (e formatError) Unwrap() error { return e.error }

// logFormat returns the log.format by which err is written. Before a configuration
// was read it is that of the environment.
func logFormat(err error) string {
	var known formatError
	if errors.As(err, &known) {
		return known.format
	}
	return os.Getenv(envPrefix + "LOG_FORMAT")
}

// setLevel takes a level that the configuration has checked.
func setLevel(level *slog.LevelVar, name string) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(name)); err == nil {
		level.Set(l)
	}
}

func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// spellDuration writes 1.5s where JSON would have a number of nanoseconds.
func spellDuration(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.StringValue(a.Value.Duration().Round(time.Millisecond).String())
	}
	return a
}
