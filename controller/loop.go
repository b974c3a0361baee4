package controller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"
	"k8s.io/client-go/util/workqueue"
)

// Loop is a Reconciler with its sources, work queue and workers.
type Loop struct {
	Name         string
	Reconciler   Reconciler
	Watch        []Source // what the outside world did: the key is looked at again
	DesiredState []Source // what a client asked: the key is reconciled before those of Watch, its failures forgotten
	Awaited      []Source // what a key waited for is there: it is reconciled now, its failures kept
	Workers      int
	BackOff      func() backoff.BackOff // a fresh schedule that never ends; see BackOff
	Drain        time.Duration          // how long a step under way may go on after the end; 0 is 5 s
	Log          *slog.Logger
	Metrics      *Metrics // nil records nothing

	// Failed, if not nil, records a reconcile that failed. It is tried again at
	// retryAt at the latest; zero: at the next signal.
	Failed func(key string, err error, retryAt time.Time)

	limiter *limiter
	lanes   *lanes
}

type queue = workqueue.TypedRateLimitingInterface[string]

// How long a broken source waits before it runs again: doubling from sourceFirst
// to sourceMost, and from sourceFirst again after it has worked for sourceMost.
// Nothing is seen meanwhile, and asking costs little, so it is never long.
const (
	sourceFirst = 100 * time.Millisecond
	sourceMost  = 5 * time.Second
)

// What bounds a key that would otherwise keep a worker busy for nothing.
const (
	dampFirst = 50 * time.Millisecond // a failing key waits so long after a signal, doubling with its failures
	dampMost  = 5 * time.Second
	mostAgain = 30 // steps in a row without a rest, then the key counts as failing
)

// signal lets a key be looked at again. One that fails waits a little: its own
// attempts may be what causes the signals.
func signal(q queue, key string) {
	if n := q.NumRequeues(key); n > 0 {
		q.AddAfter(key, min(dampFirst<<min(n, 10), dampMost))
		return
	}
	q.Add(key)
}

// Run works until ctx ends. Then it takes no new key, lets the steps under way
// finish, and cancels those that do not finish within Drain.
func (l *Loop) Run(ctx context.Context) {
	q := l.queue()
	l.Metrics.begin(l.Name)
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()

	var wg sync.WaitGroup
	for _, s := range l.Watch {
		wg.Go(func() { l.feed(ctx, s, func(key string) { signal(q, key) }) })
	}
	for _, s := range l.DesiredState {
		wg.Go(func() { l.feed(ctx, s, func(key string) { q.Forget(key); l.lanes.hurry(key); q.Add(key) }) })
	}
	for _, s := range l.Awaited {
		wg.Go(func() { l.feed(ctx, s, q.Add) })
	}
	for range max(1, l.Workers) {
		wg.Go(func() {
			for l.next(ctx, work, q) {
			}
		})
	}
	<-ctx.Done()
	late := time.AfterFunc(l.drain(), cancel)
	defer late.Stop()
	q.ShutDown()
	wg.Wait()
}

// queue makes the work queue. The delaying queue is made with the one that it
// stands on, which alone takes a storage.
func (l *Loop) queue() queue {
	l.limiter, l.lanes = newLimiter(l.BackOff), newLanes()
	metrics := l.Metrics.queues()
	keys := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[string]{Name: l.Name, MetricsProvider: metrics, Queue: l.lanes})
	delaying := workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[string]{Name: l.Name, MetricsProvider: metrics, Queue: keys})
	return workqueue.NewTypedRateLimitingQueueWithConfig(workqueue.TypedRateLimiter[string](l.limiter),
		workqueue.TypedRateLimitingQueueConfig[string]{Name: l.Name, MetricsProvider: metrics, DelayingQueue: delaying})
}

func (l *Loop) drain() time.Duration {
	if l.Drain > 0 {
		return l.Drain
	}
	return 5 * time.Second
}

// feed runs one source, and runs it again with backoff when it breaks.
func (l *Loop) feed(ctx context.Context, s Source, notify func(string)) {
	b := BackOff(sourceFirst, sourceMost)()
	for ctx.Err() == nil {
		began := time.Now()
		err := s(ctx, notify)
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) > sourceMost {
			b.Reset()
		}
		wait := b.NextBackOff()
		l.Log.Warn("source broke", "controller", l.Name, "err", err, "retry_in", wait)
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
}

// next is the main loop's body: one key, one call, one verdict. It is false
// once the queue is shut down. What is still queued at the end of ctx is left:
// the next process lists every key first.
func (l *Loop) next(ctx, work context.Context, q queue) bool {
	key, shutdown := q.Get()
	if shutdown {
		return false
	}
	defer q.Done(key)
	if ctx.Err() != nil {
		return true
	}
	began, urgent := time.Now(), l.lanes.taken(key)
	res, err := l.reconcile(work, key)
	if urgent && (err != nil || res.Requeue) {
		l.lanes.hurry(key) // what was asked for is not done yet
	}
	l.Metrics.observe(l.Name, l.requeue(q, key, res, err), time.Since(began))
	return true
}

// requeue is the retry policy. It returns the verdict's name.
func (l *Loop) requeue(q queue, key string, res Result, err error) string {
	var terminal terminalError
	switch {
	case errors.As(err, &terminal):
		l.limiter.When(key) // counts as failing, and is not scheduled
		l.failed(key, err, time.Time{})
		return resultTerminal
	case err != nil:
		wait := l.limiter.When(key)
		q.AddAfter(key, wait)
		l.failed(key, err, time.Now().Add(wait))
		return resultError
	case res.Requeue && l.limiter.requeue(key):
		q.AddRateLimited(key)
		l.Log.Warn("reconcile goes round in circles", "controller", l.Name, "key", key)
		return resultError
	case res.Requeue:
		q.Add(key)
		return resultAgain
	case res.Waiting:
		if res.RequeueAfter > 0 {
			q.AddAfter(key, res.RequeueAfter)
		}
		return resultWaiting
	case res.RequeueAfter > 0:
		q.Forget(key)
		q.AddAfter(key, res.RequeueAfter)
		return resultAfter
	}
	q.Forget(key)
	return resultSettled
}

// failed records a failure. Of failures in a row it logs the 1st, 2nd, 4th, 8th
// and so on.
func (l *Loop) failed(key string, err error, retryAt time.Time) {
	if n := l.limiter.NumRequeues(key); n&(n-1) == 0 {
		l.Log.Warn("reconcile failed", "controller", l.Name, "key", key, "err", err, "failures", n, "retry_at", retryAt)
	}
	if l.Failed != nil {
		l.Failed(key, err, retryAt)
	}
}

// reconcile turns a panic into an error, so that one bad object cannot stop the daemon.
func (l *Loop) reconcile(ctx context.Context, key string) (res Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
			l.Log.Error("reconcile panicked", "controller", l.Name, "key", key, "panic", p, "stack", string(debug.Stack()))
		}
	}()
	return l.Reconciler.Reconcile(ctx, key)
}
