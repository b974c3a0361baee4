package console

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	v1 "berth/api/v1"
	"berth/runtime"
)

type line = runtime.Line

const (
	maxPiece    = 16 << 10 // bytes of a line that are kept as one; a longer one becomes several
	maxLookBack = 16 << 20 // bytes of a journal that are searched for a start pattern
	minWait     = 100 * time.Millisecond
	maxWait     = 5 * time.Second
	goodRead    = 10 * time.Second // a stream that lived so long has worked
	lastTries   = 3                // for a container that another one has replaced
	maxWordy    = 1 << 20          // bytes that a run's end is kept back for, with 100 for each line
)

// pump reads one console.
type pump struct {
	m     *Manager
	k     key
	s     *state // its channels; the rest is the manager's
	match *matcher
	gapTo time.Time // the end of the gap that was told last
	open  time.Time // of a long line whose end was not read: its next piece will have this time
	log   *slog.Logger
}

// pump reads a console until there is nothing more to read, or ctx ends.
func (m *Manager) pump(ctx context.Context, k key) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p := &pump{m: m, k: k, log: m.log.With("container", k.id, "role", string(k.role))}
	for {
		s, t, ok := m.take(k, cancel)
		if !ok {
			return
		}
		p.s = s
		whole := p.read(ctx, t)
		if !m.finish(ctx, k, t, whole) {
			return
		}
	}
}

// take begins the pump's next read. It is false when the pump is to end.
func (m *Manager) take(k key, cancel context.CancelFunc) (*state, Target, bool) {
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

// finish notes what was read, to its end or not, and says whether there is more to read.
func (m *Manager) finish(ctx context.Context, k key, t Target, whole bool) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.consoles[k]
	cut := ctx.Err() != nil
	if !cut {
		s.read, s.final = runOf(t), whole || t.Ended
	}
	if s.final && s.awaited {
		s.awaited = false
		m.changed[k.id] = struct{}{}
		signal(m.reported)
	}
	more := !cut && runOf(s.target) != runOf(t)
	if !more {
		s.pumping, s.cancel = false, nil
	}
	s.notify()
	return more
}

// read reads a run's output to its end, over as many streams as it takes, or
// until there is no more to get: then it is not whole.
func (p *pump) read(ctx context.Context, t Target) (whole bool) {
	defer func() {
		if err := p.m.sink.End(p.k.id, p.role(), whole); err != nil {
			p.log.Warn("console is not closed", "err", err)
		}
	}()
	p.open = time.Time{}
	wait, tries := minWait, 0
	for ctx.Err() == nil {
		began := time.Now()
		err := p.stream(ctx, t)
		switch {
		case err == nil:
			return true
		case errors.Is(err, runtime.ErrNotFound):
			return false
		case p.replaced(t):
			if tries++; tries > lastTries {
				return false
			}
		}
		p.log.Debug("console stream has ended, reading goes on", "err", err)
		if time.Since(began) > goodRead {
			wait = minWait
		}
		p.pause(ctx, wait)
		wait = min(2*wait, maxWait)
	}
	return false
}

// replaced says whether another container has taken the place of t's.
func (p *pump) replaced(t Target) bool {
	return p.target().ContainerID != t.ContainerID
}

func (p *pump) target() Target {
	p.m.mu.Lock()
	defer p.m.mu.Unlock()
	return p.s.target
}

func (p *pump) pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d/2 + rand.N(d))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-p.s.retry:
	case <-ctx.Done():
	}
}

