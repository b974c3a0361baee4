package berthtest

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"testing"
	"time"

	"berth/hack/openapitest"
)

// Vendor is the media type that requests carry in Accept.
const Vendor = "Application/vnd.berthv1+json"

// Client speaks with a daemon as a panel does.
type Client struct {
	Addr  string // host:port
	Token string

	t       testing.TB
	http    *http.Client
	secrets *secrets
}

// NewClient makes a client of the daemon at addr.
func NewClient(t testing.TB, addr, token string) *Client {
	transport := &http.Transport{MaxIdleConnsPerHost: 16}
	t.Cleanup(transport.CloseIdleConnections)
	return &Client{Addr: addr, Token: token, t: t, http: &http.Client{Transport: transport, Timeout: 60 * time.Second}, secrets: newSecrets()}
}

// Answer is a response that was read to its end.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// Try sends a request, with the token and the vendor header. header holds pairs
// that replace or, with an empty value, remove headers. body is nil, a string
// sent as it is, or a value sent as JSON. It returns an error if there is no
// answer, or only a part of one.
func (c *Client) Try(ctx context.Context, method, path string, body any, header ...string) (Answer, error) {
	request, err := http.NewRequestWithContext(ctx, method, "http://"+c.Addr+path, reader(body))
	if err != nil {
		return Answer{}, err
	}
	request.Header.Set("Authorization", "Bearer "+c.Token)
	request.Header.Set("Accept", Vendor)
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
		if header[i+1] == "" {
			request.Header.Del(header[i])
		}
	}
	response, err := c.http.Do(request)
	if err != nil {
		return Answer{}, err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return Answer{}, err
	}
	openapitest.Check(c.t, request, response, answer)
	whole := Answer{response.StatusCode, response.Header, answer}
	c.secrets.answered(whole)
	return whole, nil
}

// Do is Try that fails the test if there is no answer.
func (c *Client) Do(t testing.TB, method, path string, body any, header ...string) Answer {
	t.Helper()
	answer, err := c.Try(c.background(), method, path, body, header...)
	if err != nil {
		t.Fatalf("berth: %s %s: %v", method, path, err)
	}
	return answer
}

// Must is Do that fails the test unless the status is 2xx.
func (c *Client) Must(t testing.TB, method, path string, body any, header ...string) Answer {
	t.Helper()
	answer := c.Do(t, method, path, body, header...)
	if answer.Status >= 300 {
		t.Fatalf("berth: %s %s: %d %s", method, path, answer.Status, answer.Body)
	}
	return answer
}

// Post is Must with POST.
func (c *Client) Post(t testing.TB, path string, body any) Answer {
	t.Helper()
	return c.Must(t, "POST", path, body)
}

// Get reads JSON.
func (c *Client) Get(t testing.TB, path string, into any) {
	t.Helper()
	c.Must(t, "GET", path, nil).Decode(t, into)
}

// background is a context that outlives the test's, for cleanups.
func (c *Client) background() context.Context { return context.WithoutCancel(c.t.Context()) }

// Decode reads the answer's JSON.
func (a Answer) Decode(t testing.TB, into any) {
	t.Helper()
	if err := json.Unmarshal(a.Body, into); err != nil {
		t.Fatalf("berth answered what does not fit: %v: %.300s", err, a.Body)
	}
}

func reader(body any) io.Reader {
	switch body := body.(type) {
	case nil:
		return nil
	case string:
		return bytes.NewReader([]byte(body))
	default:
		text, _ := json.Marshal(body) // tests send plain data
		return bytes.NewReader(text)
	}
}
