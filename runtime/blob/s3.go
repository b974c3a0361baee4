package blob

import (
	"context"
	"errors"
	"fmt"
	"mime"
	"net"
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
}

// S3 is a Target in a bucket.
type S3 struct {
	core    *minio.Core
	options S3Options
	limits  limits
}

// limits bound how long S3 tries.
type limits struct {
	stall    time.Duration // a request without progress for this time is given up
	attempts int           // of each request; the client waits up to 1 s between two of them
	partSize int
	settle   time.Duration // until a server has finished a request that was given up
}

// defaultLimits survive an outage of about 10 s. S3 permits 10,000 parts, which hold 625 GiB.
func defaultLimits() limits {
	return limits{stall: 30 * time.Second, attempts: 20, partSize: 64 << 20, settle: time.Second}
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
	lookup := minio.BucketLookupAuto
	if o.PathStyle {
		lookup = minio.BucketLookupPath
	}
	core, err := minio.NewCore(u.Host, &minio.Options{
		Creds: credentials.NewStaticV4(o.AccessKey, o.SecretKey, ""), Secure: u.Scheme == "https",
		Region: o.Region, BucketLookup: lookup, Transport: newTransport(l.stall), MaxRetries: l.attempts,
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
	once, err := newS3(s.options, limits{stall: s.limits.stall, attempts: 1})
	if err != nil {
		return err
	}
	_, err = once.core.ListMultipartUploads(ctx, s.options.Bucket, s.options.Prefix, "", "", "", 1)
	return plain(ctx, "list uploads", err)
}

// Presign implements Presigner.
func (s *S3) Presign(ctx context.Context, key, filename string, ttl time.Duration) (string, error) {
	if err := checkKey(key); err != nil {
		return "", err
	}
	parameters := url.Values{"response-content-disposition": {mime.FormatMediaType("attachment", map[string]string{"filename": filename})}}
	u, err := s.core.PresignedGetObject(ctx, s.options.Bucket, s.object(key), ttl, parameters)
	if err != nil {
		return "", plain(ctx, "presign", err)
	}
	return u.String(), nil
}

// Delete implements Target.
func (s *S3) Delete(ctx context.Context, key string) error {
	if err := s.Abort(ctx, key); err != nil {
		return err
	}
	err := s.core.RemoveObject(ctx, s.options.Bucket, s.object(key), minio.RemoveObjectOptions{})
	return plain(ctx, "delete", err)
}

// Abort implements Target.
func (s *S3) Abort(ctx context.Context, key string) error {
	if err := checkKey(key); err != nil {
		return err
	}
	err := s.core.RemoveIncompleteUpload(ctx, s.options.Bucket, s.object(key))
	if codeOf(err) == minio.NoSuchUpload { // a request that is repeated has succeeded before
		return nil
	}
	return plain(ctx, "abort uploads", err)
}

// codeOf returns the code of an error of the server, or an empty string.
func codeOf(err error) string {
	var response minio.ErrorResponse
	errors.As(err, &response)
	return response.Code
}

// plain names the request in an error, without the URL, whose query may be a signature,
// and without addresses: the tenant reads the error too. The end of ctx is its cause.
func plain(ctx context.Context, request string, err error) error {
	if err == nil {
		return nil
	}
	if cause := context.Cause(ctx); cause != nil {
		return fmt.Errorf("s3: %s: %w", request, cause)
	}
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	var network *net.OpError
	if errors.As(err, &network) {
		err = fmt.Errorf("%s: %w", network.Op, network.Err)
	}
	var name *net.DNSError
	if errors.As(err, &name) {
		err = errors.New("lookup: " + name.Err)
	}
	if code := codeOf(err); code != "" {
		return fmt.Errorf("s3: %s: %s: %w", request, code, err)
	}
	return fmt.Errorf("s3: %s: %w", request, err)
}
