package console

import "context"

// consoleState is the state of one console.
type consoleState struct {
	target   Target
	pumping  bool
	cancel   context.CancelFunc // cancels the pump; nil until it runs
	read     run                // the run whose output was read last
	complete bool               // the output of read is complete: the engine reported its end, or the read began after the exit
	matched  bool               // the pattern of target matched
	awaited  bool               // OutputComplete returned false: Source names the container when it returns true
	backlog  int                // size of the output read while awaited; see pump.countBacklog
	leaving  bool               // Forget waits for the pump
	retry    chan struct{}      // signalled to skip the backoff
	rescan   chan struct{}      // signalled when the pattern or the run has changed
	changed  chan struct{}      // closed and replaced when the pump has ended or read a run
}

// setTarget makes t the run that the console reads.
func (s *consoleState) setTarget(t Target) {
	was := s.target
	s.target = t
	if runOf(was) != runOf(t) || was.Pattern != t.Pattern {
		s.matched = t.Pattern == ""
		signal(s.rescan)
	}
	if runOf(was) != runOf(t) {
		s.awaited, s.backlog = false, 0
	}
	if s.pumping && (runOf(was) != runOf(t) || was.Ended != t.Ended) {
		signal(s.retry)
	}
}

// notify wakes the goroutines that wait for s.changed.
func (s *consoleState) notify() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// signal sends to a channel of capacity 1, unless it is full.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
