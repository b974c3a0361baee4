package panel

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v4"

	v1 "berth/api/v1"
)

// The times of a call.
const (
	firstPause = 500 * time.Millisecond
	maxPause   = 12 * time.Second
	allTries   = 30 * time.Second
)

// maxAnswer bounds an answer of the panel, in bytes: a page has 50 servers.
const maxAnswer = 64 << 20

// Identity is as whom a node calls its panel.
type Identity struct {
	TokenID string
	Token   v1.Secret
	Agent   string // User-Agent of requests
}

// Options configure a Client.
type Options struct {
	Identity
	Remote  string        // base address of the panel
	Timeout time.Duration // of one try
	PerPage int           // servers in one answer
	Headers map[string]string

	Transport http.RoundTripper // nil: Go's
}

// Client calls one panel.
type Client struct {
	o    Options
	as   atomic.Pointer[Identity]
	http *http.Client
}

// New returns a client of a panel. It does not connect.
func New(o Options) *Client {
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	c := &Client{o: o, http: &http.Client{Transport: o.Transport, Timeout: o.Timeout, CheckRedirect: stay}}
	c.Become(o.Identity)
	return c
}

// Become has all calls from now on made as another identity.
func (c *Client) Become(i Identity) { c.as.Store(&i) }

// Error is an answer of the panel that is not 2xx.
type Error struct {
	Status int
	Detail string // in the panel's words
}

// Error returns the status and the panel's words.
func (e *Error) Error() string {
	return fmt.Sprintf("the panel answered %d %s", e.Status, cmp.Or(e.Detail, http.StatusText(e.Status)))
}

// IsFinal reports whether the panel has refused a call, so that it is useless to try it again.
func IsFinal(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Status/100 == 4
}

// IsInvalid reports whether the panel has refused what a call sent, and not the node that sent it.
func IsInvalid(err error) bool {
	var e *Error
	invalid := []int{http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity}
	return errors.As(err, &e) && slices.Contains(invalid, e.Status)
}

// call sends a request, and again while the panel has no answer. into receives the answer unless it
// is nil.
func (c *Client) call(ctx context.Context, method, path string, body, into any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	pauses := backoff.NewExponentialBackOff(backoff.WithInitialInterval(firstPause),
		backoff.WithMaxInterval(maxPause), backoff.WithMaxElapsedTime(allTries))
	return backoff.Retry(func() error {
		err := c.once(ctx, method, path, text, into)
		if IsFinal(err) {
			return backoff.Permanent(err)
		}
		return err
	}, backoff.WithContext(pauses, ctx))
}

func (c *Client) once(ctx context.Context, method, path string, body []byte, into any) error {
	var reader io.Reader
	if method != http.MethodGet {
		reader = bytes.NewReader(body)
	}
	request, err := http.NewRequestWithContext(ctx, method, c.o.Remote+"/api/remote"+path, reader)
	if err != nil {
		return err
	}
	for name, value := range c.o.Headers {
		request.Header.Set(name, value)
	}
	as := c.as.Load()
	request.Header.Set("Authorization", "Bearer "+as.TokenID+"."+as.Token.Reveal())
	request.Header.Set("User-Agent", as.Agent)
	request.Header.Set("Accept", "application/json")
	request.Header.Set("Content-Type", "application/json")
	response, err := c.http.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	switch {
	case err != nil:
		return err
	case response.StatusCode/100 != 2:
		return errorOf(response.StatusCode, text)
	case len(text) > maxAnswer:
		return fmt.Errorf("the panel's answer is larger than %s", v1.Size(maxAnswer))
	case into == nil:
		return nil
	}
	if err := json.Unmarshal(text, into); err != nil {
		return backoff.Permanent(fmt.Errorf("the panel's answer to %s %s: %w", method, path, err))
	}
	return nil
}

// errorOf returns the error of an answer, whose details are in a list.
func errorOf(status int, text []byte) error {
	var body struct{ Errors []struct{ Detail string } }
	_ = json.Unmarshal(text, &body) // a proxy may send anything
	e := &Error{Status: status}
	if len(body.Errors) > 0 {
		e.Detail = strings.ToValidUTF8(body.Errors[0].Detail, "")
		e.Detail = e.Detail[:min(len(e.Detail), 500)]
	}
	return e
}
