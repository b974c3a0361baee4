package edge

import (
	"bytes"
	"context"
	"io"
	"mime"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	v1 "berth/api/v1"
)

// Limits on all JSON bodies together.
const (
	bodiesTotal = 32 << 20        // bytes at once; more where one body may have more than a fourth
	bodyFree    = 8 << 10         // bytes of each body that need no reservation: the HTTP library buffers as many anyway
	bodyWait    = 5 * time.Second // for other requests to release memory
	decodersMax = 4               // bodies decoded at once: the errors of an invalid body are larger than the body
)

// Bodies reads JSON bodies and bounds the memory that all of them use together.
type Bodies struct {
	budget   budget
	disk     budget        // for content that is spooled, see ReadContent
	dir      string        // of spooled content
	patience time.Duration // how long a request waits for memory
	decoding chan struct{}
}

// NewBodies returns a Bodies. Content is spooled to files in dir; the empty string
// means os.TempDir().
func NewBodies(dir string) *Bodies {
	return &Bodies{dir: dir, patience: bodyWait, decoding: make(chan struct{}, decodersMax)}
}

// Reserved returns the bytes of memory and of disk space that requests hold.
func (b *Bodies) Reserved() (memory, disk int64) { return b.budget.inUse(), b.disk.inUse() }

// reservation is the part of a budget that one request holds.
type reservation struct {
	budget *budget
	token  string
	n      int64 // bytes
}

// release returns the bytes to the budget. A nil reservation holds none.
func (r *reservation) release() {
	if r != nil {
		r.budget.release(r.token, r.n)
	}
}

// Read reads the JSON body of a request, of at most limit bytes. The middleware
// observe releases its reservation when the request ends.
func (b *Bodies) Read(c *fiber.Ctx, limit int64) ([]byte, error) {
	if err := checkMediaType(c); err != nil {
		return nil, err
	}
	length := int64(c.Request().Header.ContentLength())
	if length > limit {
		return nil, errTooLarge
	}
	stream := c.Context().RequestBodyStream()
	if stream == nil {
		return nil, nil
	}
	if err := setReadDeadline(c, bodyTimeout); err != nil {
		return nil, err
	}
	var raw bytes.Buffer
	_, err := raw.ReadFrom(io.LimitReader(stream, bodyFree))
	if err == nil && raw.Len() == bodyFree {
		if length < 0 { // chunked: the length is unknown
			length = limit
		}
		if err := b.reserve(c, length, limit); err != nil {
			return nil, err
		}
		if err := setReadDeadline(c, bodyTimeout); err != nil {
			return nil, err
		}
		raw.Grow(int(length-bodyFree) + bytes.MinRead)
		_, err = raw.ReadFrom(io.LimitReader(stream, limit+1-bodyFree))
	}
	switch {
	case int64(raw.Len()) > limit:
		return nil, errTooLarge
	case isTimeout(err):
		return nil, errTimeout
	case err != nil:
		return nil, ErrMalformed
	}
	return raw.Bytes(), nil
}

// reserve reserves n bytes until the request ends. most is the largest
// reservation that any one request can need.
func (b *Bodies) reserve(c *fiber.Ctx, n, most int64) error {
	r := &reservation{budget: &b.budget, token: tenantOf(c), n: n}
	if err := b.wait(c, r, max(bodiesTotal, 4*most)); err != nil {
		return err
	}
	c.Locals(bodyKey, r)
	return nil
}

// wait waits until r fits into a budget of total bytes. It returns errBusy after
// b.patience, and also when the client leaves or the server shuts down.
func (b *Bodies) wait(c *fiber.Ctx, r *reservation, total int64) error {
	if _, ok := r.budget.try(r.token, r.n, total); ok {
		return nil
	}
	ctx, cancel := Context(c)
	defer cancel()
	ctx, done := context.WithTimeout(ctx, b.patience)
	defer done()
	if r.budget.reserve(ctx, r.token, r.n, total) != nil {
		return errBusy
	}
	return nil
}

// Unmarshal decodes a JSON object into the struct that out points to, and adds
// every error to f. A field is optional unless its tag is wire:"required"; null
// counts as absent. An empty body is an empty object. It returns false if raw is
// not a JSON object. It decodes at most decodersMax bodies larger than bodyFree at
// once; the others wait, for milliseconds.
func (b *Bodies) Unmarshal(raw []byte, out any, f *v1.FieldErrors) bool {
	if len(raw) > bodyFree {
		b.decoding <- struct{}{}
		defer func() { <-b.decoding }()
	}
	return unmarshal(raw, out, f)
}

// checkMediaType returns ErrMediaType for a Content-Encoding and for a
// Content-Type other than JSON in UTF-8. It ignores the type of an empty body, and
// takes a body without a type for JSON.
func checkMediaType(c *fiber.Ctx) error {
	if c.Get(fiber.HeaderContentEncoding) != "" {
		return ErrMediaType
	}
	header := c.Get(fiber.HeaderContentType)
	if header == "" || c.Request().Header.ContentLength() == 0 {
		return nil
	}
	kind, params, err := mime.ParseMediaType(header)
	charset := strings.ToLower(params["charset"])
	if err != nil || kind != fiber.MIMEApplicationJSON || charset != "" && charset != "utf-8" {
		return ErrMediaType
	}
	return nil
}
