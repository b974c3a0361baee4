package server

import (
	"iter"
	"slices"
	"strconv"
	"strings"

	"berth/api/auth"
	"berth/api/intent"
	"berth/api/limit"
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
var eventKinds = []string{v1.EventState, v1.EventMessage, v1.EventBackup, v1.EventRestore, v1.EventPull, v1.EventSchedule, v1.EventTransfer}

// events holds the handler for stored transitions.
type events struct {
	store *store.Store
	scans *limit.Slots // reads of more transitions than they return
}

// logRange is the part of a log that a request asks for.
type logRange struct {
	since    uint64
	limit    int
	backward bool // the last ones
}

// rangeOf returns the part of the query parameters since and limit, or last.
func rangeOf(c *call) (r logRange, err error) {
	if r.backward = c.Query("last") != ""; r.backward {
		if c.Query("since")+c.Query("epoch")+c.Query("limit") != "" {
			return r, v1.Errorf(v1.InvalidRequest, "last: must be without since, epoch and limit")
		}
		r.limit, err = edge.QueryInt(c.Ctx, "last", 0, maxEvents)
		return r, err
	}
	if r.limit, err = edge.QueryInt(c.Ctx, "limit", defaultEvents, maxEvents); err != nil {
		return r, err
	}
	r.since, _, err = seqQuery(c)
	return r, err
}

// list answers with the stored transitions after ?since=, or with the last ones, that match
// ?container=, ?volume= and ?type=. If some of them have been removed already, oldest is greater
// than since+1. If ?epoch= is not the epoch of this store, since has no meaning here
// and all stored transitions are returned.
func (s events) list(c *call) (v1.EventList, error) {
	r, err := rangeOf(c)
	if err != nil {
		return v1.EventList{}, err
	}
	body := v1.EventList{Events: []v1.Event{}, Epoch: s.store.Incarnations.Epoch()}
	if epoch := c.Query("epoch"); epoch != "" && epoch != body.Epoch {
		r.since = 0
	}
	if kind := c.Query("type"); kind != "" && !slices.Contains(eventKinds, kind) {
		return v1.EventList{}, v1.Errorf(v1.InvalidRequest, "type: must be one of %s", strings.Join(eventKinds, ", "))
	}
	leave, err := s.permit(c, r.since)
	if err != nil {
		return v1.EventList{}, err
	}
	defer leave()
	err = s.store.ViewEvents(func(tx *store.Tx) error {
		matches, err := eventFilter(c, tx)
		if err != nil {
			return err
		}
		body.Oldest, body.Newest = tx.EventBounds()
		since := max(r.since, body.Oldest-1)
		switch {
		case r.backward:
			body.Events, err = matchingEvents(tx.EventsBackward(), c.caller, matches, r.limit)
			slices.Reverse(body.Events)
		case since < body.Newest:
			body.Events, err = matchingEvents(tx.Events(since), c.caller, matches, r.limit)
		}
		if body.Oldest > body.Newest {
			body.Oldest = 0
		}
		return err
	})
	return body, err
}

// permit waits for the permit that a request needs that may read more transitions than an
// answer has. The queue is one for each token.
func (s events) permit(c *call, since uint64) (leave func(), err error) {
	caller := c.caller
	filtered := c.Query("type") != "" || caller.Restricted()
	if !filtered && c.Query("container")+c.Query("volume") != "" {
		filtered = s.far(since)
	}
	if !filtered {
		return func() {}, nil
	}
	return c.enter(s.store, caller.Root(), s.scans)
}

// far reports whether more transitions were stored after since than an answer has.
func (s events) far(since uint64) bool {
	oldest, newest := s.store.Read().EventBounds()
	return max(since, oldest-1)+maxEvents < newest
}

// eventFilter returns whether a transition matches a request: its caller may see it, and
// it has the requested container, type, and one of the containers that use the
// requested volume now.
func eventFilter(c *call, tx *store.Tx) (matches func(v1.Event) bool, err error) {
	caller, container, kind, volume := c.caller, c.Query("container"), c.Query("type"), c.Query("volume")
	var users []string
	if volume != "" {
		v, err := intent.FindVolume(tx, volume)
		if err != nil {
			return nil, err
		}
		volume, users = v.Meta.ID, store.Containers.IDsBy(tx, v.Meta.ID)
		if !caller.CanAccessAny(users) {
			return nil, v1.ErrVolumeNotFound
		}
	}
	return func(e v1.Event) bool {
		return caller.CanSee(e) && (kind == "" || e.Event == kind) &&
			(container == "" || e.Container == container || slices.Contains(e.UserIDs(), container)) &&
			(volume == "" || slices.Contains(users, e.Container) || e.Volume == volume)
	}, nil
}

// matchingEvents returns the first of some transitions that match, as the caller sees them.
func matchingEvents(all iter.Seq2[v1.Event, error], caller auth.Principal, matches func(v1.Event) bool, limit int) ([]v1.Event, error) {
	found := []v1.Event{}
	if limit == 0 {
		return found, nil
	}
	for e, err := range all {
		if err != nil {
			return found, err
		}
		if !matches(e) {
			continue
		}
		e.Users = nil
		if found = append(found, caller.Show(e)); len(found) == limit {
			break
		}
	}
	return found, nil
}

// seqQuery returns the query parameter since, the seq of an event. given reports
// whether it is present.
func seqQuery(c *call) (seq uint64, given bool, err error) {
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
