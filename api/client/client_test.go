package client

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/hack/test/openapitest"
)

func TestErrors(t *testing.T) {
	c, _ := serve(t, 404, `{"error":"Container not found"}`)
	_, err := c.Containers().Get(t.Context(), "mc")
	require.Equal(t, &Error{404, v1.ContainerNotFound, "Container not found", "r1"}, err)
	require.ErrorIs(t, err, v1.ErrContainerNotFound)
	require.NotErrorIs(t, err, v1.ErrVolumeNotFound)
	require.Equal(t, 404, StatusOf(err))
	require.Zero(t, StatusOf(io.EOF))

	c, _ = serve(t, 502, "<html>")
	require.EqualError(t, c.Ready(t.Context()), "502 Bad Gateway")
	c, _ = serve(t, 200, "pong")
	_, err = c.Volumes().List(t.Context())
	require.ErrorIs(t, err, ErrNotBerth)
}

func TestNewRefusesBadURL(t *testing.T) {
	for _, bad := range []string{"", "127.0.0.1:8070", "ftp://a", "http://", "http://127.0.0.1:22222222", "http://127.0.0.1:65536"} {
		_, err := New(Options{URL: bad})
		require.ErrorContains(t, err, "is not a URL such as", bad)
	}
}

func TestTimeout(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer server.Close()
	c, err := New(Options{URL: server.URL, Timeout: 20 * time.Millisecond})
	require.NoError(t, err)
	require.ErrorContains(t, c.Ready(t.Context()), "Timeout")
}

// TestWorkTakesAnyTime: what the daemon answers when it has done it is not ended by the timeout, but by its context.
func TestWorkTakesAnyTime(t *testing.T) {
	began, done := make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/readyz" {
			<-r.Context().Done()
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
		began <- struct{}{}
		select {
		case <-done:
			_, _ = w.Write([]byte("{}"))
		case <-r.Context().Done():
		}
	}))
	defer server.Close()
	c, err := New(Options{URL: server.URL, Timeout: 20 * time.Millisecond})
	require.NoError(t, err)
	for name, do := range map[string]func(context.Context) error{
		"copy":   func(ctx context.Context) error { return c.Files().Copy(ctx, "v", "a", "b") },
		"delete": func(ctx context.Context) error { return c.Files().Delete(ctx, "v", "a") },
		"compress": func(ctx context.Context) error {
			_, err := c.Files().Compress(ctx, "v", v1.Compression{})
			return err
		},
		"decompress": func(ctx context.Context) error {
			_, err := c.Files().Decompress(ctx, "v", v1.Decompression{})
			return err
		},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- do(ctx) }()
		<-began
		require.ErrorContains(t, c.Ready(t.Context()), "Timeout") // so it has taken longer than the timeout
		select {
		case err := <-ended:
			require.NoError(t, err, name)
			t.Fatal(name, "has ended")
		case done <- struct{}{}:
		}
		require.NoError(t, <-ended, name)
		go func() { ended <- do(ctx) }()
		<-began
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled, name)
	}
}

func TestObserve(t *testing.T) {
	c, _ := serve(t, 404, `{"error":"Container not found"}`)
	var seen string
	c.options.Observe = func(q *http.Request, p *http.Response, body []byte) {
		seen = q.URL.Path + " " + p.Status + " " + string(body)
	}
	require.Error(t, c.Containers().Send(t.Context(), "mc", "say hi"))
	require.Equal(t, `/containers/mc/command 404 Not Found {"error":"Container not found"}`, seen)
}

// call is a call and the request that it sends.
type call struct {
	want string
	do   func(ctx context.Context, c *Client) error
}

