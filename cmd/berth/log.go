package main

import (
	"errors"
	"log/slog"
	"os"
	"time"

	"berth/cmd/berth/cli"
	"berth/cmd/berth/config"
)

// newLog returns the daemon's logger, of a log.format.
func newLog(format string, level slog.Leveler, out *os.File) *slog.Logger {
	o := &slog.HandlerOptions{Level: level, ReplaceAttr: spellDuration}
	if textLog(format, out) {
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

// liveLevel is the log.level in force.
type liveLevel struct{ settings *config.Settings }

// Level implements slog.Leveler.
func (l liveLevel) Level() (level slog.Level) {
	_ = level.UnmarshalText([]byte(l.settings.Current().Log.Level)) // the configuration was validated
	return level
}

// spellDuration writes durations as 1.5s. In JSON they would be nanoseconds.
func spellDuration(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.StringValue(a.Value.Duration().Round(time.Millisecond).String())
	}
	return a
}
