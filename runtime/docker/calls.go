package docker

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"berth/runtime"
)

// operation is a kind of call: its name in metrics and its time limit.
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
	opInfo     = operation{"info", 10 * time.Second}
	opCreate   = operation{"create", time.Minute}
	opStart    = operation{"start", 2 * time.Minute}
	opRemove   = operation{"remove", time.Minute}
	opKill     = operation{"kill", 40 * time.Second}
	opSignal   = operation{"signal", 20 * time.Second}
	opUpdate   = operation{"update", 20 * time.Second}
	opUnpause  = operation{"unpause", 20 * time.Second}
	opStats    = operation{"stats", 20 * time.Second}
	opResize   = operation{"resize", 10 * time.Second}
	opInput    = operation{"input", 10 * time.Second}
	opSize     = operation{"size", 3 * time.Minute} // the engine walks the layer; the caller ends it before
	opPull     = operation{"pull", 0}               // streams: a stall limit instead of a deadline
)

// operations lists all operations, for the metrics.
var operations = []operation{
	opPing, opInstance, opInspect, opList, opImage, opNetwork, opInfo, opCreate, opStart, opRemove,
	opKill, opSignal, opUpdate, opUnpause, opStats, opResize, opInput, opSize, opPull,
}

// calls adds a deadline, a metric and a classified error to every call.
type calls struct {
	conn     *connection
	metrics  *metrics
	answered atomic.Pointer[time.Time] // when the engine last answered an inspect, or the begin: monotonic
	silent   atomic.Bool               // it did not answer the last one
}

func newCalls(conn *connection, m *metrics) *calls {
	c, now := &calls{conn: conn, metrics: m}, time.Now()
	c.answered.Store(&now)
	return c
}

// do makes one call; what names its object. Errors wrap the class that classify
// returns.
func (c *calls) do(ctx context.Context, op operation, what string, call func(context.Context) error) error {
	limited, cancel := ctx, context.CancelFunc(func() {})
	if op.limit > 0 {
		limited, cancel = context.WithTimeout(ctx, op.limit)
	}
	defer cancel()
	began := time.Now()
	err := c.negotiated(limited, call)
	c.record(ctx, op, time.Since(began), err)
	return explain(ctx, op, what, err)
}

// negotiated makes a call after the negotiation of the API version.
func (c *calls) negotiated(ctx context.Context, call func(context.Context) error) error {
	if err := agree(ctx, c.conn.client()); err != nil {
		return err
	}
	return call(ctx)
}

func (c *calls) record(ctx context.Context, op operation, took time.Duration, err error) {
	if err != nil && ctx.Err() != nil {
		return // the caller cancelled; that says nothing about the engine
	}
	r := resultOf(err)
	c.metrics.requests.WithLabelValues(op.name, r).Observe(took.Seconds())
	if op.name != opInspect.name {
		return
	}
	if now := time.Now(); r != unavailable {
		c.answered.Store(&now)
	}
	c.silent.Store(r == unavailable)
}

// unanswered returns the time since the last answered inspect, if the engine did not
// answer the last one.
func (c *calls) unanswered() (since time.Duration, silent bool) {
	return time.Since(*c.answered.Load()), c.silent.Load()
}

// Values of the metric label "result".
const (
	ok          = "ok"
	refused     = "refused"     // the engine answered with an error
	unavailable = "unavailable" // the engine did not answer in time, or not at all
)

type metrics struct {
	requests *prometheus.HistogramVec
}

// newMetrics registers the metrics with r, unless r is nil. Every combination of
// labels starts at 0, so that rates exist before the first failure.
func newMetrics(r prometheus.Registerer) *metrics {
	m := &metrics{requests: prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "berth_engine_request_duration_seconds",
		Help:    "Time that requests to the container engine took, by operation and result.",
		Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10, 60},
	}, []string{"operation", "result"})}
	for _, op := range operations {
		for _, result := range []string{ok, refused, unavailable} {
			m.requests.WithLabelValues(op.name, result)
		}
	}
	if r != nil {
		r.MustRegister(m.requests)
	}
	return m
}

// resultOf returns the label for err. "Not found" is a successful answer.
func resultOf(err error) string {
	switch means := classify(err); {
	case err == nil, errors.Is(means, runtime.ErrNotFound), means == errNotRunning, means == errNotPaused:
		return ok
	case errors.Is(means, runtime.ErrUnavailable):
		return unavailable
	default:
		return refused
	}
}
