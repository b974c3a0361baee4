package server

import (
	"slices"
	"strconv"
	"strings"

	"github.com/gofiber/fiber/v2"

	"berth/api/auth"
	"berth/api/intent"
	"berth/api/server/edge"
	v1 "berth/api/v1"
	"berth/store"
)

// Limits on the number of events in an answer.
const (
	defaultEvents = 1000
	maxEvents     = 10_000
)

// eventKinds are the kinds of stored transitions.
var eventKinds = []string{v1.EventState, v1.EventMessage, v1.EventBackup, v1.EventRestore, v1.EventPull}

// events holds the handler for stored transitions.
type events struct{ store *store.Store }

type eventsBody struct {
	Events []v1.Event `json:"events"`
	Epoch  string     `json:"epoch"`  // of every seq in this answer
	Oldest uint64     `json:"oldest"` // seq of the oldest stored event; 0: none
	Newest uint64     `json:"newest"`
}

// list answers with the stored transitions after ?since= that match ?container=,
// ?volume= and ?type=. If some of them have been removed already, oldest is greater
// than since+1. If ?epoch= is not the epoch of this store, since has no meaning here
// and all stored transitions are returned.
func (s events) list(c *fiber.Ctx) error {
	limit, err := edge.QueryInt(c, "limit", defaultEvents, maxEvents)
	if err != nil {
		return err
	}
	since, _, err := seqQuery(c)
	if err != nil {
		return err
	}
	body := eventsBody{Events: []v1.Event{}, Epoch: s.store.Incarnations.Epoch()}
	if epoch := c.Query("epoch"); epoch != "" && epoch != body.Epoch {
		since = 0
	}
	if kind := c.Query("type"); kind != "" && !slices.Contains(eventKinds, kind) {
		return v1.Errorf(v1.InvalidRequest, "type: must be one of %s", strings.Join(eventKinds, ", "))
	}
	err = s.store.View(func(tx *store.Tx) error {
		matches, read, err := eventFilter(c, tx)
		if err != nil {
			return err
		}
		body.Oldest, body.Newest = store.KeptEvents(tx)
		if body.Oldest > body.Newest {
			body.Oldest = 0
		}
		body.Events, err = matchingEvents(read, callerOf(c), matches, since, limit)
		return err
	})
	if err != nil {
		return err
	}
	return edge.OK(c, body)
}

// eventFilter returns whether a transition matches a request: its caller may see it, and
// it has the requested container, type, and one of the containers that use the
// requested volume now. Read returns some transitions after a seq, those that match among
// them.
func eventFilter(c *fiber.Ctx, tx *store.Tx) (matches func(v1.Event) bool, read eventReader, err error) {
	caller, container, kind, volume := callerOf(c), c.Query("container"), c.Query("type"), c.Query("volume")
	var users []string
	if volume != "" {
		v, err := intent.FindVolume(tx, volume)
		if err != nil {
			return nil, read, err
		}
		volume, users = v.Meta.ID, store.Containers.IDsBy(tx, v.Meta.ID)
		if !caller.CanAccessAny(users) {
			return nil, read, v1.ErrVolumeNotFound
		}
	}
	read = eventReader{tx: tx, all: container == "" && volume == "", of: append(users, store.OfVolume(volume))}
	if container != "" {
		read.of = []string{container}
		if o, err := store.Containers.Get(tx, container); err == nil {
			read.of = append(read.of, store.OfVolume(o.Spec.VolumeID))
		}
	}
	return func(e v1.Event) bool {
		return caller.CanSee(e) && (kind == "" || e.Event == kind) &&
			(container == "" || e.Container == container || slices.Contains(e.UserIDs(), container)) &&
			(volume == "" || slices.Contains(users, e.Container) || e.Volume == volume)
	}, read, nil
}

// eventReader reads all transitions, or those of some containers and volumes.
type eventReader struct {
	tx  *store.Tx
	all bool
	of  []string
}

func (r eventReader) after(since uint64, limit int) ([]v1.Event, error) {
	if r.all {
		return store.ReadKeptEvents(r.tx, since, limit)
	}
	return store.ReadEventsOf(r.tx, r.of, since, limit)
}

// matchingEvents returns the first transitions after since that match, as the caller sees them.
func matchingEvents(read eventReader, caller auth.Principal, matches func(v1.Event) bool, since uint64, limit int) ([]v1.Event, error) {
	found := []v1.Event{}
	for len(found) < limit {
		list, err := read.after(since, max(limit, defaultEvents)) // few of them may match
		if err != nil || len(list) == 0 {
			return found, err
		}
		for _, e := range list {
			if since = e.Seq; len(found) < limit && matches(e) {
				e.Users = nil
				found = append(found, caller.Show(e))
			}
		}
	}
	return found, nil
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
