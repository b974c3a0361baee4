package console

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	v1 "berth/api/v1"
	"berth/controller"
	"berth/runtime"
)

type line = runtime.Line

const (
	maxRescan  = 16 << 20 // bytes of a journal that are searched for a start pattern
	minWait    = 100 * time.Millisecond
	maxWait    = 5 * time.Second
	goodRead   = 10 * time.Second // a stream of this duration resets the backoff
	lastTries  = 3                // attempts to read a container that another one has replaced
	maxBacklog = 1 << 20          // bytes, plus lineCost for each line, that delay the exit of a run
	lineCost   = 100
	maxBatch   = 64 // lines that wait for the journal, and that are written together
)

// pump reads one console.
type pump struct {
	m      *Manager
	k      key
	s      *consoleState // Manager.mu guards all of it but its channels
	match  *matcher
	gapTo  time.Time // the end of the gap that was reported last
	exited bool      // a stream has followed the run to its exit
	open   time.Time // the time of a long line whose end was not read: its next piece has the same time
	lost   []v1.Line // the first and the last line of this stream that could not be written, and that no message names
	log    *slog.Logger
}

// runPump reads a console until no more output can follow or ctx ends.
func (m *Manager) runPump(ctx context.Context, k key) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p := &pump{m: m, k: k, log: m.log.With("container", k.id, "role", string(k.role))}
	for {
		s, t, ok := m.nextRead(k, cancel)
		if !ok {
			return
		}
		p.s = s
		complete := p.read(ctx, t)
		if !m.finish(ctx, k, t, complete) {
			return
		}
	}
}

// nextRead returns the run that the pump reads next. It returns false if the pump must end.
func (m *Manager) nextRead(k key, cancel context.CancelFunc) (*consoleState, Target, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.state(k)
	s.cancel = cancel
	if s.leaving {
		s.pumping, s.cancel = false, nil
		s.notify()
		return s, Target{}, false
	}
	return s, s.target, true
}

// finish records that the output of t was read, complete or not, and reports whether there
// is another run to read.
func (m *Manager) finish(ctx context.Context, k key, t Target, complete bool) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.consoles[k]
	cancelled := ctx.Err() != nil
	if !cancelled {
		s.read, s.complete = runOf(t), complete || t.Ended
	}
	if s.complete && s.awaited {
		s.awaited = false
		m.changed[k.id] = struct{}{}
		signal(m.reported)
	}
	more := !cancelled && runOf(s.target) != runOf(t)
	if !more {
		s.pumping, s.cancel = false, nil
	}
	s.notify()
	return more
}

// end ends the reading of a console, which is complete or not.
func (p *pump) end(complete bool) error {
	if complete {
		return p.m.sink.Finish(p.k.id, p.role())
	}
	return p.m.sink.Release(p.k.id)
}

// read reads the output of a run. It opens streams until one reaches the exit, and one more for
// what that one may lack; then the output is complete. It gives up, and the output is not complete,
// if the container is gone.
func (p *pump) read(ctx context.Context, t Target) (complete bool) {
	defer func() {
		if err := p.end(complete); err != nil {
			p.log.Warn("could not close the console journal", "err", err)
		}
	}()
	p.open, p.exited = time.Time{}, false
	retry, tries := controller.BackOff{Initial: minWait, Max: maxWait}.New(), 0
	for ctx.Err() == nil {
		began := time.Now()
		err := p.stream(ctx, t)
		switch {
		case err == nil && !t.Ended: // the engine may have ended the stream before its last lines: they are read now
			t.Ended, p.exited = true, true
			continue
		case err == nil, p.exited && errors.Is(err, runtime.ErrNotFound):
			return p.lost == nil // otherwise the next reader of this container reads them again
		case errors.Is(err, runtime.ErrNotFound):
			return false
		case p.replaced(t):
			if tries++; tries > lastTries {
				return false
			}
		}
		p.log.Debug("console stream was interrupted, reconnecting", "err", err)
		if time.Since(began) > goodRead {
			retry.Reset()
		}
		p.pause(ctx, retry.NextBackOff())
	}
	return false
}

// replaced reports whether the console has moved to another container than that of t.
func (p *pump) replaced(t Target) bool {
	return p.target().ContainerID != t.ContainerID
}

func (p *pump) target() Target {
	p.m.mu.Lock()
	defer p.m.mu.Unlock()
	return p.s.target
}

// pause waits for d, or until a retry is requested.
func (p *pump) pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-p.s.retry:
	case <-ctx.Done():
	}
}

// stream reads one stream of the engine. It returns nil at its end.
func (p *pump) stream(ctx context.Context, t Target) error {
	p.lost = nil // what the journal lacks is read again
	r, err := p.resume(ctx, t)
	if err != nil {
		return err
	}
	lines := make(chan item, maxBatch)
	ctx, stop := context.WithCancel(ctx)
	var writing sync.WaitGroup
	defer writing.Wait()
	defer close(lines)
	writing.Go(func() {
		defer stop() // after a panic nobody takes the lines
		_ = controller.Catch(p.log, "console writer", func() error { p.write(ctx, lines); return nil })
	})
	return p.m.engine.Logs(ctx, t, r.since, func(l line) error {
		if t.TTY && !l.Partial {
			l.Data = bytes.TrimSuffix(l.Data, []byte{'\r'})
		}
		if r.goesBack(l, p.open) {
			if err := p.rewind(ctx, lines, r, l); err != nil {
				return err
			}
		}
		p.recordOpen(l)
		return pieces(l, func(l v1.Line) error {
			if r.repeated(l) {
				return nil
			}
			l.Data = bytes.Clone(l.Data)
			return put(ctx, lines, item{line: l})
		})
	})
}

