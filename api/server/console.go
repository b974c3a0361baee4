package server

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"berth/api/auth"
	v1 "berth/api/v1"
	"berth/store"
)

// The bounds of what is read back.
const (
	defaultTail   = 150
	maxTail       = 10_000
	defaultEvents = 1000
	maxEvents     = 10_000
)

// consoles answers what containers print, use and have gone through.
type consoles struct{ *Server }

func (s consoles) routes() []route {
	return []route{
		post("/containers/:id/command", v1.ScopeConsole, s.sendCommand),
		get("/containers/:id/logs", v1.ScopeRead, s.logs("")),
		get("/containers/:id/install-logs", v1.ScopeRead, s.logs(v1.InstallConsole)),
		get("/containers/:id/stats", v1.ScopeRead, s.getStats),
		get("/events", v1.ScopeRead, s.listEvents),
	}
}

func (s consoles) sendCommand(c *fiber.Ctx) error {
	var body struct {
		Command string `json:"command" wire:"required"`
	}
	if err := s.decodeStrict(c, &body); err != nil {
		return err
	}
	o, err := s.findContainer(c)
	if err != nil {
		return err
	}
	if s.deps.Console == nil {
		return errUnavailable
	}
	ctx, cancel := context.WithTimeout(context.Background(), commandTimeout)
	defer cancel()
	if err := s.deps.Console.Send(ctx, o.Meta.ID, line(body.Command)); err != nil {
		return err
	}
	return ok(c, acceptedBody{"Command sent", o.Meta.ID})
}

// line is a command as a console reads it.
func line(command string) []byte {
	return []byte(strings.TrimRight(command, "\r\n") + "\n")
}

// logs is the handler of the history of one console, or of both.
func (s consoles) logs(role string) fiber.Handler {
	return func(c *fiber.Ctx) error {
		tail, err := intQuery(c, "tail", defaultTail, maxTail)
		if err != nil {
			return err
		}
		since, isTime := parseTime(c.Query("since"))
		if !isTime {
			return v1.Errorf(v1.InvalidRequest, "since: must be a time (RFC 3339, or unix seconds)")
		}
		o, err := s.findContainer(c)
		if err != nil {
			return err
		}
		return s.sendLogs(c, o, role, tail, since)
	}
}

// intQuery is a parameter between 0 and most.
func intQuery(c *fiber.Ctx, name string, absent, most int) (int, error) {
	text := c.Query(name)
	if text == "" {
		return absent, nil
	}
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil || int(n) > most {
		return 0, v1.Errorf(v1.InvalidRequest, "%s: must be a number between 0 and %d", name, most)
	}
	return int(n), nil
}

// seqQuery is the parameter since of events; given says whether it is there.
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

// parseTime reads a time: RFC 3339, or unix seconds. None is the beginning.
func parseTime(text string) (time.Time, bool) {
	if text == "" {
		return time.Time{}, true
	}
	// A plus sign that was not escaped in the URL has become a blank.
	at, err := time.Parse(time.RFC3339Nano, strings.ReplaceAll(text, " ", "+"))
	if err == nil {
		return at, true
	}
	seconds, err := strconv.ParseInt(text, 10, 40)
	return time.Unix(seconds, 0), err == nil && seconds >= 0
}

func (s consoles) getStats(c *fiber.Ctx) error {
	o, err := s.findContainer(c)
	if err != nil {
		return err
	}
	if s.deps.Stats == nil {
		return errUnavailable
	}
	ctx, cancel := context.WithTimeout(context.Background(), commandTimeout)
	defer cancel()
	stats, err := s.deps.Stats.Stats(ctx, o.Meta.ID)
	if err != nil {
		return err
	}
	return ok(c, stats)
}

type eventsBody struct {
	Events []v1.Event `json:"events"`
	Epoch  string     `json:"epoch"`  // what every seq here is counted in
	Oldest uint64     `json:"oldest"` // seq of the oldest that is kept; 0: none
	Newest uint64     `json:"newest"`
}

// listEvents returns the stored transitions after ?since=. What is older than
// kept is left out: then oldest is more than since+1. A since of another ?epoch=
// is a number of another count: then all that are kept are returned.
func (s consoles) listEvents(c *fiber.Ctx) error {
	limit, err := intQuery(c, "limit", defaultEvents, maxEvents)
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
		body.Oldest, body.Newest = keptEvents(tx)
		if body.Oldest > body.Newest {
			body.Oldest = 0
		}
		body.Events, err = visibleEvents(tx, caller, since, limit)
		return err
	})
	if err != nil {
		return err
	}
	return ok(c, body)
}

// visibleEvents are the first transitions after since that the caller may see.
func visibleEvents(tx *store.Tx, caller auth.Principal, since uint64, limit int) ([]v1.Event, error) {
	visible := []v1.Event{}
	for len(visible) < limit {
		list, err := readEvents(tx, since, max(limit, defaultEvents)) // few may be visible
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

// keptEvents is the seqs of the oldest transition that is kept and of the newest
// that there ever was. Where none is kept, oldest is the one after newest.
func keptEvents(tx *store.Tx) (oldest, newest uint64) {
	newest = store.LastEvent(tx)
	if oldest, _ = store.EventRange(tx); oldest == 0 {
		oldest = newest + 1
	}
	return oldest, newest
}

// readEvents is store.ReadEvents from the oldest on that is kept.
func readEvents(tx *store.Tx, since uint64, limit int) ([]v1.Event, error) {
	oldest, newest := keptEvents(tx)
	if since >= newest {
		return nil, nil
	}
	return store.ReadEvents(tx, max(since, oldest-1), limit)
}
