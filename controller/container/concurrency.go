package container

import "time"

const (
	rateTolerance  = 0.01 // by which two measured rates differ by chance
	leastInAWindow = 8    // calls that one measurement counts, at least
)

// concurrency finds how many expensive calls at once the engine completes fastest: it
// measures the rate of completed calls, changes the limit by one, and measures again. It
// continues in a direction while the rate rises, and turns back when the rate falls. At
// an equal rate fewer calls are better: each of them ends earlier. It measures only
// while calls wait, because otherwise the limit does not determine the rate.
type concurrency struct {
	limit, most int // the limit is 1 to most; most 0: it never changes

	up       bool      // the direction of the last change
	rate     float64   // of the window before the last change; 0: none
	began    time.Time // of the window; zero: none has begun
	complete int       // calls in the window
}

// completed counts a call that has ended. Waiting reports whether other calls wait.
func (c *concurrency) completed(now time.Time, waiting bool) {
	switch {
	case c.most == 0:
		return
	case !waiting:
		c.began, c.rate = time.Time{}, 0
		return
	case c.began.IsZero():
		c.began, c.complete = now, 0
		return
	}
	c.complete++
	took := now.Sub(c.began)
	if c.complete < max(leastInAWindow, 2*c.limit) || took <= 0 {
		return
	}
	c.step(float64(c.complete) / took.Seconds())
	c.began, c.complete = now, 0
}

// step changes the limit after a window with a rate.
func (c *concurrency) step(rate float64) {
	switch {
	case c.rate == 0:
		c.up = true // nothing to compare with
	case rate < c.rate*(1-rateTolerance):
		c.up = !c.up
	case rate < c.rate*(1+rateTolerance):
		c.up = false
	}
	if c.limit == 1 {
		c.up = true // there is no other direction
	}
	c.rate = rate
	if c.up {
		c.limit = min(c.limit+1, c.most)
	} else {
		c.limit = max(c.limit-1, 1)
	}
}
