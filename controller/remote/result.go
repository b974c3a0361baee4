package remote

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// reason is why the panel did not accept a batch. It is the value of the metrics label.
type reason string

const (
	accepted     reason = ""
	unreachable  reason = "unreachable"  // no connection, or it was lost
	timeout      reason = "timeout"      // no response in time
	serverError  reason = "server_error" // 5xx
	busy         reason = "busy"         // 408, 425, 429
	unauthorized reason = "unauthorized" // 401, 403, 407: remote.token is wrong
	missing      reason = "not_found"    // 404, 405, 410: remote.url is wrong
	redirected   reason = "redirect"     // 3xx: remote.url has moved
	refused      reason = "refused"      // any other 4xx: the panel rejects the content
	storeFailed  reason = "store"        // the cursor could not be read or written
)

// failures returns all reasons but accepted.
func failures() []reason {
	return []reason{unreachable, timeout, serverError, busy, unauthorized, missing, redirected, refused, storeFailed}
}

// needsOperator reports whether only a change of the configuration can help.
func (r reason) needsOperator() bool { return r == unauthorized || r == missing || r == redirected }

// result is the outcome of one request.
type result struct {
	reason     reason
	detail     string // for the log; contains neither the token nor the URL
	retryAfter time.Duration
}

// resultOfError returns the result of a request without a response. It removes the URL
// from the error, because the URL may contain a secret.
func resultOfError(err error) result {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	var slow net.Error
	if errors.Is(err, context.DeadlineExceeded) || errors.As(err, &slow) && slow.Timeout() {
		return result{reason: timeout, detail: err.Error()}
	}
	return result{reason: unreachable, detail: err.Error()}
}

// resultOfResponse returns the result that the status of a response means.
func resultOfResponse(resp *http.Response) result {
	v := result{detail: fmt.Sprintf("HTTP %d", resp.StatusCode)}
	switch code := resp.StatusCode; {
	case code >= 200 && code < 300:
		v.reason = accepted
	case code < 400:
		v.reason = redirected
	case code == 401, code == 403, code == 407:
		v.reason = unauthorized
	case code == 404, code == 405, code == 410:
		v.reason = missing
	case code == 408, code == 425, code == 429:
		v.reason = busy
	case code < 500:
		v.reason = refused
	default:
		v.reason = serverError
	}
	if v.reason == busy || v.reason == serverError {
		v.retryAfter = retryAfter(resp.Header.Get("Retry-After"))
	}
	return v
}

// retryAfter parses a Retry-After header: seconds or a date. It returns 0 if the text is
// neither or the date is past, and at most maxRetryAfter.
func retryAfter(text string) time.Duration {
	if seconds, err := strconv.Atoi(text); err == nil {
		return time.Duration(min(max(0, seconds), int(maxRetryAfter/time.Second))) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(0, time.Until(at))
	}
	return 0
}
