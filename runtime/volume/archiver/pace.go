package archiver

import "time"

const (
	// judgeTime is how often the use of the host is read. The kernel counts it in steps of
	// 10 ms for each processor.
	judgeTime = 100 * time.Millisecond
	// quietTime is how long the others must have been quiet until the process hurries again.
	quietTime = 3 * time.Second
	// spareShare is how much it may use of the processors that the others leave idle. One of
	// them is kept for the others and does not count, but what counts is at least one.
	spareShare = 0.1
	// stepTime is the least processor time between two pauses.
	stepTime = 500 * time.Microsecond
	// longestPause bounds a pause: many threads may have worked long since the last one.
	longestPause = 200 * time.Millisecond
)

// windows returns the windows in which the use of the others is judged: a short one notices
// at once what works hard, such as starts, a long one what works a little all the time, such
// as a console. The kernel's own work is not counted in the long one, because writing the
// archive to the disk is a part of it.
func windows() []window {
	return []window{
		{length: judgeTime, most: 0.5, use: func(o others) time.Duration { return o.all }},
		{length: time.Second, most: 0.025, use: func(o others) time.Duration { return o.user }},
	}
}

// pace makes the process pause while other processes of the host work. One that takes the
// last idle processor delays them, whatever its priority is.
type pace struct {
	host  host
	sleep func(time.Duration)
	// set is called with the policy of the threads when it changes.
	set func(policy uint32)

	processors float64       // of the host
	share      float64       // processors that this process may use; 0: all
	at, own    time.Duration // when the last work was paid for, and what was used until then
	judged     time.Duration // when the others were judged last; 0: never
	busy       time.Duration // when they last worked; 0: never
	windows    []window
}

// host has the time since any moment, and what was used until then. others is costly.
type host struct {
	own    func() (at, own time.Duration) // this process
	others func() (others, error)
}

// others is the processor time of all other processes.
type others struct {
	all  time.Duration
	user time.Duration // without that in the kernel
}

// window is a time in which the others are quiet if they use most processors, or fewer.
type window struct {
	length time.Duration
	most   float64
	use    func(others) time.Duration

	began time.Duration // 0: it has not begun
	used  others        // until it began
}

// end returns how many processors the others have used in the window, and begins the next
// one. It returns false while the window lasts.
func (w *window) end(at time.Duration, now others) (processors float64, ended bool) {
	took := at - w.began
	if w.began != 0 && took < w.length {
		return 0, false
	}
	if w.began != 0 {
		processors, ended = float64(w.use(now)-w.use(w.used))/float64(took), true
	}
	w.began, w.used = at, now
	return processors, ended
}

// newPace returns a pace that does not know the host yet: the process begins at full speed.
func newPace(h host, processors int, sleep func(time.Duration), set func(uint32)) *pace {
	return &pace{host: h, sleep: sleep, set: set, processors: float64(processors), windows: windows()}
}

// keep pauses for as long as the work since the last pause requires.
func (p *pace) keep() {
	at, own := p.host.own()
	if p.judged == 0 || at-p.judged >= judgeTime {
		p.judge(at)
	}
	work, took := own-p.own, at-p.at
	if work < stepTime {
		return
	}
	p.at, p.own = at, own
	if p.share == 0 {
		return
	}
	if pause := time.Duration(float64(work)/p.share) - took; pause > 0 {
		pause = min(pause, longestPause)
		p.at += pause // it pays for this work, not for the next
		p.sleep(pause)
	}
}

// judge chooses the share by what the others have used in the windows that end.
func (p *pace) judge(at time.Duration) {
	p.judged = at
	now, err := p.host.others()
	if err != nil { // there is no reason to be slow
		p.choose(0)
		return
	}
	most := 0.0
	for i := range p.windows {
		used, ended := p.windows[i].end(at, now)
		if ended && used > p.windows[i].most {
			p.busy, most = at, max(most, used)
		}
	}
	switch {
	case p.busy == at:
		p.choose(spareShare * max(1, p.processors-most-1))
	case p.busy == 0 || at-p.busy >= quietTime:
		p.choose(0)
	}
}

// choose sets the share.
func (p *pace) choose(share float64) {
	before := p.share
	p.share = share
	switch {
	case before != 0 && share == 0:
		p.set(fastPolicy)
	case before == 0 && share != 0:
		p.set(slowPolicy)
	}
}
