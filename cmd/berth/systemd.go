package main

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	systemd "github.com/coreos/go-systemd/v22/daemon"

	"berth/store"
)

// healthStale is the age of a health check at which the loop that checks the engine
// must have stopped: each of its calls has a deadline.
const healthStale = 30 * time.Second

// supervised notifies systemd of the state of berth, if berth runs under it.
type supervised struct {
	store  *store.Store
	health *atomic.Pointer[health]
	log    *slog.Logger
}

// notify sends a state to the service manager. It does not retry: the service manager
// has timeouts of its own.
func (s supervised) notify(state string) {
	if _, err := systemd.SdNotify(false, state); err != nil {
		s.log.Warn("could not notify systemd", "state", state, "err", err)
	}
}

// reloading notifies systemd of a reload. The returned function notifies it of the end.
func (s supervised) reloading() (done func()) {
	s.notify(systemd.SdNotifyReloading)
	return func() { s.notify(systemd.SdNotifyReady) }
}

// feedWatchdog notifies systemd that berth works, three times in each WatchdogSec.
func (s supervised) feedWatchdog(ctx context.Context) error {
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
			if s.works() {
				s.notify(systemd.SdNotifyWatchdog)
			}
		}
	}
}

// works reports whether the writer of the store answers and the engine is being
// checked. It blocks if the writer does; then systemd restarts berth. A full disk, an
// absent engine or many clients are not a reason for a restart.
func (s supervised) works() bool {
	_ = s.store.Update(func(*store.Tx) error { return nil })
	h := s.health.Load()
	if h != nil && time.Since(h.at) > healthStale {
		s.log.Error("the engine is not being checked any more", "since", h.at)
		return false
	}
	return true
}
