package main

import (
	"context"
	"time"

	systemd "github.com/coreos/go-systemd/v22/daemon"

	"berth/store"
)

// healthStale is when the loop that asks the engine must have stopped: each of
// its calls has a deadline.
const healthStale = 30 * time.Second

// notifySystemd sends a state to the service manager, if berth runs under one.
// What cannot be sent is lost: the manager acts on its own timeouts then.
func (d *daemon) notifySystemd(state string) {
	if _, err := systemd.SdNotify(false, state); err != nil {
		d.log.Warn("could not notify systemd", "state", state, "err", err)
	}
}

// reloading notifies systemd of a reload. The returned function notifies it of the end.
func (d *daemon) reloading() (done func()) {
	d.notifySystemd(systemd.SdNotifyReloading)
	return func() { d.notifySystemd(systemd.SdNotifyReady) }
}

// feedWatchdog notifies systemd that berth works, three times in each WatchdogSec.
func (d *daemon) feedWatchdog(ctx context.Context) error {
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
			if d.works() {
				d.notifySystemd(systemd.SdNotifyWatchdog)
			}
		}
	}
}

// works reports whether the store's writer answers and the engine is being asked.
// It hangs where the writer does, which is an answer to systemd too. Neither a full
// disk nor an absent engine nor any number of clients is a reason to restart.
func (d *daemon) works() bool {
	_ = d.store.Update(func(*store.Tx) error { return nil })
	h := d.health.Load()
	if h != nil && time.Since(h.at) > healthStale {
		d.log.Error("the engine is not being asked any more", "since", h.at)
		return false
	}
	return true
}
