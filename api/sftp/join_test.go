package sftp

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestPartsOfPacketLeaveTogether: a client receives the first part of a packet with the second one,
// or soon afterwards if there is none. A connection that is full waits.
func TestPartsOfPacketLeaveTogether(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close()
	client, err := net.Dial("tcp", ln.Addr().String())
	require.NoError(t, err)
	defer client.Close()
	conn, err := ln.Accept()
	require.NoError(t, err)
	c := joinParts(conn)
	defer c.Close()
	first, received := make([]byte, firstPart), make([]byte, 2*firstPart)
	waited := false // the kernel waits for 200 ms, but the test may be slower
	for range 10 {
		n, err := c.Write(first)
		require.NoError(t, err)
		require.Equal(t, firstPart, n)
		require.NoError(t, client.SetReadDeadline(time.Now().Add(20*time.Millisecond)))
		early, err := client.Read(received)
		waited = waited || errors.Is(err, os.ErrDeadlineExceeded)
		require.NoError(t, client.SetReadDeadline(time.Time{}))
		n, err = c.Write([]byte("rest"))
		require.NoError(t, err)
		require.Equal(t, 4, n)
		_, err = io.ReadFull(client, received[early:firstPart+4])
		require.NoError(t, err)
	}
	require.True(t, waited)
	_, err = c.Write(first)
	require.NoError(t, err)
	_, err = io.ReadFull(client, received[:firstPart])
	require.NoError(t, err)

	require.NoError(t, conn.(*net.TCPConn).SetWriteBuffer(5000))
	require.NoError(t, client.(*net.TCPConn).SetReadBuffer(5000))
	sent := 0
	require.NoError(t, conn.SetWriteDeadline(time.Now().Add(100*time.Millisecond)))
	for err = nil; err == nil; {
		var n int
		n, err = c.Write(first)
		sent += n
	}
	require.ErrorIs(t, err, os.ErrDeadlineExceeded, "it waits for the client")
	require.NoError(t, c.Close())
	n, err := io.Copy(io.Discard, client)
	require.NoError(t, err)
	require.EqualValues(t, sent, n)
	_, err = c.Write(first)
	require.ErrorIs(t, err, net.ErrClosed)
}
