package volume

import (
	"context"
	"time"
)

// gatherTime is how long Changed collects changes before it reports them.
const gatherTime = time.Second

// changed records that the usage of a volume changed.
func (m *Manager) changed(id string) {
	m.mu.Lock()
	m.changedIDs[id] = true
	m.mu.Unlock()
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// Changed calls notify for each volume whose usage changed, within about a second
// of the change, until ctx ends. Only one goroutine may call it at a time.
func (m *Manager) Changed(ctx context.Context, notify func(id string)) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-m.wake:
		}
		wait := time.NewTimer(gatherTime)
		select {
		case <-ctx.Done():
			wait.Stop()
			return nil
		case <-wait.C:
		}
		for id := range m.takeChanged() {
			notify(id)
		}
	}
}

func (m *Manager) takeChanged() map[string]bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	ids := m.changedIDs
	m.changedIDs = map[string]bool{}
	return ids
}
