package berthtest

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"testing"

	"berth/api/client"
	v1 "berth/api/v1"
	"berth/hack/test/openapitest"
)

// Client calls a daemon as a panel does.
type Client struct {
	API   *client.Client // for typed calls
	Addr  string         // host:port
	Token string

	t       testing.TB
	http    *http.Client
	secrets *secrets
}

// NewClient returns a client of the daemon at addr. Every response that it receives is
// checked against the OpenAPI document.
func NewClient(t testing.TB, addr, token string) *Client {
	t.Helper()
	transport := &http.Transport{MaxIdleConnsPerHost: 16}
	t.Cleanup(transport.CloseIdleConnections)
	c := &Client{Addr: addr, Token: token, t: t, http: &http.Client{Transport: transport, Timeout: client.DefaultTimeout},
		secrets: newSecrets()}
	api, err := client.New(client.Options{URL: "http://" + addr, Token: v1.Secret(token), Observe: c.observe})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(api.Close)
	c.API = api
	return c
}

// observe checks a response, and keeps the secrets and the refusal in it.
func (c *Client) observe(request *http.Request, response *http.Response, body []byte) {
	openapitest.Check(c.t, request, response, body)
	c.secrets.answered(Answer{response.StatusCode, response.Header, body})
}

// Answer is a complete response.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// Try sends a request that API cannot send, with the token and the vendor header.
// header holds pairs that replace or, with an empty value, remove headers. body is
// nil, a string that is sent unchanged, or a value that is sent as JSON. Try returns an
// error if there is no complete response.
func (c *Client) Try(ctx context.Context, method, path string, body any, header ...string) (Answer, error) {
	request, err := http.NewRequestWithContext(ctx, method, "http://"+c.Addr+path, reader(body))
	if err != nil {
		return Answer{}, err
	}
	request.Header.Set("Authorization", "Bearer "+c.Token)
	request.Header.Set("Accept", client.Vendor)
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
	c.observe(request, response, answer)
	return Answer{response.StatusCode, response.Header, answer}, nil
}

// Do calls Try and fails the test if there is no response.
func (c *Client) Do(t testing.TB, method, path string, body any, header ...string) Answer {
	t.Helper()
	answer, err := c.Try(c.background(), method, path, body, header...)
	if err != nil {
		t.Fatalf("berth: %s %s: %v", method, path, err)
	}
	return answer
}

// Must calls Do and fails the test unless the status is 2xx.
func (c *Client) Must(t testing.TB, method, path string, body any, header ...string) Answer {
	t.Helper()
	answer := c.Do(t, method, path, body, header...)
	if answer.Status >= 300 {
		t.Fatalf("berth: %s %s: %d %s", method, path, answer.Status, answer.Body)
	}
	return answer
}

// Post calls Must with POST.
func (c *Client) Post(t testing.TB, path string, body any) Answer {
	t.Helper()
	return c.Must(t, "POST", path, body)
}

// Get decodes the response of a GET.
func (c *Client) Get(t testing.TB, path string, into any) {
	t.Helper()
	c.Must(t, "GET", path, nil).Decode(t, into)
}

// background returns a context that outlives the test's, for cleanups.
func (c *Client) background() context.Context { return context.WithoutCancel(c.t.Context()) }

// Decode decodes the JSON of a response.
func (a Answer) Decode(t testing.TB, into any) {
	t.Helper()
	if err := json.Unmarshal(a.Body, into); err != nil {
		t.Fatalf("berth: %v in %.300s", err, a.Body)
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
