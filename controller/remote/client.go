package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	v1 "berth/api/v1"
)

const (
	requestTimeout = 30 * time.Second // for one request with its response
	dialTimeout    = 10 * time.Second
	maxResponse    = 64 << 10 // bytes read of a response body, so that the connection can be reused
)

// client sends batches to the panel.
type client struct {
	http      http.Client
	userAgent string
}

// newClient returns a client that uses transport, or a new one if transport is nil.
func newClient(transport http.RoundTripper, version string) *client {
	if transport == nil {
		transport = &http.Transport{
			Proxy:               http.ProxyFromEnvironment,
			DialContext:         (&net.Dialer{Timeout: dialTimeout}).DialContext,
			TLSHandshakeTimeout: dialTimeout,
			MaxIdleConns:        2,
			IdleConnTimeout:     90 * time.Second,
			ForceAttemptHTTP2:   true,
		}
	}
	// No redirect is followed, so that the token reaches only the configured host.
	noRedirect := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &client{http: http.Client{Transport: transport, CheckRedirect: noRedirect}, userAgent: "berth/" + version}
}

func (c *client) close() { c.http.CloseIdleConnections() }

// post sends one batch.
func (c *client) post(ctx context.Context, target v1.RemoteConfig, body []byte) result {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, target.URL, bytes.NewReader(body))
	if err != nil {
		return result{reason: missing, detail: "remote.url is not a valid URL"}
	}
	req.Header.Set("Authorization", "Bearer "+target.Token.Reveal())
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", c.userAgent)
	resp, err := c.http.Do(req)
	if err != nil {
		return resultOfError(err)
	}
	defer resp.Body.Close()
	io.CopyN(io.Discard, resp.Body, maxResponse) // only the status matters: an error of the body is ignored
	v := result{reason: reasonOf(resp.StatusCode), detail: fmt.Sprintf("HTTP %d", resp.StatusCode)}
	if v.reason == busy || v.reason == serverError {
		v.retryAfter = retryAfter(resp.Header.Get("Retry-After"))
	}
	return v
}

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

// reasonOf returns the reason that a status means.
func reasonOf(status int) reason {
	special := map[int]reason{401: unauthorized, 403: unauthorized, 407: unauthorized,
		404: missing, 405: missing, 410: missing, 408: busy, 425: busy, 429: busy}
	switch {
	case status < 300:
		return accepted
	case status < 400:
		return redirected
	case special[status] != "":
		return special[status]
	case status < 500:
		return refused
	}
	return serverError
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
