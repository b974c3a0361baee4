package remote

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
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
	return resultOfResponse(resp)
}
