package docker

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/docker/docker/api/types/events"
	"github.com/docker/docker/api/types/filters"

	"berth/runtime"
)

// watched lists the events that can change the result of Inspect.
var watched = []events.Action{
	events.ActionCreate, events.ActionStart, events.ActionRestart, events.ActionDie, events.ActionOOM,
	events.ActionDestroy, events.ActionPause, events.ActionUnPause, events.ActionRename, events.ActionUpdate,
}

// Watch subscribes, lists, calls listed, and then calls notify for each event of
// a container of this store. It returns an error when the stream ends. That error
// says nothing about any container: call Watch again. notify must return quickly.
func (e *Engine) Watch(outer context.Context, listed func([]runtime.Found), notify func(runtime.Name)) error {
	ctx, cancel := context.WithCancel(outer)
	err := e.conn.renew()
	if err == nil {
		err = e.Ping(ctx)
	}
	if err != nil {
		cancel()
		return err
	}
	e.shared.Store(false)
	e.host.Store(nil) // it may be another engine, or have other processors
	// The engine answers slightly before it subscribes to its events; Since closes the gap.
	late := time.AfterFunc(opPing.limit, cancel)
	messages, errs := e.conn.client().Events(ctx, events.ListOptions{Since: unixTime(time.Now()), Filters: e.eventFilter()})
	late.Stop()
	defer func() {
		cancel()
		for range errs { // the client's goroutine has ended when this is closed
		}
	}()
	found, err := e.List(ctx)
	if err != nil {
		return err
	}
	listed(found)
	for {
		select {
		case m := <-messages:
			e.publish(m, notify)
		case err := <-errs:
			return watchError(outer, err)
		}
	}
}

// publish records what an event reports and calls notify.
func (e *Engine) publish(m events.Message, notify func(runtime.Name)) {
	n, ours := nameOf(e.cfg.StoreID, m.Actor.Attributes)
	if !ours {
		return
	}
	switch m.Action {
	case events.ActionOOM:
		e.ooms.at.Store(m.Actor.ID, time.Unix(0, m.TimeNano))
	case events.ActionDestroy:
		e.ooms.at.Delete(m.Actor.ID)
	}
	notify(n)
}

func (e *Engine) eventFilter() filters.Args {
	args := filters.NewArgs(filters.Arg("type", string(events.ContainerEventType)), filters.Arg("label", labelStore+"="+e.cfg.StoreID))
	for _, action := range watched {
		args.Add("event", string(action))
	}
	return args
}

func watchError(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err == nil:
		err = errors.New("stream is closed")
	}
	return fmt.Errorf("watch: %w: %w", runtime.ErrUnavailable, err)
}

func unixTime(t time.Time) string {
	return strconv.FormatInt(t.Unix(), 10) + "." + fmt.Sprintf("%09d", t.Nanosecond())
}

// ooms records from the events when containers ran out of memory last, by the engine's id. On a
// busy host the engine may receive that report after the exit. It then sends the event, but
// never corrects its answer to an inspect (1 of 40 runs under load).
type ooms struct{ at sync.Map }

// since returns when a container ran out of memory last in the run that began at started;
// zero if it did not.
func (o *ooms) since(containerID string, started time.Time) time.Time {
	found, _ := o.at.Load(containerID)
	at, _ := found.(time.Time)
	if started.IsZero() || !at.After(started) {
		return time.Time{}
	}
	return at
}
