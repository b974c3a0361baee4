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

// Deadlines for a client that sends a body.
const (
	bodyTimeout  = 30 * time.Second // for a whole JSON body
	chunkTimeout = 30 * time.Second // for the next bytes of a streamed body
)

// decode reads the JSON body of a request into out and adds every field error to
// f. It returns nil even if f has errors: the caller lets package intent add its
// own to f, so that the client receives all of them at once. If the body is not a
// JSON object, decode returns that single error.
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

// decodeStrict decodes a body whose fields need no further validation, and
// returns its field errors.
func (s *Server) decodeStrict(c *fiber.Ctx, out any) error {
	var f intent.FieldErrors
	if err := s.decode(c, out, &f); err != nil {
		return err
	}
	return f.Err()
}

// checkMediaType returns errMediaType for a Content-Encoding and for a
// Content-Type other than JSON in UTF-8. It ignores the type of an empty body, and
// takes a body without a type for JSON.
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

// upload returns the body of a request as a stream. Read returns errTimeout if
// the client pauses for longer than chunkTimeout or sends more slowly than
// leastRate, and errMalformed if the connection or the chunked encoding breaks.
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
		case err != nil && err != io.EOF: // invalid chunked encoding, or a broken connection
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
	if own, is := c.Context().Conn().(*conn); is {
		own.linger.Store(true)
	}
}

// twoLengths reports whether a chunked request has a Content-Length as well. A
// proxy may have used either, so RFC 9112 requires the server to close the
// connection.
func twoLengths(c *fiber.Ctx) bool {
	header := &c.Request().Header
	return header.ContentLength() < 0 && bytes.Contains(bytes.ToLower(header.RawHeaders()), []byte("content-length:"))
}

// setReadDeadline sets the deadline for the client's next bytes to d from now.
func setReadDeadline(c *fiber.Ctx, d time.Duration) error {
	conn := c.Context().Conn()
	if conn == nil { // a test without a network
		return nil
	}
	return conn.SetReadDeadline(time.Now().Add(d))
}
