package main

import (
	"context"
	"time"

	"berth/api/server"
)

// How often the engine is asked how it is, and the age from which on an answer
// counts no more.
const (
	healthEvery = 2 * time.Second
	healthOld   = 5 * time.Second
)

// health is how the engine was when it was last asked.
type health struct {
	at    time.Time
	err   error
	since time.Time // when err became nil, or an error
}

// watchHealth asks the engine how it is, again and again, so that nobody who
// wants to know waits for an engine that hangs.
func (d *daemon) watchHealth(ctx context.Context) error {
	for ctx.Err() == nil {
		err := d.engine.Ready(ctx)
		now := health{time.Now(), err, time.Now()}
		if last := d.health.Load(); last != nil && (last.err == nil) == (err == nil) {
			now.since = last.since
		}
		d.health.Store(&now)
		select {
		case <-ctx.Done():
		case <-time.After(healthEvery):
		}
	}
	return nil
}

// engineHealth returns whether the engine answers, and since when it does or
// does not. Until it was asked it does not.
func (d *daemon) engineHealth() server.EngineHealth {
	h := d.health.Load()
	switch {
	case h == nil:
		return server.EngineHealth{Since: d.began}
	case time.Since(h.at) > healthOld:
		return server.EngineHealth{Since: h.at}
	}
	return server.EngineHealth{Reachable: h.err == nil, Since: h.since}
}
