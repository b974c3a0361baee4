package download

import (
	v1 "berth/api/v1"
	"berth/store"
)

// setStatus changes the status of a download in an update. A change of the state emits an
// event.
func setStatus(tx *store.Tx, p v1.Pull, change func(s *v1.PullStatus)) error {
	return store.Pulls.SetStatus(tx, p.Meta.ID, func(s *v1.PullStatus) {
		before := s.State
		if change(s); s.State != before {
			store.Emit(tx, v1.Event{Event: v1.EventPull, Data: string(s.State), Pull: p.Meta.ID, Volume: p.Spec.VolumeID, Actor: actorOf(p.Spec, s.State)})
		}
	})
}

// actorOf returns who caused a state of a download.
func actorOf(s v1.PullSpec, state v1.PullState) v1.Actor {
	if state == v1.PullCancelled {
		return s.CancelledBy
	}
	return s.RequestedBy
}