func calls() []call {
	script := "true"
	return []call{
		{"GET /containers?label=a%3Db&label=c", func(ctx context.Context, c *Client) error { _, err := c.Containers().List(ctx, "a=b", "c"); return err }},
		{"GET /containers?stats=true", func(ctx context.Context, c *Client) error { _, err := c.Containers().ListMeasured(ctx); return err }},
		{"GET /containers/..%2Fx", func(ctx context.Context, c *Client) error { _, err := c.Containers().Get(ctx, "../x"); return err }},
		{`POST /containers {"internal_id":"mc","image":"a:1","volume_id":"v"}`, func(ctx context.Context, c *Client) error {
			return c.Containers().Create(ctx, v1.ContainerSpec{InternalID: "mc", Image: "a:1", VolumeID: "v"})
		}},
		{`PUT /containers/mc {"internal_id":"mc","limits":{"memory":1,"cpu":0.5},"stop":{"timeout":"5s"},"restart_policy":{"mode":"never"},"power":"running"}`,
			func(ctx context.Context, c *Client) error {
				spec := v1.ContainerSpec{InternalID: "mc", Limits: v1.Limits{Memory: 1, CPU: 0.5}, Stop: v1.Stop{Timeout: v1.Duration(5 * time.Second)},
					RestartPolicy: v1.RestartPolicy{Mode: v1.RestartNever}, Power: v1.PowerOn}
				_, err := c.Containers().Apply(ctx, spec, ApplyOptions{})
				return err
			}},
		{`PUT /containers/mc?dry_run=true {"internal_id":"mc"}`, func(ctx context.Context, c *Client) error {
			_, err := c.Containers().DryRun(ctx, v1.ContainerSpec{InternalID: "mc"})
			return err
		}},
		{"DELETE /containers/mc?volume=true", func(ctx context.Context, c *Client) error {
			_, err := c.Containers().Delete(ctx, "mc", DeleteOptions{Volume: true})
			return err
		}},
		{"POST /containers/mc/restart", func(ctx context.Context, c *Client) error {
			_, err := c.Containers().Do(ctx, "mc", Restart)
			return err
		}},
		{`POST /containers/mc/reinstall {"image":"b","install_script":"true"}`, func(ctx context.Context, c *Client) error {
			return c.Containers().Reinstall(ctx, "mc", v1.ReinstallRequest{Image: new("b"), InstallScript: &script})
		}},
		{`POST /containers/mc/command {"command":"say"}`, func(ctx context.Context, c *Client) error { return c.Containers().Send(ctx, "mc", "say") }},
		{"GET /containers/mc/stats", func(ctx context.Context, c *Client) error { _, err := c.Containers().Stats(ctx, "mc"); return err }},
		{"GET /volumes/v", func(ctx context.Context, c *Client) error { _, err := c.Volumes().Get(ctx, "v"); return err }},
		{"POST /volumes {}", func(ctx context.Context, c *Client) error {
			_, err := c.Volumes().Create(ctx, v1.VolumeSpec{})
			return err
		}},
		{"DELETE /volumes/v", func(ctx context.Context, c *Client) error { return c.Volumes().Delete(ctx, "v") }},
		{"GET /network/ports/::1/5?protocol=udp", func(ctx context.Context, c *Client) error {
			_, err := c.Ports().Get(ctx, v1.PortRef{IP: "::1", Port: 5, Protocol: "udp"})
			return err
		}},
		{`POST /network/ports {"ip":"::","port":5,"protocol":"tcp"}`, func(ctx context.Context, c *Client) error {
			return c.Ports().Add(ctx, v1.PortRef{IP: "::", Port: 5, Protocol: "tcp"})
		}},
		{"DELETE /auth/tokens/t", func(ctx context.Context, c *Client) error { return c.Tokens().Revoke(ctx, "t") }},
		{"GET /events?since=7&epoch=e&container=mc&type=event&limit=2", func(ctx context.Context, c *Client) error {
			_, err := c.Events().List(ctx, Cursor{7, "e"}, 2, EventFilter{Container: "mc", Type: v1.EventState})
			return err
		}},
	}
}

// fileCalls are the calls for files.
func fileCalls() []call {
	return []call{
		{"GET /volumes/v/files?path=a+b%2Fc", func(ctx context.Context, c *Client) error { _, err := c.Files().List(ctx, "v", "a b/c"); return err }},
		{"GET /volumes/v/files", func(ctx context.Context, c *Client) error { _, err := c.Files().List(ctx, "v", ""); return err }},
		{"GET /volumes/v/files/search?query=level&path=w", func(ctx context.Context, c *Client) error {
			_, err := c.Files().Search(ctx, "v", "w", "level")
			return err
		}},
		{`POST /volumes/v/folders {"path":"a"}`, func(ctx context.Context, c *Client) error { return c.Files().Mkdir(ctx, "v", "a") }},
		{`POST /volumes/v/rename {"destination":"b","source":"a"}`, func(ctx context.Context, c *Client) error { return c.Files().Rename(ctx, "v", "a", "b") }},
		{`POST /volumes/v/chmod {"mode":"0755","path":"a"}`, func(ctx context.Context, c *Client) error { return c.Files().Chmod(ctx, "v", "a", "0755") }},
		{"DELETE /volumes/v/files?path=a%26b", func(ctx context.Context, c *Client) error { return c.Files().Delete(ctx, "v", "a&b") }},
		{"PUT /volumes/v/files/content?path=a hello", func(ctx context.Context, c *Client) error {
			_, err := c.Files().Upload(ctx, "v", "a", strings.NewReader("hello"), UploadOptions{})
			return err
		}},
		{"PUT /volumes/v/files/content?path=a", func(ctx context.Context, c *Client) error {
			_, err := c.Files().Upload(ctx, "v", "a", strings.NewReader(""), UploadOptions{})
			return err
		}},
	}
}

