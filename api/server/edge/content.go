package edge

import (
	"bufio"
	"errors"
	"io"

	"github.com/gofiber/fiber/v2"

	v1 "berth/api/v1"
)

// diskShare is the size of the budget of disk space, in files of the largest size.
const diskShare = 4

// maxBesideContent bounds the fields of a body beside its content, in bytes: a path of
// 4 KiB, however it is escaped. More would only cost time to parse.
const maxBesideContent = 64 << 10

// Content is a JSON body with a field content that may be far larger than memory.
type Content struct {
	JSON []byte // the body with an empty content

	spool *spool
	disk  *reservation
}

// Reader returns a reader of the decoded content from its start.
func (t *Content) Reader() (io.Reader, error) { return t.spool.reader() }

// Close discards the content.
func (t *Content) Close() error {
	t.disk.release()
	return t.spool.Close()
}

// ReadContent reads the JSON body of a request. The content may have at most most
// bytes, and the rest of the body at most limit bytes or 64 KiB. The content is spooled to
// disk as it arrives. ReadContent returns once the whole body has arrived; its JSON
// is not validated yet. The caller must close the Content.
func (b *Bodies) ReadContent(c *fiber.Ctx, most, limit int64) (*Content, error) {
	if err := checkMediaType(c); err != nil {
		return nil, err
	}
	limit = min(limit, maxBesideContent)
	length, longest := int64(c.Request().Header.ContentLength()), 2*most+limit // escapes are longer than their characters
	if length > longest {
		return nil, errTooLarge
	}
	held := limit + spoolMemory // bytes in memory
	if length >= 0 {
		held = min(held, length)
	}
	if held > bodyFree {
		if err := b.reserve(c, held, limit+spoolMemory); err != nil {
			return nil, err
		}
	}
	disk := &reservation{budget: &b.disk, token: tenantOf(c)}
	t := &Content{disk: disk, spool: &spool{dir: b.dir, limit: most, reserve: func(n int64) error {
		more := &reservation{budget: disk.budget, token: disk.token, n: n}
		if err := b.wait(c, more, diskShare*max(most, spoolStep)); err != nil {
			return err
		}
		disk.n += n
		return nil
	}}}
	from := bufio.NewReaderSize(&limited{from: Upload(c), left: longest}, 32<<10)
	if err := t.read(contentSplitter{from: from, content: t.spool, most: int(limit)}); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

func (t *Content) read(splitter contentSplitter) (err error) {
	var fault badJSON
	t.JSON, err = splitter.split()
	switch {
	case errors.As(err, &fault):
		return v1.Errorf(v1.InvalidRequest, "body: %s", fault)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return ErrMalformed
	}
	return err
}

// limited is a body of at most left bytes.
type limited struct {
	from io.Reader
	left int64
}

// Read returns errTooLarge if the body is longer.
func (l *limited) Read(p []byte) (int, error) {
	n, err := l.from.Read(p)
	if l.left -= int64(n); l.left < 0 {
		return 0, errTooLarge
	}
	return n, err
}
