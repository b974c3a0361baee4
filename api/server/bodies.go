package server

import (
	"bytes"
	"context"
	"io"
	"time"

	"github.com/gofiber/fiber/v2"

	"berth/api/intent"
)

// The bounds of all JSON bodies together.
const (
	bodiesTotal = 32 << 20        // bytes at once; more where one body may have more than a fourth
	bodyFree    = 8 << 10         // bytes of each body that do not count: the library keeps as many
	bodyWait    = 5 * time.Second // for others to be done
	decodersMax = 4               // bodies decoded at once: what a faulty one becomes is larger than it is
)

// bodies are the JSON bodies that are held in memory.
type bodies struct {
	budget   budget
	patience time.Duration // how long a body waits for others
	decoding chan struct{}
	underway *inFlight
}

func newBodies(u *inFlight) *bodies {
	return &bodies{patience: bodyWait, decoding: make(chan struct{}, decodersMax), underway: u}
}

// reservation is what the request of a body holds of a budget.
type reservation struct {
	budget *budget
	token  string
	n      int64 // bytes
}

// release gives it back. A nil reservation holds nothing.
func (r *reservation) release() {
	if r != nil {
		r.budget.release(r.token, r.n)
	}
}

// read reads a body of at most limit bytes. What it takes of the budget is given
// back when the request ends.
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
		if length < 0 { // it does not say how long it is
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

// reserve takes n bytes for the rest of a request. most is how many one may take.
func (b *bodies) reserve(c *fiber.Ctx, n, most int64) error {
	r := &reservation{budget: &b.budget, token: callerOf(c).TokenID, n: n}
	if err := b.wait(c, r, max(bodiesTotal, 4*most)); err != nil {
		return err
	}
	c.Locals(bodyKey, r)
	return nil
}

// wait waits for a reservation of total bytes, but not longer than its patience, than
// its client does, or than the server runs.
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

// unmarshal is the function of that name. Only some large bodies are decoded at
// once, which takes milliseconds.
func (b *bodies) unmarshal(raw []byte, out any, f *intent.FieldErrors) bool {
	if len(raw) > bodyFree {
		b.decoding <- struct{}{}
		defer func() { <-b.decoding }()
	}
	return unmarshal(raw, out, f)
}
