package server

import (
	"context"
	"sync"
)

// budget bounds the bytes that requests hold at once. Of its total a minted
// token may hold a fourth, and all of them three fourths: neither can keep the
// panel from its work. The zero value is ready to use.
type budget struct {
	mu      sync.Mutex
	used    int64
	minted  int64            // part of used
	byToken map[string]int64 // of minted tokens, by id
	freed   chan struct{}    // closed when some are given back; nil: nobody waits
}

// reserve takes n bytes out of total for a token, the configured one if it is
// empty. It waits for them until ctx ends.
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

// try is reserve without waiting. If it fails, freed is closed once another try
// may succeed.
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

// release gives back what was reserved.
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
