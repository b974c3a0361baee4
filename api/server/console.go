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

// Limits on console lines and events that are read back.
const (
	defaultTail   = 150
	maxTail       = 10_000
	defaultEvents = 1000
	maxEvents     = 10_000
)

// consoles holds the handlers for consoles, statistics and events.
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

// line returns a command with exactly one line feed at its end.
func line(command string) []byte {
	return []byte(strings.TrimRight(command, "\r\n") + "\n")
}

// logs returns the handler for the history of one console; role is empty for the
// install and the server console together.
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

// intQuery returns a query parameter between 0 and most, or absent if it is missing.
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

// parseTime parses a time in RFC 3339 or Unix seconds. The empty text is the zero time.
func parseTime(text string) (time.Time, bool) {
	if text == "" {
		return time.Time{}, true
	}
	// The query decoder turned an unescaped plus sign into a space.
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
	Epoch  string     `json:"epoch"`  // of every seq in this answer
	Oldest uint64     `json:"oldest"` // seq of the oldest stored event; 0: none
	Newest uint64     `json:"newest"`
}

// listEvents answers with the stored transitions after ?since=. If some of them
// have been removed already, oldest is greater than since+1. If ?epoch= is not the
// epoch of this store, since has no meaning here and all stored transitions are
// returned.
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

// visibleEvents returns the first transitions after since that the caller may see.
func visibleEvents(tx *store.Tx, caller auth.Principal, since uint64, limit int) ([]v1.Event, error) {
	visible := []v1.Event{}
	for len(visible) < limit {
		list, err := readEvents(tx, since, max(limit, defaultEvents)) // the caller may see few of them
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

// keptEvents returns the seq of the oldest stored transition and that of the
// newest ever recorded. If none is stored, oldest is newest+1.
func keptEvents(tx *store.Tx) (oldest, newest uint64) {
	newest = store.LastEvent(tx)
	if oldest, _ = store.EventRange(tx); oldest == 0 {
		oldest = newest + 1
	}
	return oldest, newest
}

// readEvents returns at most limit transitions after since, from the oldest
// stored one on.
func readEvents(tx *store.Tx, since uint64, limit int) ([]v1.Event, error) {
	oldest, newest := keptEvents(tx)
	if since >= newest {
		return nil, nil
	}
	return store.ReadEvents(tx, max(since, oldest-1), limit)
}
