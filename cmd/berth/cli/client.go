package cli

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	v1 "berth/api/v1"
)

// clientTimeout bounds one request. POST /containers may wait for its image.
const clientTimeout = 60 * time.Second

// maxAnswer bounds what is read of an answer, in bytes.
const maxAnswer = 64 << 20

// client speaks to a daemon through its interface.
type client struct {
	base  *url.URL
	token v1.Secret
	at    string      // what named the address, for a person
	from  string      // what named the token
	tls   *tls.Config // nil: the system's
	http  *http.Client
}

func newClient(base *url.URL, token v1.Secret, at, from string, config *tls.Config) *client {
	transport := &http.Transport{TLSClientConfig: config, Proxy: http.ProxyFromEnvironment}
	return &client{base: base, token: token, at: at, from: from, tls: config,
		http: &http.Client{Transport: transport, Timeout: clientTimeout}}
}

// refused is an answer that is no success.
type refused struct {
	status  int
	message string
	code    string
}

func (r *refused) Error() string { return r.message }

// isStatus says whether err is a refusal with this status.
func isStatus(err error, status int) bool {
	var r *refused
	return errors.As(err, &r) && r.status == status
}

// headers are those of every request.
func (c *client) headers() http.Header {
	h := http.Header{"Accept": {"Application/vnd.berthv1+json"}}
	if c.token != "" {
		h.Set("Authorization", "Bearer "+c.token.Reveal())
	}
	return h
}

// get reads a resource. raw is the JSON as it came; into may be nil.
func (c *client) get(ctx context.Context, path string, into any) (raw []byte, err error) {
	return c.call(ctx, http.MethodGet, path, nil, into)
}

// call sends a request; a nil body is none. What is no 2xx is an error that
// says what to do about it.
func (c *client) call(ctx context.Context, method, path string, body, into any) ([]byte, error) {
	raw, err := c.exchange(ctx, method, path, body)
	if err != nil {
		return nil, c.explain(err)
	}
	if into != nil {
		if err := json.Unmarshal(raw, into); err != nil {
			return nil, fmt.Errorf("what answers at %s does not speak as berth does: %w; name the daemon with --url or --config", c.base, err)
		}
	}
	return raw, nil
}

func (c *client) exchange(ctx context.Context, method, path string, body any) ([]byte, error) {
	var reader io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		reader = bytes.NewReader(text)
	}
	request, err := http.NewRequestWithContext(ctx, method, c.base.String()+path, reader)
	if err != nil {
		return nil, err
	}
	request.Header = c.headers()
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err == nil && response.StatusCode/100 != 2 {
		err = refusalOf(response, raw)
	}
	return raw, err
}

// refusalOf reads {"error": ...}, or makes do with the status.
func refusalOf(response *http.Response, raw []byte) error {
	var body struct{ Error string }
	_ = json.Unmarshal(raw, &body) // anything else has no text
	return &refused{response.StatusCode, cmp.Or(body.Error, response.Status), response.Header.Get("X-Error-Code")}
}

// explain adds to an error what can be done about it.
func (c *client) explain(err error) error {
	var r *refused
	var op *net.OpError
	var failed *url.Error
	switch {
	case errors.As(err, &r) && r.status == http.StatusUnauthorized:
		return fmt.Errorf("%w (at %s); the token came from %s: name the right one with --config or BERTH_TOKEN", err, c.base, c.from)
	case r != nil:
		return err
	case errors.Is(err, context.Canceled):
		return err
	case errors.As(err, &op) && op.Op == "dial":
		return fmt.Errorf("no daemon answers at %s (from %s): %w; start it with make run or berth serve, or name another with --url or --config",
			c.base, c.at, op.Err)
	case errors.As(err, &failed) && failed.Timeout():
		return fmt.Errorf("the daemon at %s did not answer in time", c.base)
	case failed != nil:
		return fmt.Errorf("%s (from %s): %w; see whether the address and http or https are right", c.base, c.at, failed.Err)
	}
	return err
}
