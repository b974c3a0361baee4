package blob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/minio/minio-go/v7"
)

var errChanged = errors.New("the archive was changed while it was read")

// reopenWait is the time before a response that broke off is continued.
const reopenWait = 200 * time.Millisecond

// Open implements Target. A read that fails goes on where it was.
func (s *S3) Open(ctx context.Context, key string, offset int64) (io.ReadCloser, int64, error) {
	if err := checkKey(key); err != nil {
		return nil, 0, err
	}
	d := &download{s3: s, ctx: func() context.Context { return ctx }, object: s.object(key), at: offset, size: -1}
	if err := d.open(); err != nil {
		return nil, 0, err
	}
	return d, d.size, nil
}

// download reads an object from at on.
type download struct {
	s3     *S3
	ctx    func() context.Context // that of Open
	object string
	etag   string
	at     int64
	size   int64         // -1: not known yet
	body   io.ReadCloser // nil: none is open
}

// open requests the rest of the object.
func (d *download) open() error {
	err := d.request()
	switch codeOf(err) {
	case minio.NoSuchKey:
		return ErrNotFound
	case minio.PreconditionFailed:
		return errChanged
	case minio.InvalidRange: // the end of the object is none
		var info minio.ObjectInfo
		if info, err = d.s3.core.StatObject(d.ctx(), d.s3.options.Bucket, d.object, minio.StatObjectOptions{}); err == nil {
			d.size, d.at = info.Size, max(d.at, info.Size)
		}
	}
	return plain(d.ctx(), "download", err)
}

func (d *download) request() error {
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
	body, info, _, err := d.s3.core.GetObject(d.ctx(), d.s3.options.Bucket, d.object, options)
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

// Read implements io.Reader.
func (d *download) Read(b []byte) (n int, err error) {
	if len(b) == 0 {
		return 0, nil
	}
	if d.at >= d.size {
		return 0, io.EOF
	}
	for range d.s3.limits.attempts {
		if d.body == nil {
			if err := d.open(); err != nil {
				return 0, err
			}
		}
		n, err = io.ReadAtLeast(d.body, b[:min(int64(len(b)), d.size-d.at)], 1)
		d.at += int64(n)
		if err == nil {
			return n, nil
		}
		_ = d.Close()
		select {
		case <-d.ctx().Done():
		case <-time.After(reopenWait):
		}
	}
	return n, plain(d.ctx(), "download", err)
}

// Close implements io.Closer.
func (d *download) Close() error {
	if d.body == nil {
		return nil
	}
	err := d.body.Close()
	d.body = nil
	return err
}
