package console

import (
	"context"
	"regexp"
	"time"

	v1 "berth/api/v1"
)

// awaitPeriod is the time between two reads of a console.
const awaitPeriod = 100 * time.Millisecond

// Journal has the lines of consoles. See Sink.
type Journal interface {
	Since(ctx context.Context, id, role string, since time.Time, each func(v1.Line) bool) error
}

// Await waits until the server of a container has printed a line since then that
// matches a pattern, as a start pattern matches. A console that cannot be read now is
// read again. Its error is that of the pattern or of ctx.
func Await(ctx context.Context, j Journal, id, pattern string, since time.Time) error {
	re, err := regexp.Compile(pattern)
	if err != nil {
		return err
	}
	m := &matcher{re: re, begun: true}
	tick := time.NewTicker(awaitPeriod)
	defer tick.Stop()
	for matched := false; ; {
		from := since
		_ = j.Since(ctx, id, v1.ServerConsole, from, func(l v1.Line) bool {
			if !l.Time.Before(from) {
				matched = m.add(l)
			}
			if next := l.Time.Add(1); next.After(since) {
				since = next
			}
			return !matched
		})
		if matched {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}
