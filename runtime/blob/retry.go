package blob

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/minio/minio-go/v7"
)

// The requests of S3, as errors and Retried name them.
const (
	requestCreate   = "create upload"
	requestPart     = "upload part"
	requestComplete = "complete upload"
	requestAbort    = "abort upload"
	requestList     = "list uploads"
	requestStat     = "stat"
	requestGet      = "download"
	requestDelete   = "delete"
)

// Requests returns the names of all requests that may be repeated.
func Requests() []string {
	return []string{requestCreate, requestPart, requestComplete, requestAbort, requestList, requestStat, requestGet, requestDelete}
}

// limits are the times of S3.
type limits struct {
	stall   time.Duration // a request without progress for this time is given up
	first   time.Duration // before the first repetition; it doubles
	longest time.Duration // between two repetitions
	total   time.Duration // after it, a request that failed is not repeated
	clean   time.Duration // for the removal of what a failed Put left
	leave   time.Duration // the same after the context of Put has ended
	settle  time.Duration // until a server has finished a request that was given up
}

func defaultLimits() limits {
	return limits{stall: 30 * time.Second, first: 500 * time.Millisecond, longest: 15 * time.Second,
		total: 2 * time.Minute, clean: time.Minute, leave: 3 * time.Second, settle: time.Second}
}

// retry calls try until it succeeds, its error is permanent, ctx ends or the time is
// over. It returns the last error without the URL.
func (s *S3) retry(ctx context.Context, request string, try func(context.Context) error) error {
	return s.retryFor(ctx, request, s.limits.total, try)
}

func (s *S3) retryFor(ctx context.Context, request string, total time.Duration, try func(context.Context) error) error {
	wait := backoff.NewExponentialBackOff(backoff.WithInitialInterval(s.limits.first),
		backoff.WithMultiplier(2), backoff.WithMaxInterval(s.limits.longest), backoff.WithMaxElapsedTime(total))
	err := backoff.RetryNotify(func() error {
		err := try(ctx)
		if err != nil && (ctx.Err() != nil || isPermanent(request, err)) {
			return backoff.Permanent(err)
		}
		return err
	}, backoff.WithContext(wait, ctx), func(err error, _ time.Duration) { s.options.Retried(request, plain(request, err)) })
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return fmt.Errorf("s3: %s: %w", request, cause)
	}
	return plain(request, err)
}

// damaged are the errors of a request that was changed on its way. When parts are sent,
// the signature of an earlier request was right.
var (
	damaged     = []string{"BadDigest", "InvalidDigest", "XAmzContentSHA256Mismatch", "XAmzContentChecksumMismatch", "IncompleteBody", "RequestTimeout"}
	damagedBody = append([]string{"SignatureDoesNotMatch", "InvalidPart", "MalformedXML"}, damaged...)
)

// isPermanent reports whether the same request would fail again.
func isPermanent(request string, err error) bool {
	var certificate *tls.CertificateVerificationError
	if errors.As(err, &certificate) || errors.Is(err, ErrNotFound) || errors.Is(err, errChanged) {
		return true
	}
	var response minio.ErrorResponse
	if !errors.As(err, &response) {
		return false
	}
	switch response.StatusCode {
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooManyRequests, 499: // 499: nginx lost the client
		return false
	case http.StatusNotImplemented, http.StatusHTTPVersionNotSupported:
		return true
	}
	isRefusal := response.StatusCode >= 300 && response.StatusCode < 500
	if request == requestPart || request == requestComplete {
		return isRefusal && !slices.Contains(damagedBody, response.Code)
	}
	return isRefusal && !slices.Contains(damaged, response.Code)
}

// codeOf returns the code of an error of the server, or an empty string.
func codeOf(err error) string {
	var response minio.ErrorResponse
	errors.As(err, &response)
	return response.Code
}

// plain names the request in an error, without the URL, whose query may be a signature,
// and without addresses: the owner of a backup reads the error too.
func plain(request string, err error) error {
	if err == nil {
		return nil
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
