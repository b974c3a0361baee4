package edge

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"os"
	"strconv"
	"strings"

	"github.com/gofiber/fiber/v2"

	v1 "berth/api/v1"
)

// Download describes the response with a file.
type Download struct {
	Name string // under which a browser saves it
	Type string // media type; empty: application/octet-stream
	Tag  string // of the ETag, without quotes; empty: of the file
}

// SendFile answers with the content of a file, or with the part of it that Range
// selects. The HTTP library reads the file after the handler has returned. SendFile
// takes over the file: it closes it and then calls done, even if it returns an error.
func SendFile(c *fiber.Ctx, file *os.File, d Download, done func()) error {
	body := &fileBody{file: file, done: done}
	info, err := file.Stat()
	if err == nil {
		err = serve(c, body, info, d)
	}
	if err != nil {
		body.Close()
	}
	return err
}

// serve answers with body, and closes it unless it returns an error.
func serve(c *fiber.Ctx, body *fileBody, info fs.FileInfo, d Download) error {
	tag := v1.FileTag(info)
	if d.Tag != "" {
		tag = strconv.Quote(d.Tag)
	}
	changed := info.ModTime().UTC().Format(http.TimeFormat)
	c.Set(fiber.HeaderETag, tag)
	c.Set(fiber.HeaderLastModified, changed)
	c.Set(fiber.HeaderAcceptRanges, "bytes")
	c.Set(fiber.HeaderCacheControl, "private, no-cache")
	if matches(c.Get(fiber.HeaderIfNoneMatch), tag) {
		c.Status(fiber.StatusNotModified)
		return body.Close()
	}
	c.Set(fiber.HeaderContentType, cmp.Or(d.Type, fiber.MIMEOctetStream))
	c.Set(fiber.HeaderXContentTypeOptions, "nosniff")
	c.Set(fiber.HeaderContentDisposition, disposition(d.Name))
	from, n := int64(0), info.Size()
	if use := c.Get(fiber.HeaderIfRange); use == "" || use == tag || use == changed {
		part, ok := parseRange(c.Get(fiber.HeaderRange), info.Size())
		if !ok {
			c.Set(fiber.HeaderContentRange, fmt.Sprintf("bytes */%d", info.Size()))
			return errRange
		}
		if part != nil {
			from, n = part.from, part.n
			c.Status(fiber.StatusPartialContent)
			c.Set(fiber.HeaderContentRange, fmt.Sprintf("bytes %d-%d/%d", from, from+n-1, info.Size()))
		}
	}
	if _, err := body.file.Seek(from, io.SeekStart); err != nil {
		return err
	}
	body.LimitedReader = io.LimitedReader{R: body.file, N: n}
	c.Context().SetBodyStream(body, int(n))
	return nil
}

// fileBody is an answer's body: a part of a file. The HTTP library closes it. It
// is sent by sendfile(2) where possible.
type fileBody struct {
	io.LimitedReader
	file *os.File
	done func() // called by Close
}

// WriteTo sends the rest of the body.
func (b *fileBody) WriteTo(w io.Writer) (int64, error) {
	if buffered, is := w.(*bufio.Writer); is {
		if err := buffered.Flush(); err != nil {
			return 0, err
		}
		return buffered.ReadFrom(&b.LimitedReader)
	}
	return io.Copy(w, &b.LimitedReader)
}

// Close calls done and closes the file.
func (b *fileBody) Close() error {
	b.done()
	return b.file.Close()
}

// SendArchive answers with an archive, under a name, while it is made. The HTTP library writes it after the handler has
// returned. If it cannot be completed, the connection is closed without the end of the answer, which every client sees.
// Then, or when it was sent, it is closed, and done is called.
func SendArchive(c *fiber.Ctx, archive v1.ArchiveStream, name string, done func()) {
	c.Set(fiber.HeaderCacheControl, "private, no-cache")
	c.Set(fiber.HeaderContentType, fiber.MIMEOctetStream)
	c.Set(fiber.HeaderXContentTypeOptions, "nosniff")
	c.Set(fiber.HeaderContentDisposition, disposition(name))
	c.Context().SetBodyStream(&archiveBody{archive, done}, -1)
}

