package remote

import (
	"time"
)

// handle acts on the result of a request and returns how long to wait.
func (s *Sender) handle(b batch, v result) (time.Duration, error) {
	switch {
	case v.reason == accepted:
		return 0, s.accepted(b)
	case v.reason != refused:
		return s.failed(v), nil
	case len(b.messages) > 1:
		s.metrics.failed(refused)
		s.limit = len(b.messages) / 2
		s.log.Debug("the panel refused a batch, sending it in two parts", "status", v.detail, "transitions", len(b.messages))
		return 0, nil
	}
	return s.park(b, v)
}

func (s *Sender) accepted(b batch) error {
	if err := s.advance(b); err != nil {
		return err
	}
	if b.lost > 0 {
		s.metrics.lost(b.lost)
		s.log.Warn("the panel missed transitions: they were removed by events.retention or events.max before it was reachable", "lost", b.lost, "continues_after_seq", b.last)
	}
	if s.failing != accepted {
		s.log.Info("the panel accepts transitions again", "after", time.Since(s.since).Round(time.Second))
	}
	s.failing, s.parked = accepted, 0
	s.limit = min(s.limit*2, maxBatch)
	s.backoff.Reset()
	return nil
}

// failed records a failure that is not about the content, and returns how long to wait.
func (s *Sender) failed(v result) time.Duration {
	wait := s.backoff.NextBackOff()
	if v.reason.needsOperator() {
		wait = max(wait, minOperatorWait)
	}
	wait = max(wait, min(v.retryAfter, maxRetryAfter))
	s.metrics.failed(v.reason)
	if s.failing == accepted {
		s.since = time.Now()
	}
	log := s.log.Debug
	if s.failing != v.reason {
		log = s.log.Warn
	}
	s.failing = v.reason
	log("the panel does not accept transitions", "reason", v.reason, "detail", v.detail, "retry_in", wait.Round(time.Millisecond))
	return wait
}

// storeFailed records that the cursor could not be read or written.
func (s *Sender) storeFailed(err error) time.Duration {
	return s.failed(result{reason: storeFailed, detail: err.Error()})
}

// park skips the one transition that the panel refuses. A panel that refuses many in a
// row is probably broken itself: after freeRefusals each costs a wait, so that few are
// skipped before an operator reacts.
func (s *Sender) park(b batch, v result) (time.Duration, error) {
	if err := s.advance(b); err != nil {
		return 0, err
	}
	m := b.messages[0]
	s.metrics.failed(refused)
	s.metrics.parkedOne()
	s.parked++
	s.log.Error("the panel refused a transition: it is skipped for the panel and stays in GET /events",
		"seq", m.Seq, "container", m.Container, "event", m.Event, "data", m.Data, "status", v.detail)
	if s.parked <= freeRefusals {
		return 0, nil
	}
	return max(s.backoff.NextBackOff(), minOperatorWait), nil
}
