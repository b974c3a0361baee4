package blob

import (
	"cmp"
	"context"
	"crypto/md5"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
)

// How long the removal may take of what a failed Put left, or one whose context has ended: then
// the daemon may be stopping, and the next Abort removes the rest.
const (
	cleanTimeout   = time.Minute
	leavingTimeout = 3 * time.Second
)

// errEnded ends a writer whose upload has ended.
var errEnded = errors.New("the upload has ended")

// Put implements Target.
func (s *S3) Put(ctx context.Context, key string, write func(ctx context.Context, w io.Writer) error) (int64, error) {
	if err := s.Abort(ctx, key); err != nil {
		return 0, err
	}
	size, err := s.upload(ctx, s.object(key), write)
	if err == nil {
		_ = s.Abort(ctx, key) // a request to create the upload that was repeated; Delete removes it too
		return size, nil
	}
	time.Sleep(s.limits.settle) // then a last part arrives no more
	limit := cleanTimeout
	if ctx.Err() != nil {
		limit = leavingTimeout
	}
	clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	if failed := s.Delete(clean, key); failed != nil { // it may be complete all the same
		err = errors.Join(err, fmt.Errorf("the rest could not be removed: %w", failed))
	}
	return 0, err
}

// upload uploads what write writes, and returns its size when the object is verified. It
// returns when write has returned.
func (s *S3) upload(ctx context.Context, object string, write func(ctx context.Context, w io.Writer) error) (int64, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(errEnded) // also after a panic: the writer ends
	r, w := io.Pipe()
	written := make(chan error, 1)
	go func() {
		err := write(ctx, w)
		w.CloseWithError(err)
		written <- err
	}()
	sent := &parts{r: r, size: s.limits.partSize, part: md5.New()}
	_, err := s.core.Client.PutObject(ctx, s.options.Bucket, object, sent, -1, minio.PutObjectOptions{
		ContentType: "application/zstd", PartSize: uint64(s.limits.partSize), SendContentMd5: true})
	err = plain(ctx, "upload", err)
	if !sent.ended {
		cancel(cmp.Or(err, errEnded))
	}
	r.CloseWithError(cmp.Or(err, errEnded))
	failed := <-written
	if sent.err != nil { // its cause; the client takes io.ErrUnexpectedEOF for the end
		return 0, failed
	}
	if err != nil && !sent.ended {
		return 0, err
	}
	// A request that failed may have succeeded, so the object decides.
	return sent.total, s.verify(ctx, object, sent, err)
}

// verify compares an object with the parts that were sent. failed is the error of the upload:
// without an ETag that shows that the object is theirs, it remains.
func (s *S3) verify(ctx context.Context, object string, sent *parts, failed error) error {
	info, err := s.core.StatObject(ctx, s.options.Bucket, object, minio.StatObjectOptions{})
	if err != nil {
		return cmp.Or(failed, plain(ctx, "stat", err))
	}
	// The ETag is made of the MD5 of each part, unless the server encrypts with a key of its
	// key management, or does not join parts.
	kms := strings.HasPrefix(info.Metadata.Get("X-Amz-Server-Side-Encryption"), "aws:kms")
	switch known := strings.Contains(info.ETag, "-") && !kms; {
	case known && info.ETag != sent.etag():
		return cmp.Or(failed, errAltered)
	case info.Size != sent.total:
		return cmp.Or(failed, fmt.Errorf("s3: the object has %d bytes, not %d", info.Size, sent.total))
	case !known:
		return failed
	}
	return nil
}

var errAltered = errors.New("s3: the server received other bytes than were sent")

// parts reads an archive, and computes the ETag that its object has when it is uploaded in
// parts of a size.
type parts struct {
	r     io.Reader
	size  int
	part  hash.Hash // of the current part
	in    int       // bytes of the current part
	sums  []byte    // of the complete parts
	total int64
	ended bool  // everything was read
	err   error // of r
}

// Read implements io.Reader. It never reads beyond the end of a part.
func (p *parts) Read(b []byte) (int, error) {
	n, err := p.r.Read(b[:min(len(b), p.size-p.in)])
	p.part.Write(b[:n])
	p.total += int64(n)
	if p.in += n; p.in == p.size {
		p.end()
	}
	switch {
	case errors.Is(err, io.EOF):
		p.ended = true
	case err != nil:
		p.err = err
	}
	return n, err
}

// end completes the current part.
func (p *parts) end() {
	p.sums = p.part.Sum(p.sums)
	p.part.Reset()
	p.in = 0
}

// etag returns the ETag of the object. An empty archive is one empty part.
func (p *parts) etag() string {
	if p.in > 0 || len(p.sums) == 0 {
		p.end()
	}
	sum := md5.Sum(p.sums)
	return fmt.Sprintf("%s-%d", hex.EncodeToString(sum[:]), len(p.sums)/md5.Size)
}
