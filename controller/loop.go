package controller

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
)

// Loop is a Reconciler with its sources, work queue and workers.
type Loop struct {
	Name         string
	Reconciler   Reconciler
	Signals      []Source // something outside may have changed: the key is queued
	DesiredState []Source // a client made a request: the key is queued, and its failures are reset
	Awaited      []Source // the resource that a key waits for is available: the key is queued at once, its failures are kept
	Workers      int
	BackOff      BackOff // of a failing key
	Log          *slog.Logger
	Metrics      *Metrics

	// Failed, if not nil, is called after each reconcile that failed. The next
	// retry is at retryAt at the latest, or at the next signal if retryAt is zero.
	Failed func(key string, err error, retryAt time.Time)

	limiter *limiter
}

type queue = workqueue.TypedRateLimitingInterface[string]

// sourceBackOff is that of a failed source. One that worked for its Max begins anew. No change is
// observed during the delay and a retry is cheap, so it is short.
func sourceBackOff() BackOff { return BackOff{100 * time.Millisecond, 5 * time.Second} }

// signalBackOff is by how much a signal for a failing key is delayed.
func signalBackOff() BackOff { return BackOff{50 * time.Millisecond, 5 * time.Second} }

// drainTime is how long a running reconcile may continue after the context of Run ends.
const drainTime = 5 * time.Second

// signal queues a key. A failing key is delayed, because its own attempts may
// cause the signals.
func signal(q queue, key string) {
	if n := q.NumRequeues(key); n > 0 {
		q.AddAfter(key, signalBackOff().After(n))
		return
	}
	q.Add(key)
}

// Run reconciles keys until ctx ends. Then it takes no new key, waits for the
// running reconciles, and cancels those that do not finish within drainTime.
func (l *Loop) Run(ctx context.Context) {
	l.limiter = &limiter{backOff: l.BackOff, failing: map[string]schedule{}}
	q := workqueue.NewTypedRateLimitingQueueWithConfig[string](l.limiter,
		workqueue.TypedRateLimitingQueueConfig[string]{Name: l.Name, MetricsProvider: l.Metrics.queue})
	l.Metrics.begin(l.Name)
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()

	var wg sync.WaitGroup
	for _, s := range l.Signals {
		wg.Go(func() { l.feed(ctx, s, func(key string) { signal(q, key) }) })
	}
	for _, s := range l.DesiredState {
		wg.Go(func() { l.feed(ctx, s, func(key string) { q.Forget(key); q.Add(key) }) })
	}
	for _, s := range l.Awaited {
		wg.Go(func() { l.feed(ctx, s, q.Add) })
	}
	for range max(1, l.Workers) {
		wg.Go(func() {
			_ = Persist(ctx, l.Log, "worker", func(context.Context) error {
				for l.next(ctx, work, q) {
				}
				return nil
			}, "controller", l.Name)
		})
	}
	<-ctx.Done()
	late := time.AfterFunc(drainTime, cancel)
	defer late.Stop()
	q.ShutDown()
	wg.Wait()
}

// feed runs one source until ctx ends, and restarts it with backoff when it fails. Like
// failed, it logs the 1st, 2nd, 4th, 8th of consecutive failures and so on: an engine may
// be away for days.
func (l *Loop) feed(ctx context.Context, s Source, notify func(string)) {
	b, failures := sourceBackOff().New(), 0
	for ctx.Err() == nil {
		began := time.Now()
		err := Catch(l.Log, "event source", func() error { return s(ctx, notify) }, "controller", l.Name)
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) > sourceBackOff().Max {
			b.Reset()
			failures = 0
		}
		wait := b.NextBackOff()
		if failures++; PowerOfTwo(failures) {
			l.Log.Warn("event source failed, retrying", "controller", l.Name, "err", err, "failures", failures, "retry_in", wait)
		}
		Sleep(ctx, wait)
	}
}

// Sleep waits for d, and returns false if ctx ends before.
func Sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// next reconciles one key. It returns false once the queue is shut down. Keys that
// are still queued when ctx ends are dropped: the next process lists every key first.
func (l *Loop) next(ctx, work context.Context, q queue) bool {
	key, shutdown := q.Get()
	if shutdown {
		return false
	}
	defer q.Done(key)
	if ctx.Err() != nil {
		return true
	}
	began := time.Now()
	var res Result
	err := Catch(l.Log, "reconcile", func() (err error) {
		res, err = l.Reconciler.Reconcile(work, key)
		return err
	}, "controller", l.Name, "key", key)
	l.Metrics.observe(l.Name, l.requeue(q, key, res, err), time.Since(began))
	return true
}

// requeue is the retry policy. It returns the value of the metrics label result.
func (l *Loop) requeue(q queue, key string, res Result, err error) string {
	var terminal terminalError
	switch {
	case errors.As(err, &terminal):
		l.limiter.When(key) // counts the failure; no retry is scheduled
		l.failed(key, err, time.Time{})
		return resultTerminal
	case err != nil:
		wait := l.limiter.When(key)
		q.AddAfter(key, wait)
		l.failed(key, err, time.Now().Add(wait))
		return resultError
	case res.Waiting:
		if res.RequeueAfter > 0 {
			q.AddAfter(key, res.RequeueAfter)
		}
		return resultWaiting
	}
	q.Forget(key)
	if res.RequeueAfter > 0 {
		q.AddAfter(key, res.RequeueAfter)
		return resultAfter
	}
	return resultSettled
}

// failed reports a failure. Of consecutive failures it logs the 1st, 2nd, 4th, 8th
// and so on.
func (l *Loop) failed(key string, err error, retryAt time.Time) {
	if n := l.limiter.NumRequeues(key); PowerOfTwo(n) {
		l.Log.Warn("reconcile failed", "controller", l.Name, "key", key, "err", err, "failures", n, "retry_at", retryAt)
	}
	if l.Failed != nil {
		l.Failed(key, err, retryAt)
	}
}

// PowerOfTwo reports whether n is 0, 1, 2, 4, 8 and so on: of consecutive failures these are logged.
func PowerOfTwo(n int) bool { return n&(n-1) == 0 }