// recordOpen records the time of a line that continues. The engine gives all pieces of a
// line the same time, whatever the other stream prints in between.
func (p *pump) recordOpen(l line) {
	switch {
	case l.Partial:
		p.open = l.Time
	case l.Time.Equal(p.open):
		p.open = time.Time{}
	}
}

// pieces calls each for the pieces of a line, of at most v1.MaxLine bytes each.
func pieces(l line, each func(v1.Line) error) error {
	for len(l.Data) > v1.MaxLine {
		if err := each(v1.Line{Time: l.Time, Data: l.Data[:v1.MaxLine], Partial: true}); err != nil {
			return err
		}
		l.Data = l.Data[v1.MaxLine:]
	}
	return each(v1.Line{Time: l.Time, Data: l.Data, Partial: l.Partial})
}

// item is what the goroutine that reads a stream passes to the one that writes: a line, or a channel to close
// when all lines before it are written. If the reader is too fast, it waits, and the engine keeps the rest.
type item struct {
	line    v1.Line
	written chan<- struct{}
}

func put(ctx context.Context, to chan<- item, i item) error {
	select {
	case to <- i:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// write appends lines to the sink until the channel is closed: those that wait together.
func (p *pump) write(ctx context.Context, lines <-chan item) {
	p.checkPattern(ctx, nil) // the journal may have a line that matches
	for {
		select {
		case <-p.s.rescan:
			p.checkPattern(ctx, nil)
		case i, ok := <-lines:
			if !ok {
				return
			}
			batch, written := gather(i, lines)
			if len(batch) > 0 {
				p.append(batch)
				p.checkPattern(ctx, batch)
				p.countBacklog(batch)
			}
			if written != nil {
				close(written)
			}
		}
	}
}

// gather returns the line of an item with those that wait behind it, up to one that is to be reported as
// written.
func gather(i item, from <-chan item) (batch []v1.Line, written chan<- struct{}) {
	for i.written == nil {
		batch = append(batch, i.line)
		if len(batch) == maxBatch {
			return batch, nil
		}
		select {
		case next, ok := <-from:
			if !ok {
				return batch, nil
			}
			i = next
		default:
			return batch, nil
		}
	}
	return batch, i.written
}

// checkPattern searches lines for the start pattern. If the run or its pattern has changed,
// it searches the journal first.
func (p *pump) checkPattern(ctx context.Context, lines []v1.Line) {
	t := p.target()
	if p.k.role != runtime.Server {
		return
	}
	if !p.match.isFor(t) {
		p.match, lines = newMatcher(t), nil
		if p.match.re == nil {
			return
		}
		p.rescan(ctx)
	}
	for _, l := range lines {
		p.matchLine(l)
	}
}

// rescan searches the journal's lines of the run for the start pattern. It stops after
// maxRescan bytes: most of those lines were searched before.
func (p *pump) rescan(ctx context.Context) {
	left := maxRescan
	each := func(l v1.Line) bool {
		left -= len(l.Data)
		return left > 0 && !p.matchLine(l)
	}
	var err error
	if p.target().OwnLog { // the clock of its machine may be another
		err = p.m.sink.Current(ctx, p.k.id, p.role(), each)
	} else {
		err = p.m.sink.Since(ctx, p.k.id, p.role(), p.match.since(), each)
	}
	if err != nil && ctx.Err() == nil {
		p.log.Warn("could not search earlier console output for the start pattern", "err", err)
	}
}

// matchLine reports whether the start pattern matches with this line, and records it.
func (p *pump) matchLine(l v1.Line) bool {
	if !p.match.add(l) {
		return false
	}
	p.m.match(p.k, p.match.run, p.match.pattern)
	return true
}

// append writes lines to the sink. A message takes the place of those that it has refused before.
func (p *pump) append(lines []v1.Line) {
	last := lines[len(lines)-1]
	if p.lost != nil {
		lines = append([]v1.Line{gap(p.lost[0].Time, p.lost[1].Time, "it could not be written")}, lines...)
	}
	err := p.m.sink.Append(p.k.id, p.role(), lines)
	switch {
	case err == nil:
		p.lost = nil
		return
	case p.lost == nil:
		p.lost = []v1.Line{lines[0], last}
	default:
		p.lost[1] = last
	}
	p.log.Warn("could not write console lines to the journal", "lines", len(lines), "err", err)
}

// countBacklog counts the output that is read while the exit of the run waits for it. Above
// maxBacklog the exit is reported before the output is complete, so that a flood of
// output cannot delay it for long. The end of an installation waits for all of its output,
// because the installer is removed with what was not read.
func (p *pump) countBacklog(lines []v1.Line) {
	p.m.mu.Lock()
	defer p.m.mu.Unlock()
	if !p.s.awaited || p.k.role != runtime.Server {
		return
	}
	for _, l := range lines {
		p.s.backlog += len(l.Data) + lineCost
	}
	if p.s.backlog > maxBacklog {
		p.s.awaited = false
		p.m.changed[p.k.id] = struct{}{}
		signal(p.m.reported)
	}
}

// role returns the name of the console in the sink.
func (p *pump) role() string {
	if p.k.role == runtime.Install {
		return v1.InstallConsole
	}
	return v1.ServerConsole
}
