package server

import (
	"encoding/json"
	"net/url"

	"github.com/gofiber/fiber/v2"
)

// reply answers with v as JSON.
func reply(c *fiber.Ctx, status int, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	c.Status(status)
	c.Set(fiber.HeaderContentType, fiber.MIMEApplicationJSON)
	return c.Send(body)
}

// ok answers 200 with v as JSON.
func ok(c *fiber.Ctx, v any) error { return reply(c, fiber.StatusOK, v) }

// param is a segment of the path, percent-decoded once. What cannot be decoded
// is empty, and no name is.
func param(c *fiber.Ctx, name string) string {
	text, err := url.PathUnescape(c.Params(name))
	if err != nil {
		return ""
	}
	return text
}
