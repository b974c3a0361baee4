package main

import (
	"context"
	"errors"
	"log/slog"
	"time"

	systemd "github.com/coreos/go-systemd/v22/daemon"

	"berth/api/server"
	v1 "berth/api/v1"
	"berth/store"
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

// watchHealth checks the store and the engine periodically, so that their failures are
// logged and stored as transitions when they happen, and the engine's health is known without waiting for an
// engine that hangs.
func (d *daemon) watchHealth(ctx context.Context) error {
	stored := nodeConditions{}
	storeIn := func(c v1.Condition) error {
		return d.store.MustUpdate(func(tx *store.Tx) error { return store.SetNodeCondition(tx, c) })
	}
	var unwritable time.Time
	for ctx.Err() == nil {
		err, before := d.store.Writable(), unwritable
		unwritable = logStore(d.log, err, before)
		stored.set(storeCondition(err, elapsed(before)), storeIn)
		err = d.engine.Ready(ctx)
		if ctx.Err() != nil {
			return nil
		}
		now := health{time.Now(), err, time.Now()}
		last := d.health.Load()
		if last != nil && (last.err == nil) == (err == nil) {
			now.since = last.since
		}
		d.logHealth(d.health.Swap(&now), now)
		stored.set(engineCondition(err, awayFor(last)), storeIn)
		select {
		case <-ctx.Done():
		case <-time.After(healthEvery):
		}
	}
	return nil
}

// nodeConditions is the status of each condition of the node as last stored.
type nodeConditions map[string]string

// set stores a condition whose status has changed. One that cannot be stored is stored at the
// next check, if it still holds.
func (stored nodeConditions) set(c v1.Condition, storeIn func(v1.Condition) error) {
	if stored[c.Type] != c.Status && storeIn(c) == nil {
		stored[c.Type] = c.Status
	}
}

// engineCondition returns whether the engine answers. away is how long it has not, if it
// answers again.
func engineCondition(err error, away time.Duration) v1.Condition {
	if err != nil {
		return v1.Condition{Type: v1.EngineReachable, Status: v1.False, Reason: v1.ReasonEngineUnreachable,
			Message: "the engine does not answer: states are the last observed ones, and requests wait for it"}
	}
	return v1.Condition{Type: v1.EngineReachable, Status: v1.True, Reason: v1.ReasonAnswers, Message: "the engine answers again" + after(away)}
}

// storeCondition returns whether the store can be written. away is how long it could not,
// if it can again.
func storeCondition(err error, away time.Duration) v1.Condition {
	if err != nil {
		return v1.Condition{Type: v1.StoreWritable, Status: v1.False, Reason: v1.ReasonNotWritable,
			Message: storeReason(err) + ": requests are refused, except stop and kill"}
	}
	return v1.Condition{Type: v1.StoreWritable, Status: v1.True, Reason: v1.ReasonWritable, Message: "the store can be written again" + after(away)}
}

// after returns the text for how long something has lasted, empty if that is unknown.
func after(d time.Duration) string {
	if d <= 0 {
		return ""
	}
	return ", after " + d.Round(time.Millisecond).String()
}

// awayFor returns how long the engine has not answered; 0 if it did at the last check.
func awayFor(last *health) time.Duration {
	if last == nil || last.err == nil {
		return 0
	}
	return time.Since(last.since)
}

// elapsed returns the time since then; 0 if then is zero.
func elapsed(then time.Time) time.Duration {
	if then.IsZero() {
		return 0
	}
	return time.Since(then)
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

// logStore writes a line when the store can no longer be written because of err, and
// when it can be again. It takes and returns the time since when it cannot; zero: it can.
func logStore(log *slog.Logger, err error, since time.Time) time.Time {
	switch {
	case err != nil && since.IsZero():
		log.Error("the store cannot be written: requests are refused, except stop and kill", "err", err)
		return time.Now()
	case err == nil && !since.IsZero():
		log.Info("the store can be written again", "after", time.Since(since).Round(time.Millisecond))
		return time.Time{}
	}
	return since
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

// unready returns the reasons why requests cannot be carried out now. GET /readyz
// needs no token, so it logs nothing: watchHealth does.
func (d *daemon) unready() (reasons []string) {
	if err := d.store.Writable(); err != nil {
		reasons = append(reasons, storeReason(err))
	}
	if !d.engineHealth().Reachable {
		reasons = append(reasons, "engine: does not answer")
	}
	if !d.listed.Load() {
		reasons = append(reasons, "engine: its containers were not listed yet")
	}
	return reasons
}

// storeReason returns the public part of the reason why the store cannot be written.
func storeReason(err error) string {
	if errors.Is(err, store.ErrDiskFull) {
		return "store: the disk is full"
	}
	return "store: not writable"
}

// healthStale is the age of a health check at which the loop that checks the engine
// must have stopped: each of its calls has a deadline.
const healthStale = 30 * time.Second

// notify sends a state to the service manager. It does not retry: the service manager
// has timeouts of its own.
func (d *daemon) notify(state string) {
	if _, err := systemd.SdNotify(false, state); err != nil {
		d.log.Warn("could not notify systemd", "state", state, "err", err)
	}
}

// feedWatchdog notifies systemd that berth works, three times in each WatchdogSec.
func (d *daemon) feedWatchdog(ctx context.Context) error {
	limit, err := systemd.SdWatchdogEnabled(false)
	if err != nil {
		return err
	}
	if limit == 0 {
		<-ctx.Done()
		return nil
	}
	tick := time.NewTicker(limit / 3)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			if d.works() {
				d.notify(systemd.SdNotifyWatchdog)
			}
		}
	}
}

// works reports whether the writer of the store answers and the engine is being
// checked. It blocks if the writer does; then systemd restarts berth. A full disk, an
// absent engine or many clients are not a reason for a restart.
func (d *daemon) works() bool {
	_ = d.store.Update(func(*store.Tx) error { return nil })
	h := d.health.Load()
	if h != nil && time.Since(h.at) > healthStale {
		d.log.Error("the engine is not being checked any more", "since", h.at)
		return false
	}
	return true
}
