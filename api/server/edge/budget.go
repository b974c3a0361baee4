package edge

import (
	"context"
	"sync"
)

// budget bounds the bytes that requests hold at once. Each minted token may hold
// a fourth of the total and all minted tokens together three fourths, so that the
// configured token always finds memory. The zero value is ready to use.
type budget struct {
	mu      sync.Mutex
	used    int64
	minted  int64            // part of used
	byToken map[string]int64 // of minted tokens, by id
	freed   chan struct{}    // closed by the next release; nil: no request waits
}

// reserve reserves n of total bytes for the token with this id; the configured
// token has the empty id. It waits until the bytes are free or ctx ends.
func (b *budget) reserve(ctx context.Context, token string, n, total int64) error {
	for {
		freed, ok := b.try(token, n, total)
		if ok {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-freed:
		}
	}
}

// try is like reserve but does not wait. If ok is false, another try may succeed
// once freed is closed.
func (b *budget) try(token string, n, total int64) (freed <-chan struct{}, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	most := total - b.used
	if token != "" {
		most = min(most, total/4-b.byToken[token], total/4*3-b.minted)
	}
	if n > most {
		if b.freed == nil {
			b.freed = make(chan struct{})
		}
		return b.freed, false
	}
	b.add(token, n)
	return nil, true
}

// release returns n reserved bytes and wakes all requests that wait.
func (b *budget) release(token string, n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.add(token, -n)
	if b.freed != nil {
		close(b.freed)
		b.freed = nil
	}
}

func (b *budget) add(token string, n int64) {
	b.used += n
	if token == "" {
		return
	}
	if b.byToken == nil {
		b.byToken = map[string]int64{}
	}
	b.minted += n
	if b.byToken[token] += n; b.byToken[token] == 0 {
		delete(b.byToken, token)
	}
}

// inUse returns the reserved bytes.
func (b *budget) inUse() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}
