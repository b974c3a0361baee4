package archive

import (
	"bufio"
	"errors"
	"io"
	"math"
	"path"

	"github.com/klauspost/compress/gzip"

	v1 "berth/api/v1"
)

// gzipReader decompresses the members of a gzip. Zeros behind the last one fill a block of a tape or a disk;
// anything else there is listed as skipped.
type gzipReader struct {
	*gzip.Reader
	x   *extraction
	src *bufio.Reader
}

func (x *extraction) gzip(src *bufio.Reader) error {
	z, err := gzip.NewReader(src)
	if err != nil {
		return x.src.cause(err)
	}
	z.Multistream(false)
	return x.compressed(&gzipReader{z, x, src}, z.ModTime)
}

// Read implements io.Reader.
func (g *gzipReader) Read(p []byte) (int, error) {
	for {
		n, err := g.Reader.Read(p)
		if !errors.Is(err, io.EOF) {
			return n, err
		}
		if n > 0 {
			return n, nil
		}
		if head, _ := g.src.Peek(2); string(head) != "\x1f\x8b" {
			return 0, g.rest()
		}
		if err := g.Reset(g.src); err != nil {
			return 0, err
		}
		g.Multistream(false)
	}
}

// rest reads what is behind the last member, and returns io.EOF.
func (g *gzipReader) rest() error {
	for {
		switch b, err := g.src.ReadByte(); {
		case err != nil:
			return err
		case b != 0:
			g.x.list(path.Base(g.x.opt.Name), v1.SkippedTrailing)
			_, err := g.src.Discard(math.MaxInt)
			return err
		}
	}
}
