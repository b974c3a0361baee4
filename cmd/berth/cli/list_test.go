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

func volume(id, size string) string { return `{"volume_id":"` + id + `","size":` + size + `}` }

// TestWatchPrintsChanges watches into a file: each volume that changes is a row.
func TestWatchPrintsChanges(t *testing.T) {
	t.Parallel()
	f := newFakeAPI(t, map[string]string{"GET /volumes": `200 {"volumes":[` + volume("a", "1") + `,` + volume("b", "2") + `]}`})
	for output, want := range map[string]string{
		"table": "VOLUME NAME SIZE LIMIT USED BY READY CREATED a - 1B no limit - false 1970-01-01 b - 2B no limit - false 1970-01-01 b - 3B no limit - false 1970-01-01 c - 4B no limit - false 1970-01-01",
		"name":  "a b b c",
		"json":  strings.Join([]string{volume("a", "1"), volume("b", "2"), volume("b", "3"), volume("c", "4")}, " "),
	} {
		f.set("GET /volumes", `200 {"volumes":[`+volume("a", "1")+`,`+volume("b", "2")+`]}`)
		var out syncBuffer
		stop := background(t, func(ctx context.Context) error {
			root := NewRoot(Options{Environ: f.env()})
			root.SetArgs([]string{"volumes", "--watch", "-o", output})
			root.SetOut(&out)
			return root.ExecuteContext(ctx)
		})
		require.Eventually(t, func() bool { return strings.Contains(out.String(), "b") }, 20*time.Second, time.Millisecond)
		f.set("GET /volumes", `200 {"volumes":[`+volume("b", "3")+`,`+volume("c", "4")+`]}`)
		require.Eventually(t, func() bool { return strings.Contains(out.String(), "c") && strings.Count(out.String(), "b") > 1 }, 20*time.Second, time.Millisecond)
		require.NoError(t, stop(), "an interrupt is no error")
		got := strings.ReplaceAll(out.String(), date(time.Unix(0, 0)), "1970-01-01")
		require.Equal(t, want, strings.Join(strings.Fields(got), " "))
	}
}

// TestWatchEndsWithDaemon watches a daemon that is gone: into a file that is an error.
func TestWatchEndsWithDaemon(t *testing.T) {
	_, _, err := command(t, []string{"BERTH_URL=http://127.0.0.1:1", "BERTH_TOKEN=x"}, "volumes", "-w")
	require.Equal(t, exitUnavailable, ExitCode(err))
}

// TestWatchOnTerminal shows a list anew in place, and survives a daemon that is away.
func TestWatchOnTerminal(t *testing.T) {
	t.Parallel()
	many := make([]string, 40)
	for i := range many {
		many[i] = volume("volume-with-a-name", "1")
	}
	f := newFakeAPI(t, map[string]string{"GET /volumes": `200 {"volumes":[` + strings.Join(many, ",") + `]}`})
	tty := openTerminal(t, 60, 10)
	stop := background(t, func(ctx context.Context) error {
		root := NewRoot(Options{Environ: f.env()})
		root.SetArgs([]string{"volumes", "-w"})
		root.SetOut(Printable(tty.File))
		return root.ExecuteContext(ctx)
	})
	tty.until(t, "…\x1b[K\r\n\x1b[J")
	require.True(t, strings.HasPrefix(tty.shown(), "\x1b[2J\x1b[HVOLUME"), "%q", tty.shown())
	require.Equal(t, 9, strings.Count(tty.shown(), "\r\n"), "the list is cut to the terminal's height")
	f.set("GET /volumes", `503 {"error":"Service is shutting down"}`)
	tty.until(t, "\x1b[Hberth: Service is shutting down\x1b[K\r\n\x1b[J")
	f.set("GET /volumes", `200 {"volumes":[`+volume("evil\x7f\u009b2J", "1")+`]}`)
	tty.until(t, "\x1b[HVOLUME")
	tty.until(t, "evil  2J")
	require.NoError(t, stop())
	f.set("GET /volumes", `403 {"error":"Token lacks the scope"}`)
	root := NewRoot(Options{Environ: f.env()})
	root.SetArgs([]string{"volumes", "-w"})
	root.SetOut(Printable(tty.File))
	require.Equal(t, exitDenied, ExitCode(root.ExecuteContext(t.Context())))
}

// TestEmptyLists print a sentence on standard error, and JSON on standard output.
func TestEmptyLists(t *testing.T) {
	f := newFakeAPI(t, map[string]string{"GET /volumes": `200 {"volumes":[]}`, "GET /volumes?label=a%3Db": `200 {"volumes":[]}`,
		"GET /readyz": "200 {}", "GET /events?since=99999&limit=1000": `200 {"events":[],"newest":3}`,
		"GET /events?since=0&type=pull&limit=1000": `200 {"events":[],"newest":3}`})
	for args, want := range map[string]string{
		"volumes":              "There are no volumes.\n",
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
