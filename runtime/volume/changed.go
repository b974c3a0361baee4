package volume

import (
	"context"
	"time"
)

// settleTime is how long changes of a volume's use are gathered.
const settleTime = time.Second

// changed notes that what a volume uses has changed.
func (m *Manager) changed(id string) {
	m.mu.Lock()
	m.news[id] = true
	m.mu.Unlock()
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// Changed names the volumes whose use has changed, within about a second, until
// ctx ends. One caller at a time is told.
func (m *Manager) Changed(ctx context.Context, notify func(id string)) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-m.wake:
		}
		wait := time.NewTimer(settleTime)
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
	news := m.news
	m.news = map[string]bool{}
	return news
}
