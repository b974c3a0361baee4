package server

import (
	"strconv"

	"github.com/gofiber/fiber/v2"

	"berth/api/auth"
	"berth/api/server/edge"
	"berth/api/server/ws"
	v1 "berth/api/v1"
	"berth/store"
)

// Limits on the number of events in an answer.
const (
	defaultEvents = 1000
	maxEvents     = 10_000
)

// events holds the handler for stored transitions.
type events struct{ store *store.Store }

type eventsBody struct {
	Events []v1.Event `json:"events"`
	Epoch  string     `json:"epoch"`  // of every seq in this answer
	Oldest uint64     `json:"oldest"` // seq of the oldest stored event; 0: none
	Newest uint64     `json:"newest"`
}

// list answers with the stored transitions after ?since=. If some of them
// have been removed already, oldest is greater than since+1. If ?epoch= is not the
// epoch of this store, since has no meaning here and all stored transitions are
// returned.
func (s events) list(c *fiber.Ctx) error {
	limit, err := edge.QueryInt(c, "limit", defaultEvents, maxEvents)
	if err != nil {
		return err
	}
	since, _, err := seqQuery(c)
	if err != nil {
		return err
	}
	body := eventsBody{Events: []v1.Event{}, Epoch: s.store.History.Epoch()}
	if epoch := c.Query("epoch"); epoch != "" && epoch != body.Epoch {
		since = 0
	}
	caller := callerOf(c)
	err = s.store.View(func(tx *store.Tx) error {
		body.Oldest, body.Newest = ws.EventRange(tx)
		if body.Oldest > body.Newest {
			body.Oldest = 0
		}
		body.Events, err = visibleEvents(tx, caller, since, limit)
		return err
	})
	if err != nil {
		return err
	}
	return edge.OK(c, body)
}

// visibleEvents returns the first transitions after since that the caller may see.
func visibleEvents(tx *store.Tx, caller auth.Principal, since uint64, limit int) ([]v1.Event, error) {
	visible := []v1.Event{}
	for len(visible) < limit {
		list, err := ws.ReadEvents(tx, since, max(limit, defaultEvents)) // the caller may see few of them
		if err != nil || len(list) == 0 {
			return visible, err
		}
		for _, e := range list {
			if since = e.Seq; caller.CanSee(e) && len(visible) < limit {
				visible = append(visible, e)
			}
		}
	}
	return visible, nil
}

// seqQuery returns the query parameter since, the seq of an event. given reports
// whether it is present.
func seqQuery(c *fiber.Ctx) (seq uint64, given bool, err error) {
	text := c.Query("since")
	if text == "" {
		return 0, false, nil
	}
	seq, err = strconv.ParseUint(text, 10, 63)
	if err != nil {
		return 0, false, v1.Errorf(v1.InvalidRequest, "since: must be the seq of an event")
	}
	return seq, true, nil
}
