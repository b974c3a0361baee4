package remote

import (
	"time"
)

// handle draws the consequences of an answer, and says how long to wait.
func (s *Sender) handle(b batch, v verdict) (time.Duration, error) {
	switch {
	case v.reason == accepted:
		return 0, s.accepted(b)
	case v.reason != refused:
		return s.failed(v), nil
	case len(b.messages) > 1:
		s.metrics.failed(refused)
		s.limit = len(b.messages) / 2
		s.log.Debug("the panel refuses a batch: it is sent in parts", "status", v.detail, "transitions", len(b.messages))
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
		s.log.Warn("the panel was away for longer than transitions are kept", "lost", b.lost, "goes_on_after", b.last)
	}
	if s.failing != accepted {
		s.log.Info("the panel takes transitions again", "after", time.Since(s.since).Round(time.Second))
	}
	s.failing, s.parked = accepted, 0
	s.limit = min(s.limit*2, maxBatch)
	s.backoff.Reset()
	return nil
}

// failed is about a try that says nothing about the transitions.
func (s *Sender) failed(v verdict) time.Duration {
	wait := s.backoff.NextBackOff()
	if v.reason.slow() {
		wait = max(wait, slowWait)
	}
	wait = max(wait, min(v.retryAfter, longestAsked))
	s.metrics.failed(v.reason)
	if s.failing == accepted {
		s.since = time.Now()
	}
	log := s.log.Debug
	if s.failing != v.reason {
		log = s.log.Warn
	}
	s.failing = v.reason
	log("the panel does not take transitions", "reason", v.reason, "detail", v.detail, "retry_in", wait.Round(time.Millisecond))
	return wait
}

// storeFailed is about a cursor that could not be read or moved.
func (s *Sender) storeFailed(err error) time.Duration {
	return s.failed(verdict{reason: storeFailed, detail: err.Error()})
}

// park passes over the one transition that the panel will never take. A panel
// that refuses one after the other is more likely to be at fault itself, so
// then each of them costs a slow wait: little is passed over before an operator
// has looked.
func (s *Sender) park(b batch, v verdict) (time.Duration, error) {
	if err := s.advance(b); err != nil {
		return 0, err
	}
	m := b.messages[0]
	s.metrics.failed(refused)
	s.metrics.parkedOne()
	s.parked++
	s.log.Error("the panel refuses a transition for good: it is passed over, and stays in GET /events",
		"seq", m.Seq, "container", m.Container, "event", m.Event, "data", m.Data, "status", v.detail)
	if s.parked <= freeRefusals {
		return 0, nil
	}
	return max(s.backoff.NextBackOff(), slowWait), nil
}
