package main

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	systemd "github.com/coreos/go-systemd/v22/daemon"

	"berth/api/server"
	v1 "berth/api/v1"
	"berth/controller"
	"berth/runtime"
	"berth/store"
)

// The times between two checks.
const (
	healthEvery = 2 * time.Second // of the store and the engine, which answers or fails within its own time limit
	kernelEvery = 30 * time.Second
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
	writable, reachable := storeComponent(), engineComponent()
	storeIn := func(c v1.Condition) error {
		return d.store.MustUpdate(func(tx *store.Tx) error { return store.SetNodeCondition(tx, c) })
	}
	for ctx.Err() == nil {
		writable.observe(d.store.Writable(), d.log, storeIn)
		err := d.engine.Ready(ctx)
		if ctx.Err() != nil {
			return nil
		}
		now := health{time.Now(), err, time.Now()}
		if last := d.health.Load(); last != nil && (last.err == nil) == (err == nil) {
			now.since = last.since
		}
		d.health.Store(&now)
		reachable.observe(err, d.log, storeIn)
		controller.Sleep(ctx, healthEvery)
	}
	return nil
}

// component is something that fails at times: a line of the log and a condition of the node
// report when it begins to fail, and when it works again.
type component struct {
	condition string     // True: it works
	works     string     // reason
	fails     string     // reason
	again     string     // message and line of the log
	lost      string     // line of the log
	level     slog.Level // of it
	message   func(err error) string

	since  time.Time // when it began to fail; zero: it works
	stored string    // status of the condition as last stored
}

func engineComponent() *component {
	return &component{condition: v1.EngineReachable, works: v1.ReasonAnswers, fails: v1.ReasonEngineUnreachable,
		again: "the engine answers again", lost: "the engine does not answer", level: slog.LevelWarn,
		message: func(error) string {
			return "the engine does not answer: states are the last observed ones, and requests wait for it"
		}}
}

func storeComponent() *component {
	return &component{condition: v1.StoreWritable, works: v1.ReasonWritable, fails: v1.ReasonNotWritable,
		again: "the store can be written again", lost: "the store cannot be written: requests are refused, except stop and kill",
		level:   slog.LevelError,
		message: func(err error) string { return storeReason(err) + ": requests are refused, except stop and kill" }}
}

// watchKernel checks periodically what all containers share of the kernel.
func (d *daemon) watchKernel(ctx context.Context) error {
	if d.settings.Current().Engine == v1.EngineKubernetes {
		<-ctx.Done() // containers run on other machines
		return nil
	}
	kernel := &component{condition: v1.KernelResources, works: v1.ReasonEnough, fails: v1.ReasonNearlyUsedUp,
		again: "the kernel has enough of what containers share", lost: "containers have nearly used up what they share of the kernel",
		level:   slog.LevelWarn,
		message: func(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }}
	for ctx.Err() == nil {
		err := errors.Join(runtime.KernelResources("/proc"), runtime.Inotify())
		kernel.observe(err, d.log, func(c v1.Condition) error {
			return d.store.MustUpdate(func(tx *store.Tx) error { return store.SetNodeCondition(tx, c) })
		})
		controller.Sleep(ctx, kernelEvery)
	}
	return nil
}

// observe records the result of a check. A condition that cannot be stored is stored at the
// next check, if it still holds.
func (p *component) observe(err error, log *slog.Logger, storeIn func(v1.Condition) error) {
	c := v1.Condition{Type: p.condition, Status: v1.True, Reason: p.works, Message: p.again}
	switch {
	case err != nil:
		c.Status, c.Reason, c.Message = v1.False, p.fails, p.message(err)
		if p.since.IsZero() {
			p.since = time.Now()
			log.Log(context.Background(), p.level, p.lost, "err", err)
		}
	case !p.since.IsZero():
		away := time.Since(p.since).Round(time.Millisecond)
		p.since = time.Time{}
		c.Message += ", after " + away.String()
		log.Info(p.again, "after", away)
	}
	if p.stored != c.Status && storeIn(c) == nil {
		p.stored = c.Status
	}
}

// engineHealth returns whether the engine answered the last check, and since when. Before the first
// check it does not. A check that is late says nothing about the engine: a busy host delays it.
func (d *daemon) engineHealth() server.EngineHealth {
	if h := d.health.Load(); h != nil {
		return server.EngineHealth{Reachable: h.err == nil, Since: h.since}
	}
	return server.EngineHealth{Since: d.began}
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