// stream reads one stream of the engine. It is nil at the end of the container's output.
func (p *pump) stream(ctx context.Context, t Target) error {
	r, err := p.resume(ctx, t)
	if err != nil {
		return err
	}
	b := newBuffer()
	var writer sync.WaitGroup
	writer.Go(func() { p.write(ctx, b) })
	defer writer.Wait()
	defer b.close()
	return p.m.engine.Logs(ctx, t, r.since, func(l line) error {
		if t.TTY && !l.Partial {
			l.Data = bytes.TrimSuffix(l.Data, []byte{'\r'})
		}
		if r.goesBack(l, p.open) {
			if err := p.rewind(ctx, b, r, l); err != nil {
				return err
			}
		}
		p.recordOpen(l)
		return pieces(l, func(l v1.Line) error {
			if r.repeated(l) {
				return nil
			}
			return b.put(ctx, l)
		})
	})
}

// recordOpen keeps the time of a line that goes on. The engine gives all of its
// pieces that time, whatever the other stream has printed since.
func (p *pump) recordOpen(l line) {
	switch {
	case l.Partial:
		p.open = l.Time
	case l.Time.Equal(p.open):
		p.open = time.Time{}
	}
}

// pieces cuts a line into what is kept as one record.
func pieces(l line, each func(v1.Line) error) error {
	for len(l.Data) > maxPiece {
		if err := each(v1.Line{Time: l.Time, Data: l.Data[:maxPiece], Partial: true}); err != nil {
			return err
		}
		l.Data = l.Data[maxPiece:]
	}
	return each(v1.Line{Time: l.Time, Data: l.Data, Partial: l.Partial})
}

// write writes what is in a buffer until it is closed and empty.
func (p *pump) write(ctx context.Context, b *buffer) {
	var lines []v1.Line
	p.checkPattern(ctx, nil)
	for {
		var more bool
		if lines, more = b.take(lines[:0]); len(lines) > 0 {
			p.append(lines)
			p.checkPattern(ctx, lines)
			p.observe(lines)
			if cap(lines) > keepBytes/64 {
				lines = nil
			}
			continue
		}
		if !more {
			return
		}
		select {
		case <-b.filled:
		case <-p.s.rescan:
			p.checkPattern(ctx, nil)
		}
	}
}

// checkPattern looks for the start pattern. When the run or its pattern is another than
// before, it begins with what the journal has of the run.
func (p *pump) checkPattern(ctx context.Context, lines []v1.Line) {
	t := p.target()
	if p.k.role != runtime.Server {
		return
	}
	if !p.match.of(t) {
		p.match, lines = newMatcher(t), nil
		if p.match.re == nil {
			return
		}
		p.lookBack(ctx)
	}
	for _, l := range lines {
		p.found(l)
	}
}

// lookBack looks at what the journal has of the run. What is there was mostly
// looked at before, so it need not be all of a long one.
func (p *pump) lookBack(ctx context.Context) {
	left := maxLookBack
	err := p.m.sink.Since(ctx, p.k.id, p.role(), p.match.since(), func(l v1.Line) bool {
		left -= len(l.Data)
		return left > 0 && !p.found(l)
	})
	if err != nil && ctx.Err() == nil {
		p.log.Warn("start pattern is not looked for in what was printed before", "err", err)
	}
}

func (p *pump) found(l v1.Line) bool {
	if !p.match.add(l) {
		return false
	}
	p.m.match(p.k, p.match.run, p.match.pattern)
	return true
}

func (p *pump) append(lines []v1.Line) {
	if err := p.m.sink.Append(p.k.id, p.role(), lines); err != nil {
		p.log.Warn("console lines are not kept", "err", err)
	}
}

// observe counts what is read while the end of a run is kept back for it. A flood
// may be far behind: its end is told without the rest.
func (p *pump) observe(lines []v1.Line) {
	p.m.mu.Lock()
	defer p.m.mu.Unlock()
	if !p.s.awaited {
		return
	}
	for _, l := range lines {
		p.s.wordy += len(l.Data) + 100
	}
	if p.s.wordy > maxWordy {
		p.s.awaited = false
		p.m.changed[p.k.id] = struct{}{}
		signal(p.m.reported)
	}
}

func (p *pump) role() string {
	if p.k.role == runtime.Install {
		return v1.InstallConsole
	}
	return v1.ServerConsole
}
