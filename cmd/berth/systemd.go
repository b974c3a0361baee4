package main

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	systemd "github.com/coreos/go-systemd/v22/daemon"

	"berth/store"
)

// healthStale is when the loop that asks the engine must have stopped: each of
// its calls has a deadline.
const healthStale = 30 * time.Second

// supervised notifies systemd, if berth runs under it, of what berth does.
type supervised struct {
	store  *store.Store
	health *atomic.Pointer[health]
	log    *slog.Logger
}

// notify sends a state to the service manager.
// What cannot be sent is lost: the manager acts on its own timeouts then.
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
	if err != nil || limit == 0 {
		return err
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

// works reports whether the store's writer answers and the engine is being asked.
// It hangs where the writer does, which is an answer to systemd too. Neither a full
// disk nor an absent engine nor any number of clients is a reason to restart.
func (s supervised) works() bool {
	_ = s.store.Update(func(*store.Tx) error { return nil })
	h := s.health.Load()
	if h != nil && time.Since(h.at) > healthStale {
		s.log.Error("the engine is not being asked any more", "since", h.at)
		return false
	}
	return true
}
