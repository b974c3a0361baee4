package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"berth/store"
)

// TestWatchdog reads the notifications as the service manager does.
func TestWatchdog(t *testing.T) {
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(t.TempDir(), "s"), Net: "unixgram"})
	require.NoError(t, err)
	defer socket.Close()
	t.Setenv("NOTIFY_SOCKET", socket.LocalAddr().String())
	t.Setenv("WATCHDOG_USEC", "30000")
	s, err := store.Open("", store.Options{})
	require.NoError(t, err)
	d := supervised{s, &atomic.Pointer[health]{}, slog.New(slog.DiscardHandler)}
	read := func() string {
		b := make([]byte, 256)
		require.NoError(t, socket.SetReadDeadline(time.Now().Add(time.Minute)))
		n, err := socket.Read(b)
		require.NoError(t, err)
		return string(b[:n])
	}
	done := d.reloading()
	require.True(t, strings.HasPrefix(read(), "RELOADING=1"))
	done()
	require.Equal(t, "READY=1", read())

	ctx, cancel := context.WithCancel(t.Context())
	fed := make(chan error, 1)
	go func() { fed <- d.feedWatchdog(ctx) }()
	require.Equal(t, "WATCHDOG=1", read())
	require.NoError(t, s.Close())
	require.Equal(t, "WATCHDOG=1", read(), "a store that refuses writes is not a reason to restart")
	cancel()
	require.NoError(t, <-fed)

	require.True(t, d.works())
	d.health.Store(&health{at: time.Now().Add(-healthStale), err: errors.New("away")})
	require.False(t, d.works(), "the loop that checks the engine has stopped")
	d.health.Store(&health{at: time.Now(), err: errors.New("away")})
	require.True(t, d.works(), "an absent engine is not a reason to restart")
}
