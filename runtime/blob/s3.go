package blob

import (
	"context"
	"errors"
	"fmt"
	"mime"
	"net/url"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// S3Options describe a bucket and how it is reached.
type S3Options struct {
	Endpoint  string // http or https URL
	Region    string // empty: us-east-1
	Bucket    string
	Prefix    string // folder of the archives; empty: none
	AccessKey string
	SecretKey string
	PathStyle bool // the bucket stands in the path; otherwise as the host is known to have it

	// Retried is called before a request is repeated, if it is not nil. request is one
	// of Requests.
	Retried func(request string, err error)
}

// S3 is a Target in a bucket.
type S3 struct {
	core    *minio.Core
	options S3Options
	limits  limits
}

var _ interface {
	Target
	Presigner
} = (*S3)(nil)

// NewS3 returns the Target in a bucket. It sends no request.
func NewS3(o S3Options) (*S3, error) { return newS3(o, defaultLimits()) }

func newS3(o S3Options, l limits) (*S3, error) {
	u, err := url.Parse(o.Endpoint)
	if err != nil || u.Host == "" {
		return nil, fmt.Errorf("%q is not a URL of an S3 server", o.Endpoint)
	}
	if o.Prefix != "" && !strings.HasSuffix(o.Prefix, "/") {
		o.Prefix += "/"
	}
	if o.Region == "" {
		o.Region = "us-east-1" // the client would ask the server in a request of its own
	}
	if o.Retried == nil {
		o.Retried = func(string, error) {}
	}
	lookup := minio.BucketLookupAuto
	if o.PathStyle {
		lookup = minio.BucketLookupPath
	}
	core, err := minio.NewCore(u.Host, &minio.Options{
		Creds: credentials.NewStaticV4(o.AccessKey, o.SecretKey, ""), Secure: u.Scheme == "https",
		Region: o.Region, BucketLookup: lookup, Transport: newTransport(l.stall), MaxRetries: 1,
	})
	if err != nil {
		return nil, fmt.Errorf("s3: %w", err)
	}
	return &S3{core, o, l}, nil
}

func (s *S3) object(key string) string { return s.options.Prefix + key }

// Reach returns why the bucket cannot be used, as far as one request that changes
// nothing can find out. It does not repeat the request.
func (s *S3) Reach(ctx context.Context) error {
	_, err := s.core.ListMultipartUploads(ctx, s.options.Bucket, s.options.Prefix, "", "", "", 1)
	return plain("list uploads", err)
}

// Presign implements Presigner.
func (s *S3) Presign(ctx context.Context, key, filename string, ttl time.Duration) (string, error) {
	if err := checkKey(key); err != nil {
		return "", err
	}
	parameters := url.Values{"response-content-disposition": {mime.FormatMediaType("attachment", map[string]string{"filename": filename})}}
	u, err := s.core.PresignedGetObject(ctx, s.options.Bucket, s.object(key), ttl, parameters)
	if err != nil {
		return "", plain("presign", err)
	}
	return u.String(), nil
}

// Delete implements Target.
func (s *S3) Delete(ctx context.Context, key string) error {
	if err := s.Abort(ctx, key); err != nil {
		return err
	}
	return s.retry(ctx, requestDelete, func(ctx context.Context) error {
		return s.core.RemoveObject(ctx, s.options.Bucket, s.object(key), minio.RemoveObjectOptions{})
	})
}

// Abort implements Target.
func (s *S3) Abort(ctx context.Context, key string) error {
	if err := checkKey(key); err != nil {
		return err
	}
	return s.abortOthers(ctx, key, "")
}

// abortRounds bounds how often the uploads of a key are listed until none is left.
// One round is enough unless a request of a killed daemon is still in flight.
const abortRounds = 10

// abortOthers aborts the unfinished uploads of a key, except the one with the id keep.
func (s *S3) abortOthers(ctx context.Context, key, keep string) error {
	for range abortRounds {
		ids, err := s.uploads(ctx, key, keep)
		if err != nil || len(ids) == 0 {
			return err
		}
		for _, id := range ids {
			if err := s.abortUpload(ctx, key, id); err != nil {
				return err
			}
		}
	}
	return errors.New("s3: unfinished uploads of " + key + " appear again after they were aborted")
}

func (s *S3) abortUpload(ctx context.Context, key, id string) error {
	return s.retry(ctx, requestAbort, func(ctx context.Context) error {
		err := s.core.AbortMultipartUpload(ctx, s.options.Bucket, s.object(key), id)
		if codeOf(err) == minio.NoSuchUpload {
			return nil
		}
		return err
	})
}

// uploads returns the ids of the unfinished uploads of a key, except keep.
func (s *S3) uploads(ctx context.Context, key, keep string) (ids []string, err error) {
	object, keyMarker, idMarker := s.object(key), "", ""
	for {
		var page minio.ListMultipartUploadsResult
		err := s.retry(ctx, requestList, func(ctx context.Context) (err error) {
			page, err = s.core.ListMultipartUploads(ctx, s.options.Bucket, object, keyMarker, idMarker, "", 1000)
			return err
		})
		if err != nil {
			return nil, err
		}
		for _, u := range page.Uploads { // also those of keys that begin with this one
			if u.Key == object && u.UploadID != keep {
				ids = append(ids, u.UploadID)
			}
		}
		next := page.NextKeyMarker != keyMarker || page.NextUploadIDMarker != idMarker
		if !page.IsTruncated || !next {
			return ids, nil
		}
		keyMarker, idMarker = page.NextKeyMarker, page.NextUploadIDMarker
	}
}
