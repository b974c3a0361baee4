package edge

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"
)

// Deadlines for a client that sends a body.
const (
	bodyTimeout  = 30 * time.Second // for the first 8 KiB of a JSON body
	chunkTimeout = 30 * time.Second // for the next chunk of a streamed body
	slowTimeout  = 15 * time.Minute // for that of a SlowUpload
	chunk        = 60 << 10         // bytes: an upload that is slower than 2 KiB/s would hold its permit for days
)

// Upload returns the body of a request as a stream. Read returns the errors of
// stream, and io.ErrUnexpectedEOF if the body is shorter than announced; the HTTP
// library returns io.EOF then too.
func Upload(c *fiber.Ctx) io.Reader { return upload(c, chunkTimeout) }

// SlowUpload is Upload for a client that may compare millions of files before it sends the next one.
func SlowUpload(c *fiber.Ctx) io.Reader { return upload(c, slowTimeout) }

func upload(c *fiber.Ctx, wait time.Duration) io.Reader {
	body, left := stream(c, wait), int64(c.Request().Header.ContentLength())
	if left < 0 {
		return inChunks(c, body)
	}
	return readerFunc(func(p []byte) (int, error) {
		n, err := body.Read(p)
		left -= int64(n)
		if err == io.EOF && left > 0 {
			err = io.ErrUnexpectedEOF
		}
		return n, err
	})
}

// CheckNoForm refuses the body of an upload that is a form, whose parts and boundaries would become
// the file.
func CheckNoForm(c *fiber.Ctx) error {
	kind, _, _ := strings.Cut(c.Get(fiber.HeaderContentType), ";")
	if strings.EqualFold(strings.TrimSpace(kind), fiber.MIMEMultipartForm) {
		return errForm
	}
	return nil
}

// inChunks returns io.ErrUnexpectedEOF if a chunked body ends because the client
// closed the connection, instead of by its last chunk.
func inChunks(c *fiber.Ctx, body io.Reader) io.Reader {
	own := connOf(c)
	return readerFunc(func(p []byte) (int, error) {
		n, err := body.Read(p)
		if err == io.EOF && own.over.Load() {
			err = io.ErrUnexpectedEOF
		}
		return n, err
	})
}

// stream returns the body of a request. Read returns errTimeout if the client takes longer than
// wait for a chunk, and ErrMalformed if the connection or the chunked encoding breaks.
func stream(c *fiber.Ctx, wait time.Duration) io.Reader {
	body := c.Context().RequestBodyStream()
	if body == nil {
		return bytes.NewReader(nil)
	}
	return inTime(body, wait, func(d time.Duration) error { return setReadDeadline(c, d) })
}

// inTime returns body, and sets the deadline of each read: what the client takes for a chunk is
// bounded, and what the reader takes does not count.
func inTime(body io.Reader, each time.Duration, setDeadline func(time.Duration) error) io.Reader {
	wait, left := each, chunk // of the present chunk
	return readerFunc(func(p []byte) (int, error) {
		if err := setDeadline(wait); err != nil {
			return 0, err
		}
		began := time.Now()
		n, err := body.Read(p)
		wait -= time.Since(began)
		if left -= n; left <= 0 {
			wait, left = each, chunk
		}
		switch {
		case isTimeout(err):
			err = errTimeout
		case err != nil && err != io.EOF: // invalid chunked encoding, or a broken connection
			err = ErrMalformed
		}
		return n, err
	})
}

type readerFunc func([]byte) (int, error)

// Read calls the function.
func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func isTimeout(err error) bool {
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout()
}

// setReadDeadline sets the deadline for the client's next bytes to d from now.
func setReadDeadline(c *fiber.Ctx, d time.Duration) error {
	return c.Context().Conn().SetReadDeadline(time.Now().Add(d))
}

// Limits on reading and discarding the rest of a body that no handler read.
const (
	drainLimit   = 64 << 10 // bytes
	drainTimeout = time.Second
)

// drain keeps the rest of a body from being parsed as the next request on the
// connection: it discards the rest, or closes the connection if the rest is long.
// The end of a body with invalid chunked encoding is unknown; Server.Fail has marked its
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
	connOf(c).Linger()
}

// twoLengths reports whether a chunked request has a Content-Length as well. A
// proxy may have used either, so RFC 9112 requires the server to close the
// connection.
func twoLengths(c *fiber.Ctx) bool {
	header := &c.Request().Header
	return header.ContentLength() < 0 && bytes.Contains(bytes.ToLower(header.RawHeaders()), []byte("content-length:"))
}
