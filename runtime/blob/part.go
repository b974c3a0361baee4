package blob

import (
	"bytes"
	"context"
	"crypto/md5"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"net/http"
	"strings"
	"sync"

	"github.com/minio/minio-go/v7"
)

// The sizes of parts. The first 4,000 have the same size, because some servers require
// that of all parts; after them, each 500 parts are larger by a step, so that 10,000,
// which is the limit of S3, hold more than 1 TiB.
const (
	maxParts   = 10_000
	firstParts = 4_000
	stepParts  = 500
	firstSize  = 8 << 20
	stepSize   = 25 << 20
)

// partSize returns the size of the part with a number; the first has number 1.
func partSize(number int) int {
	if number <= firstParts {
		return firstSize
	}
	return firstSize + stepSize*((number-firstParts-1)/stepParts+1)
}

// part is a piece of an archive and its checksums.
type part struct {
	number int
	data   []byte
	md5    [md5.Size]byte
	sha256 [sha256.Size]byte
}

func newPart(number int, data []byte) part {
	return part{number, data, md5.Sum(data), sha256.Sum256(data)}
}

func (p part) checksum() string { return base64.StdEncoding.EncodeToString(p.sha256[:]) }

// send uploads the part once and verifies what the server received.
func (p part) send(ctx context.Context, s *S3, u *upload) (minio.CompletePart, error) {
	var header http.Header
	options := minio.PutObjectPartOptions{
		Md5Base64: base64.StdEncoding.EncodeToString(p.md5[:]), Sha256Hex: hex.EncodeToString(p.sha256[:]),
		DisableContentSha256: true, // sign the sum, and not each chunk of the body
	}
	if u.checksums {
		options.CustomHeader = http.Header{"X-Amz-Checksum-Sha256": {p.checksum()}}
	}
	data := &body{reader: bytes.NewReader(p.data)}
	defer data.Close()
	got, err := s.core.PutObjectPart(context.WithValue(ctx, headerKey{}, &header), s.options.Bucket, u.object, u.id, p.number, data, int64(len(p.data)), options)
	if err == nil {
		err = p.verify(got, header)
	}
	done := minio.CompletePart{PartNumber: p.number, ETag: got.ETag}
	if u.checksums {
		done.ChecksumSHA256 = p.checksum()
	}
	return done, err
}

var (
	errAltered    = errors.New("the server received other bytes than were sent")
	errUnverified = errors.New("the server returns no checksum of what it received")
)

// verify compares what the server reports with the part. The client trusts the server:
// an ETag of altered bytes would become part of the archive. The ETag is the MD5 of the
// part, unless the server encrypts with a key of its key management.
func (p part) verify(got minio.ObjectPart, header http.Header) error {
	if got.ChecksumSHA256 != "" && got.ChecksumSHA256 != p.checksum() {
		return errAltered
	}
	if strings.HasPrefix(header.Get("X-Amz-Server-Side-Encryption"), "aws:kms") {
		if got.ChecksumSHA256 == "" {
			return errUnverified
		}
		return nil
	}
	if got.ETag != hex.EncodeToString(p.md5[:]) {
		return errAltered
	}
	return nil
}

// body is the body of one request. After Close nothing reads the part any more: the
// transport may still read a body when its request has returned.
type body struct {
	mu     sync.Mutex
	reader *bytes.Reader
}

func (b *body) Read(into []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.reader == nil {
		return 0, errors.New("the request has ended")
	}
	return b.reader.Read(into)
}

func (b *body) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reader = nil
	return nil
}
