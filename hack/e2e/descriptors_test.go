package e2e_test

import (
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"berth/hack/test/berthtest"
)

// TestHalfOpenConnections opens more connections than berth may have
// file descriptors, from three addresses and without a token.
func TestHalfOpenConnections(t *testing.T) {
	t.Parallel()
	b := berthtest.Start(t, berthtest.Options{})
	handles := limitHandles(t, b, 120)
	opened := 0
	for i := range 3 * handles {
		dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(2+i%3))}, Timeout: time.Minute}
		c, err := dialer.Dial("tcp", b.Addr)
		if err != nil {
			continue
		}
		opened++
		t.Cleanup(func() { _ = c.Close() })
		_, _ = c.Write([]byte("GET /healthz HTTP/1.1\r\nHost:"))
	}
	require.Greater(t, opened, handles)
	for range 20 {
		b.Must(t, "GET", "/containers", nil, "Connection", "close")
		b.Must(t, "GET", "/readyz", nil)
	}
	require.Equal(t, 201, b.Post(t, "/volumes", nil).Status, "the store and the volumes have handles left")
}

// TestNoFileDescriptorsLeft leaves berth no file descriptors for a while.
func TestNoFileDescriptorsLeft(t *testing.T) {
	t.Parallel()
	b := berthtest.Start(t, berthtest.Options{})
	before := handleLimit(t, b)
	setHandleLimit(t, b, 3)
	var waiting []net.Conn
	for range 5 {
		c, err := net.Dial("tcp", b.Addr)
		require.NoError(t, err)
		waiting = append(waiting, c)
	}
	berthtest.Until(t, 3*time.Minute, "berth logs that it has no handle", func() bool {
		return strings.Contains(b.Log(), "could not accept a connection")
	})
	setHandleLimit(t, b, before)
	for _, c := range waiting {
		require.NoError(t, c.Close())
	}
	b.Ready(t)
	b.Must(t, "GET", "/containers", nil)
}

// TestFileDescriptorLimitIsRaised: berth raises its soft limit of file descriptors to the
// hard limit.
func TestFileDescriptorLimitIsRaised(t *testing.T) {
	t.Parallel()
	var own unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &own))
	b := berthtest.Start(t, berthtest.Options{})
	require.Equal(t, own.Max, handleLimit(t, b))
}

// limitHandles lowers berth's limit of file descriptors to those that are open
// plus more, and returns it.
func limitHandles(t *testing.T, b *berthtest.Berth, more int) (limit int) {
	t.Helper()
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", b.Pid()))
	require.NoError(t, err)
	limit = len(open) + more
	setHandleLimit(t, b, uint64(limit))
	return limit
}

func setHandleLimit(t *testing.T, b *berthtest.Berth, n uint64) {
	t.Helper()
	limit := unix.Rlimit{Cur: n, Max: handleMax(t, b)}
	require.NoError(t, unix.Prlimit(b.Pid(), unix.RLIMIT_NOFILE, &limit, nil))
}

// handleLimit returns berth's soft limit of file descriptors.
func handleLimit(t *testing.T, b *berthtest.Berth) uint64 {
	t.Helper()
	var limit unix.Rlimit
	require.NoError(t, unix.Prlimit(b.Pid(), unix.RLIMIT_NOFILE, nil, &limit))
	return limit.Cur
}

func handleMax(t *testing.T, b *berthtest.Berth) uint64 {
	t.Helper()
	var limit unix.Rlimit
	require.NoError(t, unix.Prlimit(b.Pid(), unix.RLIMIT_NOFILE, nil, &limit))
	return limit.Max
}
