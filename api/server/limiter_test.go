package server

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"berth/api/server/edge"
	v1 "berth/api/v1"
)

// queued requests a permit, and returns once the request is queued.
func (l *limiter) queued(t *testing.T, ctx context.Context, volume, token string) <-chan func() {
	t.Helper()
	l.mu.Lock()
	before := len(l.queue)
	l.mu.Unlock()
	got := make(chan func(), 1)
	go func() {
		defer close(got)
		if leave, err := l.enter(ctx, volume, token); err == nil {
			got <- leave
		}
	}()
	require.Eventually(t, func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return len(l.queue) == before+1
	}, 10*time.Second, time.Millisecond)
	return got
}

func (l *limiter) must(t *testing.T, volume, token string) func() {
	t.Helper()
	leave, err := l.enter(t.Context(), volume, token)
	require.NoError(t, err)
	return leave
}

func (l *limiter) empty(t *testing.T) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	require.Empty(t, l.by)
	require.Empty(t, l.queue)
	require.Zero(t, l.used)
}

func TestLimiter(t *testing.T) {
	l := newLimiter(limits{total: 3, perVolume: 2, perToken: 1, waiting: 1})
	ctx := t.Context()
	a, b := l.must(t, "v", ""), l.must(t, "v", "")
	third := l.queued(t, ctx, "v", "")
	_, err := l.enter(ctx, "v", "")
	require.ErrorIs(t, err, error(edge.ErrOperations), "the places are bounded")
	c := l.must(t, "w", "t")
	ofToken := l.queued(t, ctx, "x", "t")
	other := l.queued(t, ctx, "y", "")

	a()
	a() // again does nothing
	leave := <-third
	b()
	(<-other)() // the token's is before it, and may not yet
	select {
	case <-ofToken:
		t.Fatal("one more than its token may have")
	default:
	}
	c()
	(<-ofToken)()
	leave()
	l.empty(t)
}

func TestLimiterForgetsCanceledRequests(t *testing.T) {
	l := newLimiter(limits{total: 1, perVolume: 1, perToken: 1, waiting: 8})
	first := l.must(t, "v", "t")
	ctx, leave := context.WithCancel(t.Context())
	gone := l.queued(t, ctx, "v", "t")
	last := l.queued(t, t.Context(), "v", "t")
	leave()
	_, granted := <-gone
	require.False(t, granted)
	first()
	(<-last)()
	l.empty(t)
}

// TestLimiterConcurrently begins and ends many requests in any order.
func TestLimiterConcurrently(t *testing.T) {
	l := newLimiter(limits{total: 4, perVolume: 2, perToken: 2, waiting: 1000})
	var all, most atomic.Int64
	var volumes [3]atomic.Int64
	var group sync.WaitGroup
	for i := range 600 {
		group.Go(func() {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if i%5 == 0 {
				go cancel()
			}
			v := i % len(volumes)
			leave, err := l.enter(ctx, fmt.Sprint(v), "")
			defer leave()
			if err != nil {
				return
			}
			most.Store(max(most.Load(), all.Add(1), 2+volumes[v].Add(1)))
			volumes[v].Add(-1)
			all.Add(-1)
		})
	}
	group.Wait()
	require.LessOrEqual(t, most.Load(), int64(4))
	l.empty(t)
}

// heldFiles is a Files whose operations block until they are released.
type heldFiles struct {
	Files
	begun   chan string
	release chan struct{}
}

func (f *heldFiles) hold(ctx context.Context, name string) error {
	f.begun <- name
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-f.release:
		return nil
	}
}

func (f *heldFiles) Compress(ctx context.Context, _ string, _ v1.Compression) (v1.Archive, error) {
	return v1.Archive{}, f.hold(ctx, "compress")
}

func (f *heldFiles) Decompress(ctx context.Context, _, _, _ string) error {
	return f.hold(ctx, "decompress")
}

func (f *heldFiles) Copy(ctx context.Context, _, _, _ string) error { return f.hold(ctx, "copy") }

func (f *heldFiles) Search(ctx context.Context, _, _, _ string) (v1.SearchResult, error) {
	return v1.SearchResult{Files: []v1.FoundFile{}}, f.hold(ctx, "search")
}

// Write does not wait.
func (f *heldFiles) Write(context.Context, string, string, io.Reader) error { return nil }

// TestExpensiveOperations: two of a volume run at once, some are queued, and the
// others are refused. Other operations and other volumes are not affected.
func TestExpensiveOperations(t *testing.T) {
	calls := map[string]request{
		"compress":   {method: "POST", path: "compress", body: `{"output_name":"x"}`},
		"decompress": {method: "POST", path: "decompress", body: `{"archive_path":"x","destination":"y"}`},
		"copy":       {method: "POST", path: "copy", body: `{"source":"x","destination":"y"}`},
		"search":     {method: "GET", path: "files/search?query=x"},
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			f := &heldFiles{begun: make(chan string, 100), release: make(chan struct{})}
			h := newHarnessWith(t, func(d *Deps) { d.Files = f })
			id, other := h.volume(), h.volume()
			l := h.server.handlers.files.permits.walks
			if strings.HasSuffix(name, "compress") {
				l = h.server.handlers.files.permits.archives
			}
			on := func(volume string) request {
				r := call
				r.path = "/volumes/" + volume + "/" + call.path
				return r
			}
			answers := make(chan answer, 100)
			many := l.limits.perVolume + l.limits.waiting
			for range many {
				go func() { answers <- h.do(on(id)) }()
			}
			require.Eventually(t, func() bool {
				l.mu.Lock()
				defer l.mu.Unlock()
				return len(l.queue) == l.limits.waiting
			}, 10*time.Second, time.Millisecond)
			require.Len(t, f.begun, l.limits.perVolume)
			a := h.do(on(id))
			require.Equal(t, "429 too_many_operations 5", fmt.Sprint(a.status, " ", a.header.Get("X-Error-Code"), " ", a.header.Get("Retry-After")))
			require.Equal(t, 200, h.do(request{method: "POST", path: "/volumes/" + id + "/files", body: `{"path":"x","content":""}`}).status)
			go func() { answers <- h.do(on(other)) }()
			for range l.limits.perVolume + 1 {
				<-f.begun
			}
			close(f.release)
			for range many + 1 {
				require.Equal(t, 200, (<-answers).status)
			}
			l.empty(t)
			h.server.handlers.files.permits.files.empty(t)
		})
	}
}
