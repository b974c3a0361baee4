package server

import (
	"bytes"
	"context"
	"io"
	"time"

	"github.com/gofiber/fiber/v2"

	"berth/api/intent"
)

// Limits on all JSON bodies together.
const (
	bodiesTotal = 32 << 20        // bytes at once; more where one body may have more than a fourth
	bodyFree    = 8 << 10         // bytes of each body that need no reservation: the HTTP library buffers as many anyway
	bodyWait    = 5 * time.Second // for other requests to release memory
	decodersMax = 4               // bodies decoded at once: the errors of an invalid body are larger than the body
)

// bodies reads JSON bodies and bounds the memory that all of them use together.
type bodies struct {
	budget   budget
	patience time.Duration // how long a request waits for memory
	decoding chan struct{}
	underway *inFlight
}

func newBodies(u *inFlight) *bodies {
	return &bodies{patience: bodyWait, decoding: make(chan struct{}, decodersMax), underway: u}
}

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

// read reads a body of at most limit bytes. The middleware observe releases its
// reservation when the request ends.
func (b *bodies) read(c *fiber.Ctx, limit int64) ([]byte, error) {
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
		return nil, errMalformed
	}
	return raw.Bytes(), nil
}

// reserve reserves n bytes until the request ends. most is the largest
// reservation that any one request can need.
func (b *bodies) reserve(c *fiber.Ctx, n, most int64) error {
	r := &reservation{budget: &b.budget, token: callerOf(c).TokenID, n: n}
	if err := b.wait(c, r, max(bodiesTotal, 4*most)); err != nil {
		return err
	}
	c.Locals(bodyKey, r)
	return nil
}

// wait waits until r fits into a budget of total bytes. It returns errBusy after
// b.patience, and also when the client leaves or the server shuts down.
func (b *bodies) wait(c *fiber.Ctx, r *reservation, total int64) error {
	if _, ok := r.budget.try(r.token, r.n, total); ok {
		return nil
	}
	ctx, cancel := withClient(c)
	defer cancel()
	defer b.underway.begin(cancel)()
	ctx, done := context.WithTimeout(ctx, b.patience)
	defer done()
	if r.budget.reserve(ctx, r.token, r.n, total) != nil {
		return errBusy
	}
	return nil
}

// unmarshal calls the function unmarshal. It decodes at most decodersMax bodies
// larger than bodyFree at once; the others wait, for milliseconds.
func (b *bodies) unmarshal(raw []byte, out any, f *intent.FieldErrors) bool {
	if len(raw) > bodyFree {
		b.decoding <- struct{}{}
		defer func() { <-b.decoding }()
	}
	return unmarshal(raw, out, f)
}
