package console

import (
	"context"
	"regexp"
	"time"

	v1 "berth/api/v1"
)

const (
	awaitPeriod = 100 * time.Millisecond // between two reads of a console
	awaitLines  = 10_000                 // of one read; of a flood between two reads only the last ones are matched
)

// Tail reads the end of a console.
type Tail interface {
	LastLines(ctx context.Context, id, role string, n int, since time.Time) ([]v1.Line, error)
}

// Await waits until the server of a container has printed a line since then that
// matches a pattern, as a start pattern matches. A console that cannot be read now is
// read again. Its error is that of the pattern or of ctx.
func Await(ctx context.Context, t Tail, id, pattern string, since time.Time) error {
	re, err := regexp.Compile(pattern)
	if err != nil {
		return err
	}
	m := &matcher{re: re, begun: true}
	tick := time.NewTicker(awaitPeriod)
	defer tick.Stop()
	for {
		lines, _ := t.LastLines(ctx, id, v1.ServerConsole, awaitLines, since)
		for _, l := range lines {
			if !l.Time.Before(since) && m.add(l) {
				return nil
			}
			since = l.Time.Add(1)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}