// logCalls are calls for consoles.
func logCalls() []call {
	return []call{
		{"GET /containers/mc/logs?tail=3&since=1970-01-01T00%3A00%3A01Z", func(ctx context.Context, c *Client) error {
			_, err := c.Containers().Logs(ctx, "mc", LogOptions{Tail: 3, Since: time.Unix(1, 0)})
			return err
		}},
		{"GET /containers/mc/install-logs?tail=3&before=1970-01-01T00%3A00%3A01.000000002Z", func(ctx context.Context, c *Client) error {
			_, err := c.Containers().Logs(ctx, "mc", LogOptions{Tail: 3, Before: time.Unix(1, 2), Install: true})
			return err
		}},
		{"GET /containers/mc/logs?tail=3&since_line=1.2", func(ctx context.Context, c *Client) error {
			_, err := c.Containers().Logs(ctx, "mc", LogOptions{Tail: 3, SinceLine: "1.2"})
			return err
		}},
		{"GET /containers/mc/logs/content", func(ctx context.Context, c *Client) error {
			return c.Containers().LogContent(ctx, "mc", io.Discard)
		}},
	}
}

func TestRequests(t *testing.T) {
	for _, x := range slices.Concat(calls(), fileCalls(), logCalls()) {
		c, requests := serve(t, 200, "{}")
		require.NoError(t, x.do(t.Context(), c), x.want)
		require.Equal(t, []string{x.want}, *requests)
	}
}

// keys returns the fields of a struct that clients know, sorted.
func keys(t reflect.Type) (names []string) {
	for _, f := range v1.Fields(t) {
		if f.Access != "-" {
			names = append(names, f.Name)
		}
	}
	slices.Sort(names)
	return names
}

// TestTypesMatchOpenAPI compares the fields of each type with those of its schema.
func TestTypesMatchOpenAPI(t *testing.T) {
	document := openapitest.Document(t)
	for name, kind := range map[string]any{"ContainerRequest": v1.ContainerSpec{}, "ContainerSummary": v1.ContainerSummary{}, "DryRunResult": v1.Changes{}, "Volume": v1.VolumeView{},
		"VolumeRequest": v1.VolumeSpec{}, "VolumeChange": v1.VolumeChange{},
		"Port": v1.PoolPort{}, "TokenRequest": v1.TokenRequest{}, "CreatedToken": v1.NewToken{}, "Token": v1.TokenView{}, "EventList": v1.EventList{}, "AuditEntry": v1.AuditEntry{}, "StateMessage": Message{},
		"Container": v1.ContainerView{}, "ReinstallRequest": v1.ReinstallRequest{}} {
		var want []string
		require.Contains(t, document.Components.Schemas, name)
		for key := range document.Components.Schemas[name].Value.Properties {
			want = append(want, key)
		}
		switch name {
		case "Container": // is a ContainerSpec too
			want = append(want, "install_script")
		case "StateMessage": // is any other message too
			want = append(want, "since_line", "times", "backup", "restore", "pull", "schedule", "transfer", "moved_to", "volume", "uid", "users")
		case "ContainerSummary": // a client reads Stats
			want = slices.DeleteFunc(want, func(key string) bool { return key == "stats" })
		}
		slices.Sort(want)
		require.Equal(t, want, keys(reflect.TypeOf(kind)), name)
	}
}

// TestWithKey: a POST has the key, so that berth carries it out once; other requests have none.
func TestWithKey(t *testing.T) {
	var keys []string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		keys = append(keys, r.Method+" "+r.Header.Get("Idempotency-Key"))
	}))
	t.Cleanup(server.Close)
	c, err := New(Options{URL: server.URL})
	require.NoError(t, err)
	for _, c := range []*Client{c, c.WithKey("k")} {
		for _, method := range []string{http.MethodPost, http.MethodPut} {
			require.NoError(t, c.Call(t.Context(), method, "/", nil, nil))
		}
	}
	require.Equal(t, []string{"POST ", "PUT ", "POST k", "PUT "}, keys)
}
