package backup

import (
	"context"
	"io"
	"sync"

	"golang.org/x/time/rate"

	v1 "berth/api/v1"
	"berth/store"
)

// checkBytes is how much of an archive is written between two comparisons with the limit of
// its target.
const checkBytes = 64 << 20

// space bounds the bytes of the archives of each target: of those that are stored, and of
// those that jobs write. It is safe for concurrent use.
type space struct {
	Options

	mu      sync.Mutex
	begun   int
	written map[string]*archive // by id of the backup, until its size is stored or it is gone
}

// archive is the archive of a job.
type archive struct {
	target         v1.Target
	number         int // in the order in which they began
	bytes, checked int64
}

func newSpace(o Options) *space { return &space{Options: o, written: map[string]*archive{}} }

// check returns the code BackupsFull if n more bytes do not fit into a target. For the archive of
// the backup id, those that began later do not count: of two that do not fit together the
// first is completed. For a moment an archive counts twice, after its size was stored: a backup at the limit may fail.
func (s *space) check(to v1.Target, id string, n int64) error {
	limit := s.Limits().MaxSizeOf(to)
	if limit <= 0 {
		return nil
	}
	used := n
	err := s.Store.View(func(tx *store.Tx) error {
		used += store.BackupTotals(tx)[to].Bytes
		return nil
	})
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	own := s.written[id]
	for _, a := range s.written {
		if a.target == to && (own == nil || a.number <= own.number) {
			used += a.bytes
		}
	}
	if used > limit {
		return v1.BackupsFullError(to)
	}
	return nil
}

// wrote counts n more bytes of the archive of a backup. It returns why no more may be written.
func (s *space) wrote(b v1.Backup, n int64) error {
	if err := s.Free(b.Spec.Target); err != nil {
		return err
	}
	if !s.count(b, n) {
		return nil
	}
	return s.check(b.Spec.Target, b.Meta.ID, 0)
}

// count counts n more bytes, and reports whether a check is due.
func (s *space) count(b v1.Backup, n int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.written[b.Meta.ID]
	if a == nil {
		s.begun++
		a = &archive{target: b.Spec.Target, number: s.begun}
		s.written[b.Meta.ID] = a
	}
	if a.bytes += n; a.bytes-a.checked < checkBytes {
		return false
	}
	a.checked = a.bytes
	return true
}

// release forgets the archive of a backup: its size is stored, or its bytes are gone.
func (s *space) release(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.written, id)
}

// burst is how many bytes may pass at once.
const burst = 256 << 10

// throttle limits the bytes of archives a second, of all jobs together.
type throttle struct {
	rate    func() int64 // 0: no limit
	limiter *rate.Limiter
}

func newThrottle(perSecond func() int64) throttle {
	return throttle{perSecond, rate.NewLimiter(rate.Inf, burst)}
}

// reader returns r with the limit.
func (t throttle) reader(ctx context.Context, r io.Reader) io.Reader {
	return &throttled{ctx.Err, func(n int64) error { return t.wait(ctx, n) }, r}
}

// wait waits until n bytes may pass, or ctx ends.
func (t throttle) wait(ctx context.Context, n int64) (err error) {
	for ; n > 0 && err == nil; n -= burst {
		err = t.waitBurst(ctx, int(min(n, burst)))
	}
	return err
}

func (t throttle) waitBurst(ctx context.Context, n int) error {
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
