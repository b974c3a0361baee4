package stream

import (
	"context"

	"berth/store"
)

// Pump publishes and logs each transition that is stored from now on, until ctx ends. Where
// it has to leave some out, every listener ends with ErrSlow, for its client to
// read them from the store. Its error is that of a store that cannot be read.
func (h *Hub) Pump(ctx context.Context, s *store.Store) error {
	transitions := newTransitionLog(h.log)
	for ctx.Err() == nil {
		newest, err := lastEvent(s)
		if err != nil {
			return err
		}
		h.Missed() // nobody here receives what was stored up to newest
		for e, err := range s.Events(ctx, newest) {
			if err != nil {
				h.log.Error("transitions were not published; sockets are closed, and their clients resume", "after", newest, "err", err)
				break
			}
			newest = e.Seq
			h.Event(e)
			transitions.write(e)
		}
	}
	return nil
}

func lastEvent(s *store.Store) (seq uint64, err error) {
	err = s.View(func(tx *store.Tx) error {
		seq = store.LastEvent(tx)
		return nil
	})
	return seq, err
}
