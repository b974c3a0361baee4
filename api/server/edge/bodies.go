package edge

import (
	"bytes"
	"context"
	"io"
	"mime"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"berth/api/limit"
	v1 "berth/api/v1"
)

// Limits on all JSON bodies together, besides limit.Bodies.
const (
	bodyFree    = 8 << 10 // bytes of each body that are not counted: the HTTP library buffers as many anyway
	decodersMax = 4       // bodies decoded at once: with more, other requests wait for a processor for up to ten times as long
)

// Bodies reads JSON bodies and bounds the memory that all of them use together.
type Bodies struct {
	memory   *limit.Slots
	patience time.Duration // how long a request waits for memory
	decoding chan struct{}
}

// NewBodies returns a Bodies.
func NewBodies(settings func() v1.Config) *Bodies {
	return &Bodies{patience: limit.BodyWait, decoding: make(chan struct{}, decodersMax),
		memory: limit.NewSlots(func() limit.Bounds {
			c := settings()
			return limit.Bodies(int64(max(c.Server.BodyLimit, c.Storage.MaxFileSize)))
		})}
}

// Reserved returns the memory that bodies hold, in MiB.
func (b *Bodies) Reserved() int { return b.memory.Used() }

// Read reads the JSON body of a request, of at most most bytes. The middleware
// observe frees its memory when the request ends.
func (b *Bodies) Read(c *fiber.Ctx, most int64) ([]byte, error) {
	if err := checkMediaType(c); err != nil {
		return nil, err
	}
	length := int64(c.Request().Header.ContentLength())
	if length > most {
		return nil, ErrTooLarge
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
			length = most
		}
		if err := b.reserve(c, length); err != nil {
			return nil, err
		}
		if err := setReadDeadline(c, limit.BodyTime(length)); err != nil {
			return nil, err
		}
		raw.Grow(int(max(0, length-bodyFree)) + bytes.MinRead)
		_, err = raw.ReadFrom(io.LimitReader(stream, most+1-bodyFree))
	}
	switch {
	case int64(raw.Len()) > most:
		return nil, ErrTooLarge
	case isTimeout(err):
		return nil, errTimeout
	case err != nil:
		return nil, ErrMalformed
	}
	return raw.Bytes(), nil
}

// reserve waits for n bytes of memory until the request ends. It returns errBusy after
// b.patience, and also when the client leaves or the server shuts down.
func (b *Bodies) reserve(c *fiber.Ctx, n int64) error {
	ctx, cancel := Context(c)
	defer cancel()
	ctx, done := context.WithTimeout(ctx, b.patience)
	defer done()
	claim := limit.Claim{Tenant: CallOf(c).tenant, N: int(limit.InMiB(n))}
	if claim.N > 1 {
		claim.Object = limit.LargeBody
	}
	leave, err := b.memory.Enter(ctx, claim)
	if err != nil {
		return errBusy
	}
	CallOf(c).leave = leave
	return nil
}

// Unmarshal decodes a JSON object into the struct that out points to, and adds
// every error to f, see unmarshal. It returns false if raw is not a JSON object. It decodes at most
// decodersMax bodies larger than bodyFree at once.
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
