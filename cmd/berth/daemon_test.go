package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/cmd/berth/config"
)

// TestPartThatEndsEndsDaemon: a daemon never goes on without one of its parts.
func TestPartThatEndsEndsDaemon(t *testing.T) {
	c := v1.Defaults()
	c.Authorization.Token = "berth_00000000000000000000000000000001"
	c.Storage.DataPath = filepath.Join(t.TempDir(), "data")
	c.Firewall.Backend, c.Docker.Host = v1.BackendNone, "unix:///does/not/exist"
	c.Complete()
	d, err := newDaemon(config.NewSettings(config.Loaded{Config: c}, nil), slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	d.part("broken", func(context.Context) error { return errors.New("lost its place") })
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.EqualError(t, d.run(t.Context(), ln, nil, nil), "broken ended: lost its place")
	require.Error(t, d.store.Update(nil), "the store is closed")
}

func TestRunParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var order []string
		lasting := func(name string, slow time.Duration) part {
			return part{name, func(ctx context.Context) error {
				<-ctx.Done()
				time.Sleep(slow)
				order = append(order, name)
				return errors.New("interrupted")
			}}
		}
		healthy, loop := lasting("healthy", 0), lasting("loop", time.Second)
		shutdown := func() { order = append(order, "shutdown") }
		ended := make(chan error)
		go func() { ended <- runParts(ctx, []part{healthy}, []part{loop}, shutdown) }()
		synctest.Wait()
		cancel()
		require.NoError(t, <-ended, "what parts return when they are stopped is no fault")
		require.Equal(t, []string{"shutdown", "loop", "healthy"}, order, "requests end first, and a step may use the parts until it ends")

		early := part{"early", func(context.Context) error { return nil }}
		require.EqualError(t, runParts(t.Context(), []part{healthy, early}, nil, shutdown), "early ended: it has to run until berth stops")
	})
}
