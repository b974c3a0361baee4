package stream

import v1 "berth/api/v1"

// Event hands a stored transition to who listens to its container and to all.
// It never waits. Events are published in the order of their numbers.
func (h *Hub) Event(e v1.Event) {
	list := h.audience(e.Container)
	if len(list) == 0 {
		return
	}
	q := &queued{
		at:   e.Time,
		msg:  Message{Event: e.Event, Seq: e.Seq, JSON: EncodeEvent(e, false)},
		wide: Message{Event: e.Event, Seq: e.Seq, JSON: EncodeEvent(e, true)},
	}
	for _, l := range list {
		l.putEvent(q)
	}
}

// Stats hands a sample to who listens. It never waits; a sample that is not
// fetched before the next one is replaced by it.
func (h *Hub) Stats(id string, s v1.Stats) {
	list := h.audience(id)
	if len(list) == 0 {
		return
	}
	now := h.options.Now()
	q := &queued{
		at:   now,
		msg:  Message{Event: EventStats, JSON: EncodeStats("", s, now)},
		wide: Message{Event: EventStats, JSON: EncodeStats(id, s, now)},
	}
	for _, l := range list {
		l.putStats(id, q)
	}
}
