package server

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"berth/api/server/edge"
	"berth/api/server/ws"
	"berth/api/stream"
	v1 "berth/api/v1"
	"berth/store"
)

// consoles holds the handlers for consoles and resource usage.
type consoles struct {
	store     *store.Store
	hub       *stream.Hub
	decoder   decoder
	sessions  sessions
	processes processes
}

func (s consoles) command(c *fiber.Ctx) error {
	var body struct {
		Command string `json:"command" wire:"required"`
	}
	if err := s.decoder.decodeStrict(c, &body); err != nil {
		return err
	}
	o, err := findContainer(c, s.store)
	if err != nil {
		return err
	}
	if err := s.processes.Command(context.Background(), o.Meta.ID, body.Command); err != nil {
		return err
	}
	return edge.OK(c, acceptedBody{"Command sent", o.Meta.ID})
}

// logs returns the handler for the history of one console; role is empty for the
// install and the server console together.
func (s consoles) logs(role string) fiber.Handler {
	return func(c *fiber.Ctx) error {
		tail, err := edge.QueryInt(c, "tail", ws.DefaultTail, ws.MaxTail)
		if err != nil {
			return err
		}
		since, isTime := parseTime(c.Query("since"))
		if !isTime {
			return v1.Errorf(v1.InvalidRequest, "since: must be a time (RFC 3339, or unix seconds)")
		}
		o, err := findContainer(c, s.store)
		if err != nil {
			return err
		}
		return s.sendLogs(c, o, role, tail, since)
	}
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

func (s consoles) stats(c *fiber.Ctx) error {
	o, err := findContainer(c, s.store)
	if err != nil {
		return err
	}
	stats, err := s.processes.Stats(context.Background(), o.Meta.ID)
	if err != nil {
		return err
	}
	return edge.OK(c, stats)
}