// archiveBody is an answer's body, an archive. The HTTP library closes it.
type archiveBody struct {
	v1.ArchiveStream
	done func() // called by Close
}

// SupportsBodyWriteTo has the HTTP library call WriteTo, and not Read.
func (b *archiveBody) SupportsBodyWriteTo() bool { return true }

// Read implements io.Reader.
func (b *archiveBody) Read([]byte) (int, error) { return 0, errors.ErrUnsupported }

// Close closes the archive and calls done.
func (b *archiveBody) Close() error {
	err := b.ArchiveStream.Close()
	b.done()
	return err
}

// Preconditions returns the check of a file that a request replaces or deletes: it refuses the file unless
// If-Match names its ETag, and if If-None-Match does. info is nil if there is no file. The check is nil if the
// request has neither header.
func Preconditions(c *fiber.Ctx) func(info fs.FileInfo) error {
	match, noneMatch := c.Get(fiber.HeaderIfMatch), c.Get(fiber.HeaderIfNoneMatch)
	if match == "" && noneMatch == "" {
		return nil
	}
	return func(info fs.FileInfo) error {
		switch tag := v1.FileTag(info); {
		case match != "" && tag == "":
			return errGone
		case match != "" && !matches(match, tag):
			return errChanged
		case tag != "" && matches(noneMatch, tag):
			return errThere
		}
		return nil
	}
}

// matches reports whether an If-Match or If-None-Match header contains the tag. A proxy that
// compresses a file makes its tag a weak one.
func matches(header, tag string) bool {
	for part := range strings.SplitSeq(header, ",") {
		part = strings.TrimSpace(part)
		if part == "*" || strings.TrimPrefix(part, "W/") == tag {
			return true
		}
	}
	return false
}

// disposition returns the Content-Disposition that makes a browser save the file
// under its name.
func disposition(name string) string {
	plain := mime.FormatMediaType("attachment", map[string]string{"filename": strings.Map(toASCII, name)})
	encoded := mime.FormatMediaType("attachment", map[string]string{"filename": name})
	switch _, parameter, _ := strings.Cut(encoded, "; "); {
	case encoded == "":
		return "attachment"
	case strings.HasPrefix(parameter, "filename*="): // for programs that do not know it, such as curl, plain comes first
		return plain + "; " + parameter
	}
	return encoded
}

// toASCII replaces a character that not every program reads.
func toASCII(r rune) rune {
	if r < ' ' || r > '~' {
		return '_'
	}
	return r
}

type byteRange struct{ from, n int64 }

// parseRange parses a Range header with a single range. It returns nil for an
// absent or invalid header and for several ranges, which RFC 9110 lets a server
// ignore. ok is false if the range selects none of the size bytes.
func parseRange(header string, size int64) (part *byteRange, ok bool) {
	spec, is := strings.CutPrefix(header, "bytes=")
	first, last, two := strings.Cut(strings.TrimSpace(spec), "-")
	if !is || !two || strings.ContainsAny(spec, ",+") {
		return nil, true
	}
	if first == "" {
		n, err := strconv.ParseInt(last, 10, 64)
		if err != nil || n < 0 {
			return nil, true
		}
		n = min(n, size)
		return &byteRange{size - n, n}, n > 0
	}
	from, err := strconv.ParseInt(first, 10, 64)
	if err != nil || from < 0 {
		return nil, true
	}
	to := size - 1
	if last != "" {
		if to, err = strconv.ParseInt(last, 10, 64); err != nil || to < from {
			return nil, true
		}
		to = min(to, size-1)
	}
	return &byteRange{from, to - from + 1}, from < size
}
