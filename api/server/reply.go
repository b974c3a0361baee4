package server

import (
	"bufio"
	"encoding/json"
	"fmt"
	"iter"
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

// streamed answers 200 with {"name": [...]}, written while the list is iterated:
// it may be very long.
func streamed[T any](c *fiber.Ctx, name string, list iter.Seq[T]) {
	c.Set(fiber.HeaderContentType, fiber.MIMEApplicationJSON)
	c.Context().SetBodyStreamWriter(func(w *bufio.Writer) { writeList(w, name, list) })
}

// writeList writes {"name": [...]}. It stops at an error of w, which the final
// Flush returns too.
func writeList[T any](w *bufio.Writer, name string, list iter.Seq[T]) {
	_, _ = fmt.Fprintf(w, `{%q:[`, name)
	first := true
	for one := range list {
		if !first {
			_ = w.WriteByte(',')
		}
		first = false
		text, _ := json.Marshal(one) // cannot fail: plain data
		if _, err := w.Write(text); err != nil {
			return
		}
	}
	_, _ = w.WriteString(`]}`)
}

// param returns a segment of the path, percent-decoded once. A segment that
// cannot be decoded becomes empty, which no name is.
func param(c *fiber.Ctx, name string) string {
	text, err := url.PathUnescape(c.Params(name))
	if err != nil {
		return ""
	}
	return text
}
