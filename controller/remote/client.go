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
	requestTime = 30 * time.Second // for the whole of one request
	dialTime    = 10 * time.Second
	maxAnswer   = 64 << 10 // bytes read of an answer, for the sake of the connection
)

// reason is why the panel did not take a batch, and a metric's label.
type reason string

const (
	accepted     reason = ""
	unreachable  reason = "unreachable"  // no connection, or it broke
	timeout      reason = "timeout"      // no answer in time
	serverError  reason = "server_error" // 5xx
	busy         reason = "busy"         // 408, 425, 429
	unauthorized reason = "unauthorized" // 401, 403, 407: remote.token is wrong
	missing      reason = "not_found"    // 404, 405, 410: remote.url is wrong
	redirected   reason = "redirect"     // 3xx: remote.url has moved
	refused      reason = "refused"      // any other 4xx: it does not like the content
	storeFailed  reason = "store"        // the cursor could not be read or moved
)

var reasons = []reason{unreachable, timeout, serverError, busy, unauthorized, missing, redirected, refused, storeFailed}

// slow says that only an operator can help.
func (r reason) slow() bool { return r == unauthorized || r == missing || r == redirected }

// verdict is what came of one request.
type verdict struct {
	reason     reason
	detail     string // for the log; neither token nor URL
	retryAfter time.Duration
}

type client struct {
	http      http.Client
	userAgent string
}

// newClient uses transport, or one of its own.
func newClient(transport http.RoundTripper, version string) *client {
	if transport == nil {
		transport = &http.Transport{
			Proxy:               http.ProxyFromEnvironment,
			DialContext:         (&net.Dialer{Timeout: dialTime}).DialContext,
			TLSHandshakeTimeout: dialTime,
			MaxIdleConns:        2,
			IdleConnTimeout:     90 * time.Second,
			ForceAttemptHTTP2:   true,
		}
	}
	// A redirect is an answer like another: the token goes where it was meant to.
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &client{http: http.Client{Transport: transport, CheckRedirect: stay}, userAgent: "berth/" + version}
}

func (c *client) close() { c.http.CloseIdleConnections() }

// post sends one batch.
func (c *client) post(ctx context.Context, target v1.RemoteConfig, body []byte) verdict {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, target.URL, bytes.NewReader(body))
	if err != nil {
		return verdict{reason: missing, detail: "remote.url cannot be used"}
	}
	req.Header.Set("Authorization", "Bearer "+target.Token.Reveal())
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", c.userAgent)
	resp, err := c.http.Do(req)
	if err != nil {
		return broken(err)
	}
	defer resp.Body.Close()
	io.CopyN(io.Discard, resp.Body, maxAnswer) // the status was the answer: how the rest ends does not matter
	return judge(resp)
}

// broken is a request without an answer. The URL is taken out of its text: it
// may hold a secret of the panel's.
func broken(err error) verdict {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	var slow net.Error
	if errors.Is(err, context.DeadlineExceeded) || errors.As(err, &slow) && slow.Timeout() {
		return verdict{reason: timeout, detail: err.Error()}
	}
	return verdict{reason: unreachable, detail: err.Error()}
}

// judge reads an answer's status.
func judge(resp *http.Response) verdict {
	v := verdict{detail: fmt.Sprintf("HTTP %d", resp.StatusCode)}
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

// retryAfter reads seconds or a date. What is neither, or past, is 0.
func retryAfter(text string) time.Duration {
	if seconds, err := strconv.Atoi(text); err == nil {
		return time.Duration(min(max(0, seconds), int(longestAsked/time.Second))) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(0, time.Until(at))
	}
	return 0
}
