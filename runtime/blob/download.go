package blob

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/minio/minio-go/v7"
)

var errChanged = errors.New("the archive was changed while it was read")

// Open implements Target. A read that fails goes on where it was.
func (s *S3) Open(ctx context.Context, key string, offset int64) (io.ReadCloser, int64, error) {
	if err := checkKey(key); err != nil {
		return nil, 0, err
	}
	d := &download{s3: s, object: s.object(key), at: offset, size: -1}
	d.retry = func(try func(context.Context) error) error { return s.retry(ctx, requestGet, try) }
	if err := d.retry(d.open); err != nil {
		return nil, 0, err
	}
	return d, d.size, nil
}

// download reads an object from at on.
type download struct {
	s3     *S3
	retry  func(try func(context.Context) error) error // with the context of Open
	object string
	etag   string
	at     int64
	size   int64 // -1: not known yet
	body   io.ReadCloser
}

// open requests the rest of the object once.
func (d *download) open(ctx context.Context) error {
	err := d.request(ctx)
	switch codeOf(err) {
	case minio.NoSuchKey:
		return ErrNotFound
	case minio.PreconditionFailed:
		return errChanged
	case minio.InvalidRange:
		return d.end(ctx)
	}
	return err
}

func (d *download) request(ctx context.Context) error {
	var options minio.GetObjectOptions
	if d.etag != "" {
		if err := options.SetMatchETag(d.etag); err != nil {
			return err
		}
	}
	if d.at > 0 {
		if err := options.SetRange(d.at, 0); err != nil {
			return err
		}
	}
	body, info, _, err := d.s3.core.GetObject(ctx, d.s3.options.Bucket, d.object, options)
	if err != nil {
		return err
	}
	if size := d.at + info.Size; info.Size < 0 || d.size >= 0 && size != d.size {
		body.Close()
		return fmt.Errorf("the object has %d bytes from offset %d on, and %d in all", info.Size, d.at, d.size)
	}
	d.body, d.etag, d.size = body, info.ETag, d.at+info.Size
	return nil
}

// end opens an object at its end, which is no valid range.
func (d *download) end(ctx context.Context) error {
	info, err := d.s3.core.StatObject(ctx, d.s3.options.Bucket, d.object, minio.StatObjectOptions{})
	if err != nil {
		return err
	}
	d.size, d.etag, d.at = info.Size, info.ETag, max(d.at, info.Size)
	return nil
}

// Read implements io.Reader.
func (d *download) Read(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	if d.at >= d.size {
		return 0, io.EOF
	}
	if d.body != nil {
		if n, err := d.read(b); err == nil {
			return n, nil
		}
	}
	n := 0
	err := d.retry(func(ctx context.Context) (err error) {
		if err = d.open(ctx); err == nil {
			n, err = d.read(b)
		}
		return err
	})
	return n, err
}

// read reads from the response at least one byte, or returns an error and closes it.
func (d *download) read(b []byte) (int, error) {
	n, err := io.ReadAtLeast(d.body, b[:min(int64(len(b)), d.size-d.at)], 1)
	d.at += int64(n)
	if err != nil {
		d.closeBody()
	}
	return n, err
}

func (d *download) closeBody() {
	if d.body != nil {
		d.body.Close()
		d.body = nil
	}
}

// Close implements io.Closer.
func (d *download) Close() error {
	d.closeBody()
	return nil
}
