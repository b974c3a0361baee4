package v1

import (
	"errors"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// Cron is when a schedule is due by the clock: the times that an expression names in a time zone.
type Cron struct {
	times cron.Schedule
	in    *time.Location
}

const (
	maxCron = 256 // bytes of an expression
	// clockCorrected is how far the clock must have been set back for times to be due again.
	clockCorrected = 24 * time.Hour
)

// CronState is which times of an expression are over.
type CronState struct {
	Cron     string    `json:"cron,omitempty"` // the expression; empty: there was none
	Timezone string    `json:"timezone,omitempty"`
	Handled  time.Time `json:"handled,omitzero"` // times up to this one are over
}

// Follows reports whether the state is of an expression, and the clock was not set back so far since that its
// times are due again.
func (s CronState) Follows(expression, timezone string, now time.Time) bool {
	return s.Cron == expression && s.Timezone == timezone && !s.Handled.After(now.Add(clockCorrected))
}

// NextCron returns the first time of an expression after another; zero: it has none.
func NextCron(expression, timezone string, after time.Time) time.Time {
	c, err := ParseCron(expression, timezone)
	if err != nil { // an event of a container: package intent has accepted it
		return time.Time{}
	}
	return c.Next(after).UTC()
}

// ParseCron parses an expression of five fields, or one such as @daily, in a time zone of the IANA
// database; the empty one is UTC. Its times must be at least a minute apart.
func ParseCron(expression, timezone string) (Cron, error) {
	if len(expression) > maxCron || strings.Contains(expression, "=") { // TZ=: the parser's own zones
		return Cron{}, errors.New("not a cron expression")
	}
	in, err := time.LoadLocation(timezone)
	if err != nil {
		return Cron{}, err
	}
	times, err := cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor).Parse(expression)
	if err != nil {
		return Cron{}, err
	}
	if every, is := times.(cron.ConstantDelaySchedule); is && every.Delay < time.Minute {
		return Cron{}, errors.New("the times must be at least 1m apart")
	}
	c := Cron{times, in}
	if c.Next(time.Unix(0, 0)).IsZero() {
		return Cron{}, errors.New("it names no time")
	}
	return c, nil
}

// Next returns the first time after another; zero: there is none within years. A time of the clock
// that daylight saving time leaves out is the next one that exists, and one that exists twice is the
// first of the two. The parser's own Next skips the former: it computes in UTC here, which leaves out none.
func (c Cron) Next(after time.Time) time.Time {
	if _, is := c.times.(cron.ConstantDelaySchedule); is {
		return c.times.Next(after)
	}
	shown := clockOf(after.In(c.in))
	for {
		if shown = c.times.Next(shown); shown.IsZero() {
			return shown
		}
		if at := firstShowing(shown, c.in); at.After(after) {
			return at
		}
	}
}

// clockOf returns what a clock shows at a time, as a time in UTC.
func clockOf(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), time.UTC)
}

// firstShowing returns the first time at which a clock in a zone shows what is given as a time in UTC, or
// if it never does, the time at which it is put forward past it.
func firstShowing(shown time.Time, in *time.Location) time.Time {
	at := time.Date(shown.Year(), shown.Month(), shown.Day(), shown.Hour(), shown.Minute(), shown.Second(), 0, in)
	begin, end := at.ZoneBounds()
	switch {
	case clockOf(at).After(shown): // at is behind the gap
		return begin
	case clockOf(at).Before(shown):
		return end
	case begin.IsZero():
		return at
	}
	_, before := begin.Add(-time.Second).Zone()
	if first := shown.Add(-time.Duration(before) * time.Second).In(in); first.Before(begin) && clockOf(first).Equal(shown) {
		return first
	}
	return at
}
