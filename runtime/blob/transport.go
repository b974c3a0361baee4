package blob

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"time"
)

// errStalled is the cause of a request that was given up.
var errStalled = errors.New("no progress")

// maxAnswer bounds the response to any request but a download, in bytes.
const maxAnswer = 8 << 20

// partLine is how many bytes of the completion of an upload name one part, at least. Some servers
// copy all parts before they answer, so that it may make no progress for a second more for each.
const partLine = 64

// transport gives up requests that make no progress: neither a byte of the body is
// sent, nor the header or a byte of the response received.
type transport struct {
	stall time.Duration
	base  *http.Transport
}

func newTransport(stall time.Duration) *transport {
	dialer := &net.Dialer{Timeout: min(stall, 10*time.Second), KeepAlive: 15 * time.Second}
	return &transport{stall, &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: dialer.DialContext, TLSHandshakeTimeout: min(stall, 10*time.Second),
		DisableCompression: true, // an archive is returned as it was stored
		MaxIdleConns:       8, MaxIdleConnsPerHost: 4, IdleConnTimeout: time.Minute, ForceAttemptHTTP2: true,
	}}
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(request *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(request.Context())
	stall, left := t.stall, int64(maxAnswer)
	switch query := request.URL.Query(); {
	case request.Method == http.MethodPost && query.Has("uploadId"):
		stall += time.Duration(request.ContentLength/partLine) * time.Second
	case request.Method == http.MethodGet && len(query) == 0:
		left = -1
	}
	timer := time.AfterFunc(stall, func() { cancel(errStalled) })
	request = request.WithContext(ctx)
	if request.Body != nil && request.Body != http.NoBody {
		request.Body = &progress{ReadCloser: request.Body, timer: timer, stall: stall, left: -1}
	}
	response, err := t.base.RoundTrip(request)
	if err != nil {
		timer.Stop()
		if errors.Is(context.Cause(ctx), errStalled) {
			err = errStalled
		}
		cancel(nil)
		return nil, err
	}
	timer.Reset(stall)
	response.Body = &progress{ReadCloser: response.Body, timer: timer, stall: stall, left: left,
		cause: func() error { return context.Cause(ctx) }, close: func() { cancel(nil) }}
	return response, nil
}

// progress is a body that restarts the timer with each read.
type progress struct {
	io.ReadCloser
	timer *time.Timer
	stall time.Duration
	left  int64        // bytes; below 0: no limit
	cause func() error // of the end of the request, for a response
	close func()       // ends the request, for a response
}

// Read implements io.Reader.
func (p *progress) Read(b []byte) (int, error) {
	if p.left >= 0 && int64(len(b)) > p.left {
		b = b[:p.left]
	}
	if p.left == 0 {
		return 0, errors.New("the response is too large")
	}
	n, err := p.ReadCloser.Read(b)
	if p.left > 0 {
		p.left -= int64(n)
	}
	if n > 0 {
		p.timer.Reset(p.stall)
	}
	if err != nil && p.cause != nil && errors.Is(p.cause(), errStalled) {
		err = errStalled
	}
	return n, err
}

// Close implements io.Closer.
func (p *progress) Close() error {
	err := p.ReadCloser.Close()
	if p.close != nil {
		p.timer.Stop()
		p.close()
	}
	return err
}
