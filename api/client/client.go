package client

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
	"strconv"
	"strings"
	"time"

	v1 "berth/api/v1"
)

// Vendor is the media type that requests name in Accept.
const Vendor = "Application/vnd.berthv1+json"

// DefaultTimeout bounds a request. Creating a container may wait for its image.
const DefaultTimeout = 60 * time.Second

// maxBody bounds how much of a response is read, in bytes.
const maxBody = 64 << 20

// Options configure a Client.
type Options struct {
	URL     string        // such as http://127.0.0.1:8070
	Token   v1.Secret     // empty: requests carry no token
	Key     string        // Idempotency-Key of each POST; empty: none
	TLS     *tls.Config   // nil: Go's defaults
	Dialer  *net.Dialer   // of every connection, without a proxy; nil: Go's defaults
	Timeout time.Duration // of one request but those whose method may take any time; 0: DefaultTimeout

	// Retry is the mean time between two attempts of Watch and Follow to reconnect,
	// 1 s if it is 0. If it is negative, they end with the first error instead. OnRetry,
	// if not nil, is called before each attempt.
	Retry   time.Duration
	OnRetry func(err error)

	// Observe, if not nil, is called with each complete response. It must not read
	// the bodies of request and response.
	Observe func(request *http.Request, response *http.Response, body []byte)
}

// Client calls one daemon.
type Client struct {
	base    *url.URL
	options Options
	http    *http.Client
}

// New returns a client of the daemon at o.URL. It does not connect.
func New(o Options) (*Client, error) {
	base, err := url.Parse(strings.TrimRight(o.URL, "/"))
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
		return nil, fmt.Errorf("%q is not a URL such as http://127.0.0.1:8070", o.URL)
	}
	if port := base.Port(); port != "" {
		if _, err := strconv.ParseUint(port, 10, 16); err != nil {
			return nil, fmt.Errorf("%q is not a URL such as http://127.0.0.1:8070: its port %s is not in 1 to 65535", o.URL, port)
		}
	}
	o.Timeout, o.Retry = cmp.Or(o.Timeout, DefaultTimeout), cmp.Or(o.Retry, time.Second)
	transport := &http.Transport{TLSClientConfig: o.TLS, Proxy: http.ProxyFromEnvironment, MaxIdleConnsPerHost: 16}
	if o.Dialer != nil {
		transport.DialContext, transport.Proxy = o.Dialer.DialContext, nil
	}
	return &Client{base: base, options: o, http: &http.Client{Transport: transport, Timeout: o.Timeout}}, nil
}

// WithToken returns a client of the same daemon with another token. It shares the connections.
func (c *Client) WithToken(token v1.Secret) *Client {
	other := *c
	other.options.Token = token
	return &other
}

// WithKey returns a client of the same daemon whose POSTs carry an Idempotency-Key: one that is repeated with the
// same key is not carried out again. It shares the connections.
func (c *Client) WithKey(key string) *Client {
	other := *c
	other.options.Key = key
	return &other
}

// Close closes the idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// URL returns the address of the daemon.
func (c *Client) URL() string { return c.base.String() }

// Header returns the headers of every request: the token and the vendor media type.
func (c *Client) Header() http.Header {
	h := http.Header{"Accept": {Vendor}}
	if c.options.Token != "" {
		h.Set("Authorization", "Bearer "+c.options.Token.Reveal())
	}
	return h
}

// Containers returns the calls for containers.
func (c *Client) Containers() Containers { return Containers{c} }

// Volumes returns the calls for volumes.
func (c *Client) Volumes() Volumes { return Volumes{c} }

// Files returns the calls for the files of volumes.
func (c *Client) Files() Files { return Files{c} }

// Ports returns the calls for the port pool.
func (c *Client) Ports() Ports { return Ports{c} }

// Tokens returns the calls for access tokens.
func (c *Client) Tokens() Tokens { return Tokens{c} }

// Events returns the calls for stored transitions.
func (c *Client) Events() Events { return Events{c} }

// Audit returns the calls for the audit log.
func (c *Client) Audit() Audit { return Audit{c} }

// Backups returns the calls for backups of volumes.
func (c *Client) Backups() Backups { return Backups{c} }

// Transfers returns the calls for transfers of containers to other nodes.
func (c *Client) Transfers() Transfers { return Transfers{c} }

// Arrivals returns the calls for containers that arrive from other nodes.
func (c *Client) Arrivals() Arrivals { return Arrivals{c} }

// Schedules returns the calls for schedules.
func (c *Client) Schedules() Schedules { return Schedules{c} }

// Node returns the host of a daemon, its engine, and the resources that are allocated there.
func (c *Client) Node(ctx context.Context) (n v1.Node, err error) {
	err = c.get(ctx, "/node", &n)
	return n, err
}

// Ready returns nil if the daemon is ready. The message of an *Error with status 503
// names the reasons why it is not.
func (c *Client) Ready(ctx context.Context) error { return c.get(ctx, "/readyz", nil) }

