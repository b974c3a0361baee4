package server

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"berth/api/intent"
)

// The time that a client has to send a body.
const (
	bodyTimeout  = 30 * time.Second // a JSON body, whole
	chunkTimeout = 30 * time.Second // the next bytes of a streamed one
)

// decode reads the JSON body of a request into out. It refuses the whole of it
// with every fault at once; faults of what the fields mean are the caller's,
// who passes f on to the checks of package intent for them. Of what is no JSON
// object nothing can be said about fields: that fault stands alone.
func (s *Server) decode(c *fiber.Ctx, out any, f *intent.FieldErrors) error {
	if err := checkMediaType(c); err != nil {
		return err
	}
	raw, err := s.bodies.read(c, int64(s.settings.Current().Server.BodyLimit))
	if err != nil {
		return err
	}
	if err := verify(s, c); err != nil {
		return err
	}
	if !s.bodies.unmarshal(raw, out, f) {
		return f.Err()
	}
	return nil
}

// decodeStrict is decode for a body whose fields need no further check.
func (s *Server) decodeStrict(c *fiber.Ctx, out any) error {
	var f intent.FieldErrors
	if err := s.decode(c, out, &f); err != nil {
		return err
	}
	return f.Err()
}

// checkMediaType refuses every encoding, and every type but JSON. None is JSON,
// and no body has no type.
func checkMediaType(c *fiber.Ctx) error {
	if c.Get(fiber.HeaderContentEncoding) != "" {
		return errMediaType
	}
	header := c.Get(fiber.HeaderContentType)
	if header == "" || c.Request().Header.ContentLength() == 0 {
		return nil
	}
	kind, params, err := mime.ParseMediaType(header)
	charset := strings.ToLower(params["charset"])
	if err != nil || kind != fiber.MIMEApplicationJSON || charset != "" && charset != "utf-8" {
		return errMediaType
	}
	return nil
}

// upload is a request's body for a handler that streams it. Its client has to
// go on sending: a pause longer than chunkTimeout is an error, and so is a rate
// below leastRate.
func upload(c *fiber.Ctx) io.Reader {
	stream := c.Context().RequestBodyStream()
	if stream == nil {
		return bytes.NewReader(nil)
	}
	return paced(time.Now, readerFunc(func(p []byte) (int, error) {
		if err := setReadDeadline(c, chunkTimeout); err != nil {
			return 0, err
		}
		n, err := stream.Read(p)
		switch {
		case isTimeout(err):
			err = errTimeout
		case err != nil && err != io.EOF: // chunks that are none, or a broken connection
			err = errMalformed
		}
		return n, err
	}))
}

type readerFunc func([]byte) (int, error)

// Read calls the function.
func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func isTimeout(err error) bool {
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout()
}

// The bounds of what is read and thrown away of a body that no handler wanted.
const (
	drainLimit   = 64 << 10 // bytes
	drainTimeout = time.Second
)

// drain makes sure that what is left of a body is not taken for the next
// request on the connection: it is read, or the connection ends. Where a body
// whose chunks are broken ends, nobody can say: fail has ended the connection.
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
	if own, is := c.Context().Conn().(*conn); is {
		own.linger.Store(true)
	}
}

// twoLengths says whether a body in chunks has a Content-Length as well: a proxy
// may have gone by that, and RFC 9112 wants the connection to end.
func twoLengths(c *fiber.Ctx) bool {
	header := &c.Request().Header
	return header.ContentLength() < 0 && bytes.Contains(bytes.ToLower(header.RawHeaders()), []byte("content-length:"))
}

// setReadDeadline gives the client some time for what it sends next.
func setReadDeadline(c *fiber.Ctx, d time.Duration) error {
	conn := c.Context().Conn()
	if conn == nil { // in a test without a network
		return nil
	}
	return conn.SetReadDeadline(time.Now().Add(d))
}
