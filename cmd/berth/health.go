package main

import (
	"context"
	"time"

	"berth/api/server"
)

// The time between two checks of the engine, and the age at which a result is stale.
const (
	healthEvery = 2 * time.Second
	healthOld   = 5 * time.Second
)

// health is the result of a check of the engine.
type health struct {
	at    time.Time
	err   error
	since time.Time // when err last changed from nil or to nil
}

// watchHealth checks the engine periodically, so that its health is known without
// waiting for an engine that hangs.
func (d *daemon) watchHealth(ctx context.Context) error {
	for ctx.Err() == nil {
		err := d.engine.Ready(ctx)
		now := health{time.Now(), err, time.Now()}
		if last := d.health.Load(); last != nil && (last.err == nil) == (err == nil) {
			now.since = last.since
		}
		d.logHealth(d.health.Swap(&now), now)
		select {
		case <-ctx.Done():
		case <-time.After(healthEvery):
		}
	}
	return nil
}

// logHealth writes a line when the engine stops answering, and when it answers again.
func (d *daemon) logHealth(last *health, now health) {
	switch {
	case now.err != nil && (last == nil || last.err == nil):
		d.log.Warn("the engine does not answer", "err", now.err)
	case now.err == nil && last != nil && last.err != nil:
		d.log.Info("the engine answers again", "after", now.at.Sub(last.since).Round(time.Millisecond))
	}
}

// engineHealth returns whether the engine answers, and since when. Before the first
// check it does not.
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
