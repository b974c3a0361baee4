package enginetest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
)

// answerIn is the time limit for each answer of an engine.
const answerIn = 60 * time.Second

// Client is a client of one engine.
type Client struct {
	socket string
	http   *http.Client
}

// Socket returns the path of the shared engine's socket: that of DOCKER_HOST,
// else /var/run/docker.sock.
func Socket() string {
	if path, ok := strings.CutPrefix(os.Getenv("DOCKER_HOST"), "unix://"); ok {
		return path
	}
	return "/var/run/docker.sock"
}

// Shared returns a client of the shared engine. It fails the test if the engine
// answers none of three pings; the machine may be very busy.
func Shared(t testing.TB) *Client {
	t.Helper()
	c := NewClient(Socket())
	err := c.Ping(t.Context())
	for range 2 {
		if err != nil {
			err = c.Ping(t.Context())
		}
	}
	if err != nil {
		t.Fatalf("no engine answers at %s (%v): run hack/docker.sh", Socket(), err)
	}
	t.Cleanup(c.http.CloseIdleConnections)
	t.Logf("engine: Docker %s", c.Version(t))
	return c
}

// NewClient returns a client of the engine with this socket.
func NewClient(socket string) *Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}
	return &Client{socket: socket, http: &http.Client{Transport: &http.Transport{DialContext: dial}, Timeout: answerIn}}
}

// Host returns the engine's address in the form of DOCKER_HOST.
func (c *Client) Host() string { return "unix://" + c.socket }

// Ping returns nil if the engine answers within 5 seconds.
func (c *Client) Ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://engine/_ping", nil)
	if err != nil {
		return err
	}
	answer, err := c.http.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("ping answered %s", answer.Status)
	}
	return nil
}

// Version returns the engine's version, such as "28.5.2+dfsg4".
func (c *Client) Version(t testing.TB) string {
	t.Helper()
	var version struct{ Version string }
	decode(t, c.Must(t, http.MethodGet, "/version", nil), &version)
	return version.Version
}

// Do sends a request and returns the answer. body is nil, an io.Reader that is
// sent unchanged, or a value that is sent as JSON. header holds pairs of name and
// value. Do fails the test only if the engine does not answer.
func (c *Client) Do(t testing.TB, method, path string, body any, header ...string) (status int, answer []byte) {
	t.Helper()
	// Cleanup functions call this too, after the test's context has ended.
	request, err := http.NewRequestWithContext(context.WithoutCancel(t.Context()), method, "http://engine"+path, reader(t, body))
	if err != nil {
		t.Fatal(err)
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	response, err := c.http.Do(request)
	if err != nil {
		t.Fatalf("engine: %v", err)
	}
	defer response.Body.Close()
	answer, err = io.ReadAll(response.Body)
	if err != nil {
		t.Fatalf("engine: %s %s: %v", method, path, err)
	}
	return response.StatusCode, answer
}

// Must is Do that fails the test unless the status is 2xx or 304.
func (c *Client) Must(t testing.TB, method, path string, body any, header ...string) []byte {
	t.Helper()
	status, answer := c.Do(t, method, path, body, header...)
	if status >= 300 && status != http.StatusNotModified {
		t.Fatalf("engine: %s %s: %d %s", method, path, status, answer)
	}
	return answer
}

func reader(t testing.TB, body any) io.Reader {
	switch body := body.(type) {
	case nil:
		return nil
	case io.Reader:
		return body
	default:
		encoded, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		return bytes.NewReader(encoded)
	}
}
