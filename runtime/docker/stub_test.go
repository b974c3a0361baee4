package docker

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// stub is an Engine whose Docker is a function. It negotiates by itself.
func stub(t *testing.T, answer http.HandlerFunc) *Engine {
	t.Helper()
	return stubOf(t, ping(answer))
}

// stubOf is stub for a function that answers pings too.
func stubOf(t *testing.T, answer http.HandlerFunc) *Engine {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	server := &http.Server{Handler: answer, BaseContext: func(net.Listener) context.Context { return ctx }}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(l)
	}()
	c := Config{Host: "unix://" + socket, StoreID: "s", StallLimit: time.Hour, Keeper: filepath.Join(t.TempDir(), "keeper"), Volumes: t.TempDir()}
	require.NoError(t, os.WriteFile(c.Keeper, nil, 0o755))
	e, err := New(c, nil, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	t.Cleanup(func() {
		cancel()
		_ = server.Close()
		<-done
		require.NoError(t, e.Close())
	})
	return e
}

func ping(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/_ping") {
			w.Header().Set("Api-Version", "1.41")
			return
		}
		next(w, r)
	}
}

// hang answers when the client leaves or the test ends.
func hang(r *http.Request) { <-r.Context().Done() }
