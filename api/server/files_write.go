package server

import (
	"bufio"
	"errors"
	"io"

	"github.com/gofiber/fiber/v2"

	"berth/api/intent"
	v1 "berth/api/v1"
)

// spoolsShare is the size of the spool budget, in files of storage.max_file_size.
const spoolsShare = 4

// writeFile writes a file whose content comes in a JSON body. The content is
// spooled to disk as it arrives: it may be far larger than any other JSON body,
// and the path may come after it.
func (s files) writeFile(c *fiber.Ctx) error {
	if err := checkMediaType(c); err != nil {
		return err
	}
	config := s.settings.Current()
	most, small := int64(config.Storage.MaxFileSize), int64(config.Server.BodyLimit)
	length, limit := int64(c.Request().Header.ContentLength()), 2*most+small // escapes are longer than their characters
	if length > limit {
		return errTooLarge
	}
	held := small + spoolMemory // bytes in memory
	if length >= 0 {
		held = min(held, length)
	}
	if held > bodyFree {
		if err := s.bodies.reserve(c, held, small+spoolMemory); err != nil {
			return err
		}
	}
	disk := &reservation{budget: &s.spools, token: callerOf(c).TokenID}
	defer func() { disk.release() }()
	content := &spool{dir: s.deps.SpoolDir, limit: most, reserve: func(n int64) error {
		more := &reservation{budget: disk.budget, token: disk.token, n: n}
		if err := s.bodies.wait(c, more, spoolsShare*max(most, spoolStep)); err != nil {
			return err
		}
		disk.n += n
		return nil
	}}
	defer content.Close()
	from := bufio.NewReaderSize(&limited{from: wholeBody(c), left: limit}, 32<<10)
	return s.writeSpooled(c, contentSplitter{from: from, content: content, most: int(small)})
}

// writeSpooled writes the file after its whole body has arrived and is valid.
func (s files) writeSpooled(c *fiber.Ctx, splitter contentSplitter) error {
	left, err := splitter.split()
	var f intent.FieldErrors
	var fault badJSON
	switch {
	case errors.As(err, &fault):
		f.Add("body", "%s", fault)
		return f.Err()
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errMalformed
	case err != nil:
		return err
	}
	var body struct {
		Path    string `json:"path" wire:"required"`
		Content string `json:"content" wire:"required"`
	}
	s.bodies.unmarshal(left, &body, &f)
	if err := f.Err(); err != nil {
		return err
	}
	if err := v1.CheckPath(body.Path); err != nil {
		return err
	}
	content, err := splitter.content.reader()
	if err != nil {
		return err
	}
	return s.write(c, body.Path, content)
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