func (c *Client) get(ctx context.Context, path string, into any) error {
	return c.Call(ctx, http.MethodGet, path, nil, into)
}

// Call sends a request for which this package has no method. body is sent as JSON
// unless it is nil. The response is decoded into the value that into points to
// unless it is nil; a *[]byte receives it as it is.
func (c *Client) Call(ctx context.Context, method, path string, body, into any) error {
	request, err := c.request(ctx, method, path, body)
	if err != nil {
		return err
	}
	return c.send(request, into)
}

// work is Call for a request that the daemon answers when it has done all of it, which may take any time.
func (c *Client) work(ctx context.Context, method, path string, body, into any) error {
	patient := *c
	patient.http = &http.Client{Transport: c.http.Transport}
	return patient.Call(ctx, method, path, body, into)
}

// list sends a GET, and returns one field of the response.
func list[T any](ctx context.Context, c *Client, path, name string) (value T, err error) {
	var answer map[string]json.RawMessage
	err = c.Call(ctx, http.MethodGet, path, nil, &answer)
	return field[T](answer, name, err)
}

// made sends a POST, and returns one field of the response.
func made[T any](ctx context.Context, c *Client, path string, body any, name string) (value T, err error) {
	var answer map[string]json.RawMessage
	err = c.Call(ctx, http.MethodPost, path, body, &answer)
	return field[T](answer, name, err)
}

// field returns one field of a response, or the error of its request.
func field[T any](answer map[string]json.RawMessage, name string, err error) (value T, _ error) {
	if err != nil || answer[name] == nil {
		return value, err
	}
	if err := json.Unmarshal(answer[name], &value); err != nil {
		return value, fmt.Errorf("%w: %w", ErrNotBerth, err)
	}
	return value, nil
}

func (c *Client) send(request *http.Request, into any) error {
	response, err := c.http.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	return receive(c.options, request, response, into)
}

// receive reads a complete response and decodes it into the value that into points to
// unless it is nil.
func receive(o Options, request *http.Request, response *http.Response, into any) error {
	text, err := io.ReadAll(io.LimitReader(response.Body, maxBody+1))
	if err != nil {
		return err
	}
	if len(text) > maxBody {
		return fmt.Errorf("the response is larger than %s", v1.Size(maxBody))
	}
	if o.Observe != nil {
		o.Observe(request, response, text)
	}
	if response.StatusCode/100 != 2 {
		return errorOf(response, text)
	}
	if into == nil {
		return nil
	}
	if raw, ok := into.(*[]byte); ok {
		*raw = text
		return nil
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("%w: %w", ErrNotBerth, err)
	}
	return nil
}

func (c *Client) request(ctx context.Context, method, path string, body any) (*http.Request, error) {
	var reader io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		reader = bytes.NewReader(text)
	}
	request, err := http.NewRequestWithContext(ctx, method, c.URL()+path, reader)
	if err != nil {
		return nil, err
	}
	request.Header = c.Header()
	if method == http.MethodPost {
		setIf(request.Header, "Idempotency-Key", c.options.Key)
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	return request, nil
}

// query returns "?" and the parameters that are not empty, given as pairs.
func query(pairs ...string) string {
	var parameters []string
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			parameters = append(parameters, pairs[i]+"="+url.QueryEscape(pairs[i+1]))
		}
	}
	if len(parameters) == 0 {
		return ""
	}
	return "?" + strings.Join(parameters, "&")
}

// labelQuery returns the parameters that select objects with these labels.
func labelQuery(labels []string) string {
	if len(labels) == 0 {
		return ""
	}
	return "?" + url.Values{"label": labels}.Encode()
}

// ErrNotBerth is the error for a response that a berth daemon does not send.
var ErrNotBerth = errors.New("the response is not that of a berth daemon")

// Error is a response whose status is not 2xx.
type Error struct {
	Status    int
	Code      v1.Code // of X-Error-Code; empty if the response has none
	Message   string
	RequestID string // names the request in the daemon's log
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// HTTPStatus returns the status.
func (e *Error) HTTPStatus() int { return e.Status }

// Is reports whether target is a *v1.Error with the same code.
func (e *Error) Is(target error) bool {
	t, ok := target.(*v1.Error)
	return ok && e.Code != "" && t.Code == e.Code
}

// StatusOf returns the status of an *Error, and 0 for any other error.
func StatusOf(err error) int {
	var e *Error
	if errors.As(err, &e) {
		return e.Status
	}
	return 0
}

// errorOf returns the error of a response: its {"error": ...}, or its status line.
func errorOf(response *http.Response, text []byte) error {
	var body struct{ Error string }
	_ = json.Unmarshal(text, &body) // a proxy may send anything
	return &Error{Status: response.StatusCode, Message: cmp.Or(body.Error, response.Status),
		Code: v1.Code(response.Header.Get("X-Error-Code")), RequestID: response.Header.Get("X-Request-Id")}
}
