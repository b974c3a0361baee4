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
	call, n := CallOf(c), min(limit.InMiB(int64(len(body))), int64(limit.Answers().Tenant))
	leave, err := call.answers.Enter(context.Background(), limit.Claim{Tenant: call.tenant, N: int(n)})
	if err != nil {
		return errAnswers
	}
	c.Context().SetBodyStream(heldBody{bytes.NewReader(body), leave}, len(body))
	return nil
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

// SendStream answers 200 with body as JSON of unknown length. The HTTP library
// reads body after the handler has returned, and closes it if it is an io.Closer.
func SendStream(c *fiber.Ctx, body io.Reader) {
	c.Set(fiber.HeaderContentType, fiber.MIMEApplicationJSON)
	c.Context().SetBodyStream(body, -1)
}

// SendText answers with a text of unknown length as a file to download, whose bytes
// body gives as fast as the client receives them. A body that is an io.Closer is
// closed when it was sent or has failed.
func SendText(c *fiber.Ctx, body io.Reader, name string) {
	c.Set(fiber.HeaderContentType, fiber.MIMETextPlainCharsetUTF8)
	c.Set(fiber.HeaderXContentTypeOptions, "nosniff")
	c.Set(fiber.HeaderCacheControl, "private, no-cache")
	c.Set(fiber.HeaderContentDisposition, disposition(name))
	c.Context().SetBodyStream(body, -1)
}

// heldBody is an answer's body, which the HTTP library closes.
type heldBody struct {
	*bytes.Reader
	done func()
}

// Close calls done.
func (b heldBody) Close() error {
	b.done()
	return nil
}
