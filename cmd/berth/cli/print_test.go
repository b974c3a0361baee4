package cli

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestNames(t *testing.T) {
	f := newFakeAPI(t, map[string]string{
		"GET /containers":    `200 {"containers":[{"internal_id":"a"},{"internal_id":"b"}]}`,
		"GET /network/ports": `200 {"ports":[{"ip":"::","port":1,"protocol":"tcp"}]}`,
		"GET /volumes":       `200 {"volumes":[{"volume_id":"v"}]}`, "POST /volumes": `201 {"volume_id":"w"}`,
		"POST /containers/a/stop": `200 {"message":"done"}`,
	})
	for line, want := range map[string]string{"containers": "a\nb\n", "ports": "[::]:1/tcp\n", "volumes": "v\n", "volumes create": "w\n", "stop a": "a\n"} {
		out, _, err := command(t, f.env(), append(strings.Fields(line), "-o", "name")...)
		require.NoError(t, err)
		require.Equal(t, want, out)
	}
}

func TestYAMLDocuments(t *testing.T) {
	f := newFakeAPI(t, map[string]string{"POST /containers/a/stop": `200 {"message":"one"}`, "POST /containers/b/stop": `200 {"message":"two"}`})
	out, _, err := command(t, f.env(), "stop", "a", "b", "-o", "yaml")
	require.NoError(t, err)
	require.Equal(t, "---\nmessage: one\n---\nmessage: two\n", out)
}

// syncBuffer is a buffer that is read while a command writes to it.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// background runs a command until stop is called, which returns its error.
func background(t *testing.T, do func(ctx context.Context) error) (stop func() error) {
	t.Helper()
	stop, _ = run(t, do)
	return stop
}

// run runs a command. stop interrupts it; both functions wait for its error.
func run(t *testing.T, do func(ctx context.Context) error) (stop, wait func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- do(ctx) }()
	t.Cleanup(cancel)
	wait = func() error { return <-done }
	return func() error {
		cancel()
		return wait()
	}, wait
}

// TestEmptyLists print a sentence on standard error, and JSON on standard output.
func TestEmptyLists(t *testing.T) {
	f := newFakeAPI(t, map[string]string{"GET /volumes": `200 {"volumes":[]}`, "GET /volumes?label=a%3Db": `200 {"volumes":[]}`,
		"GET /network/ports": `200 {"ports":[]}`, "GET /auth/tokens": `200 {"tokens":[]}`, "GET /backups": `200 {"backups":[]}`,
		"GET /readyz": "200 {}", "GET /events?since=99999&limit=1000": `200 {"events":[],"newest":3}`,
		"GET /events?type=pull&last=50": `200 {"events":[],"newest":3}`})
	for args, want := range map[string]string{
		"volumes":              "There are no volumes.\n",
		"ports":                "There are no ports; berth ports add adds some.\n",
		"token list":           "There are no tokens but that of the configuration.\n",
		"backup list":          "There are no backups.\n",
		"volumes -l a=b":       "There are no volumes with the label a=b.\n",
		"events --since 99999": "There are no such events.\n",
		"events --type pull":   "There are no such events.\n",
	} {
		out, errOut, err := command(t, f.env(), strings.Fields(args)...)
		require.NoError(t, err, "%s: %q", args, f.seen())
		require.Empty(t, out, args)
		require.Equal(t, want, errOut, args)
		out, errOut, err = command(t, f.env(), append(strings.Fields(args), "-o", "json")...)
		require.NoError(t, err, args)
		require.Contains(t, out, "[]", args)
		require.Empty(t, errOut, args)
	}
}

// TestTimesAreLocalWithTheirZone: people read local times, and berth logs --since reads what
// a table prints. JSON has what the daemon sent.
func TestTimesAreLocalWithTheirZone(t *testing.T) {
	at := time.Date(2026, 11, 22, 23, 30, 0, 0, time.UTC)
	text := dateOf(at.Format(time.RFC3339))
	require.Equal(t, at.In(time.Local).Format("2006-01-02 15:04:05 -0700"), text)
	require.Equal(t, "soon", dateOf("soon"))
	for _, printed := range []string{text, at.In(time.Local).Format(timeFormat)} {
		read, err := parseTime(printed, time.Time{})
		require.NoError(t, err)
		require.True(t, at.Equal(read), printed)
	}

	f := newFakeAPI(t, map[string]string{"GET /auth/tokens": `200 {"tokens":[{"id":"k","scopes":["read"],"expires_at":"2026-11-22T23:30:00Z"}]}`})
	out, _, err := command(t, f.env(), "token", "list")
	require.NoError(t, err)
	require.Contains(t, out, "  "+text+"\n")
	out, _, err = command(t, f.env(), "token", "list", "-o", "json")
	require.NoError(t, err)
	require.Contains(t, out, "2026-11-22T23:30:00Z")
}

// TestDeletedPortsAreOneResult: a range of more ports than one request names has one result.
func TestDeletedPortsAreOneResult(t *testing.T) {
	f := newFakeAPI(t, map[string]string{"POST /network/ports/bulk-delete": `200 {"deleted_count":3,"skipped":[]}`})
	out, _, err := command(t, f.env(), "ports", "delete", "::", "1-4001")
	require.NoError(t, err)
	require.Len(t, f.seen(), 2)
	require.Equal(t, "6 deleted\n", out)
}

func TestAge(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for ago, want := range map[time.Duration]string{
		-time.Second: "0s", 0: "0s", 59 * time.Second: "59s", time.Minute: "1m00s", 61 * time.Minute: "1h01m",
		47*time.Hour + 59*time.Minute: "47h59m", 48 * time.Hour: "2d", 80 * time.Hour: "3d",
	} {
		require.Equal(t, want, age(now.Add(-ago), now))
	}
	require.Empty(t, age(time.Time{}, now))
}
