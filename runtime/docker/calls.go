package docker

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

// operation is one kind of call: its name in metrics, and how long it may take.
type operation struct {
	name  string
	limit time.Duration
}

var (
	opPing     = operation{"ping", 5 * time.Second}
	opInstance = operation{"instance", 5 * time.Second}
	opInspect  = operation{"inspect", 10 * time.Second}
	opList     = operation{"list", 20 * time.Second}
	opImage    = operation{"image", 10 * time.Second}
	opNetwork  = operation{"network", 30 * time.Second}
	opCreate   = operation{"create", time.Minute}
	opStart    = operation{"start", 2 * time.Minute}
	opRemove   = operation{"remove", time.Minute}
	opKill     = operation{"kill", 40 * time.Second}
	opSignal   = operation{"signal", 20 * time.Second}
	opUpdate   = operation{"update", 20 * time.Second}
	opUnpause  = operation{"unpause", 20 * time.Second}
	opStats    = operation{"stats", 20 * time.Second}
	opInput    = operation{"input", 10 * time.Second}
	opSize     = operation{"size", 30 * time.Second}
	opPull     = operation{"pull", 0} // streams: a stall limit instead of a deadline
)

// operations is all of them, for the metrics.
var operations = []operation{
	opPing, opInstance, opInspect, opList, opImage, opNetwork, opCreate, opStart, opRemove,
	opKill, opSignal, opUpdate, opUnpause, opStats, opInput, opSize, opPull,
}

// calls gives every call its deadline, its metric and its error.
type calls struct {
	conn    *connection
	metrics *metrics
	good    atomic.Int64 // Unix ns, of the last inspect that was answered
	bad     atomic.Int64 // and of the last that was not
}

func newCalls(conn *connection, m *metrics) *calls {
	return &calls{conn: conn, metrics: m}
}

// do makes one call on what. Errors wrap what classify finds in them.
func (c *calls) do(ctx context.Context, op operation, what string, call func(context.Context) error) error {
	limited, cancel := ctx, context.CancelFunc(func() {})
	if op.limit > 0 {
		limited, cancel = context.WithTimeout(ctx, op.limit)
	}
	defer cancel()
	began := time.Now()
	err := c.negotiated(limited, call)
	c.note(ctx, op, time.Since(began), err)
	return explain(ctx, op, what, err)
}

// negotiated makes a call once the API's version is agreed on. An engine that
// refuses the version has not read the request: the version is agreed on anew,
// and the call made once more.
func (c *calls) negotiated(ctx context.Context, call func(context.Context) error) error {
	cli := c.conn.client()
	if err := agree(ctx, cli); err != nil {
		return err
	}
	err := call(ctx)
	if !errors.Is(classify(err), errVersion) {
		return err
	}
	if err := c.conn.renew(cli); err != nil {
		return err
	}
	if err := agree(ctx, c.conn.client()); err != nil {
		return err
	}
	return call(ctx)
}

func (c *calls) note(ctx context.Context, op operation, took time.Duration, err error) {
	if err != nil && ctx.Err() != nil {
		return // the caller left; that says nothing about the engine
	}
	r := resultOf(err)
	c.metrics.requests.WithLabelValues(op.name, r).Observe(took.Seconds())
	if op.name != opInspect.name {
		return
	}
	if r == unavailable {
		c.bad.Store(time.Now().UnixNano())
	} else {
		c.good.Store(time.Now().UnixNano())
	}
}

// silent tells for how long inspects have gone unanswered, if the last one did.
func (c *calls) silent() (time.Duration, bool) {
	good, bad := c.good.Load(), c.bad.Load()
	if bad <= good {
		return 0, false
	}
	if good == 0 {
		good = bad
	}
	return time.Since(time.Unix(0, good)), true
}
