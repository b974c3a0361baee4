package stream

import v1 "berth/api/v1"

// Event publishes a stored transition to the listeners of its container, or of the
// containers that use its volume, and to the node-wide ones. It never waits. The caller publishes events in the order of their
// sequence numbers.
func (h *Hub) Event(e v1.Event) {
	list := listenersOf(h, append(e.UserIDs(), e.Container)...)
	if len(list) == 0 {
		return
	}
	q := &queued{
		at:       e.Time,
		msg:      Message{Event: e.Event, Seq: e.Seq, JSON: EncodeEvent(e, false), Transition: &e},
		nodeWide: Message{Event: e.Event, Seq: e.Seq, JSON: EncodeEvent(e, true), Transition: &e},
	}
	for _, l := range list {
		l.putEvent(q)
	}
}

// Stats publishes a sample to the listeners of its container and to the node-wide
// ones. It never waits. A sample that is still queued is replaced by the next one.
func (h *Hub) Stats(id string, s v1.Stats) {
	list := listenersOf(h, id)
	if len(list) == 0 {
		return
	}
	now := h.options.Now()
	q := &queued{
		at:       now,
		msg:      Message{Event: EventStats, JSON: EncodeStats("", s, now)},
		nodeWide: Message{Event: EventStats, JSON: EncodeStats(id, s, now)},
	}
	for _, l := range list {
		l.putStats(id, q)
	}
}
