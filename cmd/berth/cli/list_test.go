package cli

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"

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
