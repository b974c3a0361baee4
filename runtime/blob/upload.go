package blob

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/minio/minio-go/v7"
)

// upload is a multipart upload in progress.
type upload struct {
	object    string
	id        string
	mark      string // metadata of the object, which no other upload has
	checksums bool   // the server keeps a checksum of each part
	parts     []minio.CompletePart
	size      int64
}

// assembly is how fast a server must join the parts at least, in bytes per second. Some
// copy them, and answer when they have finished.
const assembly = 64 << 20

const markKey = "Berth-Upload" // of the metadata

// Put implements Target. It keeps two parts: one is filled while the other is sent.
func (s *S3) Put(ctx context.Context, key string, write func(ctx context.Context, w io.Writer) error) (int64, error) {
	if err := s.Abort(ctx, key); err != nil {
		return 0, err
	}
	u, err := s.create(ctx, key)
	if err == nil {
		err = s.send(ctx, u, write)
	}
	if err != nil {
		return 0, errors.Join(err, s.clean(ctx, key, s.Abort))
	}
	if err = s.complete(ctx, key, u); err != nil {
		return 0, errors.Join(err, s.clean(ctx, key, s.Delete)) // it may be complete all the same
	}
	return u.size, nil
}

// clean removes what a failed Put left, and does so again after a while: a server may
// still receive the last part, and keep the upload for it. clean has little time if ctx
// has ended, for the daemon may be stopping; then the next Abort removes the rest.
func (s *S3) clean(ctx context.Context, key string, remove func(context.Context, string) error) error {
	limit := s.limits.clean
	if ctx.Err() != nil {
		limit = s.limits.leave
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	for _, wait := range []time.Duration{0, s.limits.settle} {
		time.Sleep(wait)
		if err := remove(ctx, key); err != nil {
			return fmt.Errorf("the rest could not be removed: %w", err)
		}
	}
	return nil
}

func (s *S3) create(ctx context.Context, key string) (*upload, error) {
	u := &upload{object: s.object(key), mark: rand.Text(), checksums: true}
	err := s.retry(ctx, requestCreate, func(ctx context.Context) error {
		err := s.start(ctx, u)
		if code := codeOf(err); u.checksums && (code == minio.InvalidArgument || code == minio.NotImplemented) {
			u.checksums = false // a server that does not know them
			err = s.start(ctx, u)
		}
		return err
	})
	return u, err
}

func (s *S3) start(ctx context.Context, u *upload) (err error) {
	options := minio.PutObjectOptions{ContentType: "application/zstd", UserMetadata: map[string]string{markKey: u.mark}}
	if u.checksums {
		options.UserMetadata["X-Amz-Checksum-Algorithm"] = "SHA256"
	}
	u.id, err = s.core.NewMultipartUpload(ctx, s.options.Bucket, u.object, options)
	if err == nil && u.id == "" {
		return errors.New("the server returned no upload id")
	}
	return err
}

// errEnded ends a writer whose upload has ended.
var errEnded = errors.New("the upload has ended")

// send uploads what write writes. It returns when write has returned.
func (s *S3) send(ctx context.Context, u *upload, write func(ctx context.Context, w io.Writer) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(errEnded) // also after a panic: the writer ends
	r, w := io.Pipe()
	context.AfterFunc(ctx, func() { w.CloseWithError(context.Cause(ctx)) })
	written, sent := make(chan error, 1), make(chan error, 1)
	go func() {
		err := write(ctx, w)
		w.CloseWithError(err)
		written <- err
	}()
	full, empty := make(chan []byte), make(chan []byte, 2)
	empty <- nil
	empty <- nil
	go func() {
		err := s.sendParts(ctx, u, full, empty)
		if err != nil {
			cancel(err) // nothing is written and split any more
		}
		sent <- err
	}()
	err := split(ctx, r, empty, full, partSize)
	close(full)
	if err != nil {
		cancel(err)
	}
	return cmp.Or(err, <-sent, <-written)
}

// sendParts uploads the full buffers in order and returns them to empty.
func (s *S3) sendParts(ctx context.Context, u *upload, full <-chan []byte, empty chan<- []byte) error {
	for data := range full {
		p := newPart(len(u.parts)+1, data)
		err := s.retry(ctx, requestPart, func(ctx context.Context) error {
			done, err := p.send(ctx, s, u)
			if err == nil {
				u.parts, u.size = append(u.parts, done), u.size+int64(len(data))
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("part %d: %w", p.number, err)
		}
		empty <- data
	}
	return nil
}

// split reads r into the empty buffers. An empty archive is one empty part. The error
// is that of r, or the cause of the end of ctx.
func split(ctx context.Context, r io.Reader, empty <-chan []byte, full chan<- []byte, sizeOf func(number int) int) error {
	for number := 1; ; number++ {
		var buf []byte
		select {
		case buf = <-empty:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		size := sizeOf(number)
		if cap(buf) < size {
			buf = make([]byte, size)
		}
		n, err := fill(r, buf[:size])
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if n > 0 && number > maxParts {
			return fmt.Errorf("s3: the archive is larger than %d parts", maxParts)
		}
		if n > 0 || number == 1 {
			select {
			case full <- buf[:n]:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		if err != nil {
			return nil
		}
	}
}

// fill reads until buf is full or r ends. Unlike io.ReadFull it keeps every error of r.
func fill(r io.Reader, buf []byte) (n int, err error) {
	for n < len(buf) && err == nil {
		var k int
		k, err = r.Read(buf[n:])
		n += k
	}
	return n, err
}

// complete makes the archive visible. A request that failed may have succeeded, so each
// attempt, a successful one too, is verified: the object must have the mark and the size
// of this upload.
func (s *S3) complete(ctx context.Context, key string, u *upload) error {
	// A repeated request to create it, or a part of a killed daemon, may have left others.
	if err := s.abortOthers(ctx, key, u.id); err != nil {
		return err
	}
	patience := time.Duration(u.size/assembly) * time.Second
	ctx = context.WithValue(ctx, patienceKey{}, patience)
	completed := false
	return s.retryFor(ctx, requestComplete, s.limits.total+patience, func(ctx context.Context) (err error) {
		if !completed {
			_, err = s.core.CompleteMultipartUpload(ctx, s.options.Bucket, u.object, u.id, u.parts, minio.PutObjectOptions{})
			completed = err == nil
		}
		found := s.verify(ctx, u)
		switch {
		case found == nil:
			return nil
		case !completed:
			return err
		case codeOf(found) == minio.NoSuchKey: // of a server whose parts do not agree at once
			return errors.New("the object is not visible yet")
		}
		return found
	})
}

func (s *S3) verify(ctx context.Context, u *upload) error {
	info, err := s.core.StatObject(ctx, s.options.Bucket, u.object, minio.StatObjectOptions{})
	if err != nil {
		return err
	}
	if got := info.UserMetadata[markKey]; got != u.mark {
		return fmt.Errorf("the object is of another upload: its metadata %s is %q, not %q", markKey, got, u.mark)
	}
	if info.Size != u.size {
		return fmt.Errorf("the object has %d bytes, not %d", info.Size, u.size)
	}
	return nil
}
