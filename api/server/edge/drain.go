package edge

import (
	"bytes"
	"io"
	"time"

	"github.com/gofiber/fiber/v2"
)

// Limits on reading and discarding the rest of a body that no handler read.
const (
	drainLimit   = 64 << 10 // bytes
	drainTimeout = time.Second
)

// drain keeps the rest of a body from being parsed as the next request on the
// connection: it discards the rest, or closes the connection if the rest is long.
// The end of a body with invalid chunked encoding is unknown; fail has marked its
// connection to be closed already.
func drain(c *fiber.Ctx) {
	stream := c.Context().RequestBodyStream()
	if stream == nil || c.Context().Hijacked() {
		return
	}
	whole := false
	if twoLengths(c) {
		c.Context().SetConnectionClose()
	}
	if !c.Context().Response.ConnectionClose() && c.Request().Header.ContentLength() <= drainLimit {
		_ = setReadDeadline(c, drainTimeout)
		n, err := io.Copy(io.Discard, io.LimitReader(stream, drainLimit+1))
		whole = n <= drainLimit && err == nil
	}
	if whole {
		return
	}
	c.Context().SetConnectionClose()
	if own := connOf(c); own != nil {
		own.SetLinger(true)
	}
}

// twoLengths reports whether a chunked request has a Content-Length as well. A
// proxy may have used either, so RFC 9112 requires the server to close the
// connection.
func twoLengths(c *fiber.Ctx) bool {
	header := &c.Request().Header
	return header.ContentLength() < 0 && bytes.Contains(bytes.ToLower(header.RawHeaders()), []byte("content-length:"))
}
