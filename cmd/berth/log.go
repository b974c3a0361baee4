package main

import (
	"errors"
	"log/slog"
	"os"
	"time"

	v1 "berth/api/v1"
	"berth/cmd/berth/cli"
	"berth/cmd/berth/config"
)

// newLog returns the daemon's logger. Its level is that of level at any time.
func newLog(c v1.LogConfig, level *slog.LevelVar, out *os.File) *slog.Logger {
	setLevel(level, c.Level)
	o := &slog.HandlerOptions{Level: level, ReplaceAttr: spellDuration}
	if textLog(c.Format, out) {
		return slog.New(slog.NewTextHandler(out, o))
	}
	return slog.New(slog.NewJSONHandler(out, o))
}

// textLog reports whether a log of this format on out is text and not JSON.
func textLog(format string, out *os.File) bool {
	return format == "text" || format != "json" && cli.IsTerminal(out)
}

// formatError is an error of a daemon that has read its configuration.
type formatError struct {
	error
	format string // log.format
}

func (e formatError) Unwrap() error { return e.error }

// logFormat returns the log.format for err: that of the configuration, or of the
// environment if no configuration was loaded.
func logFormat(err error) string {
	var known formatError
	if errors.As(err, &known) {
		return known.format
	}
	return os.Getenv(config.EnvPrefix + "LOG_FORMAT")
}

// setLevel sets level to a name that the configuration has validated.
func setLevel(level *slog.LevelVar, name string) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(name)); err == nil {
		level.Set(l)
	}
}

// spellDuration writes durations as 1.5s. In JSON they would be nanoseconds.
func spellDuration(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.StringValue(a.Value.Duration().Round(time.Millisecond).String())
	}
	return a
}
