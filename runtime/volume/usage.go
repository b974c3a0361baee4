package volume

import (
	"context"
	"sync"
	"time"

	v1 "berth/api/v1"
)

// quota returns the quota of a volume.
func (m *Manager) quota(id string) *quota {
	m.mu.Lock()
	defer m.mu.Unlock()
	q := m.quotas[id]
	if q == nil {
		q = newQuota(func() { m.changes.add(id) })
		m.quotas[id] = q
	}
	return q
}

// SetLimit sets the volume's limit in bytes; 0 means none. last is the usage that
// was stored before a restart; it counts until the first scan.
func (m *Manager) SetLimit(id string, limit int64, last v1.Usage) { m.quota(id).SetLimit(limit, last) }

// Used returns the volume's usage as far as it is known without a scan.
func (m *Manager) Used(id string) v1.Usage { return m.quota(id).Used() }

// Unmeasured returns why the last scan of a volume did not measure the whole tree, a reason
// of v1.UsageMeasured; empty if it did.
func (m *Manager) Unmeasured(id string) string { return m.quota(id).Unmeasured() }

// newReservation returns an empty reservation in the volume's quota and the host's
// free space. credit is how many bytes the operation frees when it completes.
func (vol *openVolume) newReservation(credit int64) *reservation {
	return newReservation(vol.quota, vol.space, credit)
}

// gatherTime is how long Changed collects changes before it reports them.
const gatherTime = time.Second

// changes holds the volumes whose usage changed since take was called last.
type changes struct {
	mu   sync.Mutex
	ids  map[string]bool
	wake chan struct{} // has room for one value
}

func newChanges() *changes { return &changes{ids: map[string]bool{}, wake: make(chan struct{}, 1)} }

func (c *changes) add(id string) {
	c.mu.Lock()
	c.ids[id] = true
	c.mu.Unlock()
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

func (c *changes) take() map[string]bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	ids := c.ids
	c.ids = map[string]bool{}
	return ids
}

// Changed calls notify for each volume whose usage changed, within about a second
// of the change, until ctx ends. Only one goroutine may call it at a time.
func (m *Manager) Changed(ctx context.Context, notify func(id string)) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-m.changes.wake:
		}
		wait := time.NewTimer(gatherTime)
		select {
		case <-ctx.Done():
			wait.Stop()
			return nil
		case <-wait.C:
		}
		for id := range m.changes.take() {
			notify(id)
		}
	}
}
