package edge

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"

	"github.com/gofiber/fiber/v2"

	"berth/api/limit"
)

// Reply answers with v as JSON.
func Reply(c *fiber.Ctx, status int, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	c.Status(status)
	return SendJSON(c, body)
}

// SendJSON answers with a body that is JSON already. Nobody may change it afterwards.
func SendJSON(c *fiber.Ctx, body []byte) error {
	c.Set(fiber.HeaderContentType, fiber.MIMEApplicationJSON)
	if len(body) <= smallAnswer {
		return c.Send(body)
	}
	// The memory is counted until the answer was sent or has failed: a client may read slowly, after
	// the handler has returned.
	call := CallOf(c)
	leave, err := hold(call.answers, call.tenant, len(body))
	if err != nil {
		return err
	}
	c.Context().SetBodyStream(struct {
		*bytes.Reader
		io.Closer
	}{bytes.NewReader(body), closer(leave)}, len(body))
	return nil
}

// Hold counts the memory of an answer on a WebSocket, as that of any other, until the caller calls leave.
func (s *Server) Hold(tenant string, bytes int) (leave func(), err error) {
	if bytes <= smallAnswer {
		return func() {}, nil
	}
	return hold(s.answers, tenant, bytes)
}

func hold(answers *limit.Slots, tenant string, bytes int) (leave func(), err error) {
	n := min(int(limit.InMiB(int64(bytes))), limit.Answers().Tenant)
	if leave, err = answers.Enter(context.Background(), limit.Claim{Tenant: tenant, N: n}); err != nil {
		return nil, errAnswers
	}
	return leave, nil
}

// smallAnswer is the size in bytes of answers that are not counted.
const smallAnswer = 256 << 10

// SendList answers 200 with {"name": [...]}, written while the list is iterated:
// it may be very long.
func SendList[T any](c *fiber.Ctx, name string, list iter.Seq[T]) {
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

// SendText answers with a text of unknown length as a file to download, whose bytes
// body gives as fast as the client receives them. done is called when it was sent or has failed.
func SendText(c *fiber.Ctx, body io.Reader, name string, done func()) {
	c.Set(fiber.HeaderContentType, fiber.MIMETextPlainCharsetUTF8)
	c.Set(fiber.HeaderXContentTypeOptions, "nosniff")
	c.Set(fiber.HeaderCacheControl, "private, no-cache")
	c.Set(fiber.HeaderContentDisposition, disposition(name))
	c.Context().SetBodyStream(struct {
		io.Reader
		io.Closer
	}{body, closer(done)}, -1)
}

// closer is called when the HTTP library closes an answer's body: it was sent or has failed.
type closer func()

// Close calls the function.
func (f closer) Close() error {
	f()
	return nil
}
