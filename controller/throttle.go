package controller

import (
	"context"
	"io"

	"golang.org/x/time/rate"
)

// burst is how many bytes may pass at once.
const burst = 256 << 10

// Throttle limits the bytes a second of all that share it.
type Throttle struct {
	rate    func() int64 // 0: no limit
	limiter *rate.Limiter
}

// NewThrottle returns a Throttle; perSecond is called for each part, and 0 is no limit.
func NewThrottle(perSecond func() int64) Throttle {
	return Throttle{perSecond, rate.NewLimiter(rate.Inf, burst)}
}

// Reader returns r with the limit.
func (t Throttle) Reader(ctx context.Context, r io.Reader) io.Reader {
	return &throttled{ctx.Err, func(n int64) error { return t.Wait(ctx, n) }, r}
}

// Wait waits until n bytes may pass, or ctx ends.
func (t Throttle) Wait(ctx context.Context, n int64) (err error) {
	for ; n > 0 && err == nil; n -= burst {
		err = t.waitBurst(ctx, int(min(n, burst)))
	}
	return err
}

func (t Throttle) waitBurst(ctx context.Context, n int) error {
	limit := rate.Inf
	if perSecond := t.rate(); perSecond > 0 {
		limit = rate.Limit(perSecond)
	}
	if t.limiter.Limit() != limit { // the configuration was changed
		t.limiter.SetLimit(limit)
	}
	return t.limiter.WaitN(ctx, n)
}

type throttled struct {
	ended func() error
	wait  func(n int64) error
	r     io.Reader
}

// Read implements io.Reader.
func (t *throttled) Read(b []byte) (int, error) {
	if err := t.ended(); err != nil {
		return 0, err
	}
	n, err := t.r.Read(b[:min(len(b), burst)])
	if n > 0 {
		if waitErr := t.wait(int64(n)); waitErr != nil {
			return n, waitErr
		}
	}
	return n, err
}
