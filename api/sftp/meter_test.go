package sftp

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"berth/api/auth"
)

func TestMeter(t *testing.T) {
	var m meter
	require.False(t, m.add(maxUnread))
	m.taken(100, false)
	require.False(t, m.add(100*wireForTaken), "bytes that were taken do not count")
	m.taken(1, true)
	require.False(t, m.add(maxUnread), "all were taken")
	m.taken(maxUnread, false)
	require.False(t, m.add(maxUnread))
	require.True(t, m.add(1), "taking more than was sent saves nothing up")
	require.True(t, m.flooded())
	m.taken(1, true)
	require.True(t, m.add(0), "the connection stays ended")
}

// TestMeterOfSmallRequests keeps a window full of requests of one packet each.
func TestMeterOfSmallRequests(t *testing.T) {
	const request, wire = 26, 80
	var m meter
	require.False(t, m.add((2<<20)/request*wire))
	for range 1_000_000 {
		m.taken(request, false)
		require.False(t, m.add(wire))
	}
}

// TestPartsOfPacketLeaveTogether: a client receives the first part of a packet with the second one,
// or soon afterwards if there is none, and after it has read what filled the connection.
func TestPartsOfPacketLeaveTogether(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close()
	client, err := net.Dial("tcp", ln.Addr().String())
	require.NoError(t, err)
	defer client.Close()
	conn, err := ln.Accept()
	require.NoError(t, err)
	m := newMeter(conn)
	defer m.Close()
	first, received := make([]byte, firstPart), make([]byte, 2*firstPart)
	waited := false // the kernel waits for 200 ms, but the test may be slower
	for range 10 {
		n, err := m.Write(first)
		require.NoError(t, err)
		require.Equal(t, firstPart, n)
		require.NoError(t, client.SetReadDeadline(time.Now().Add(20*time.Millisecond)))
		early, err := client.Read(received)
		waited = waited || errors.Is(err, os.ErrDeadlineExceeded)
		require.NoError(t, client.SetReadDeadline(time.Time{}))
		n, err = m.Write([]byte("rest"))
		require.NoError(t, err)
		require.Equal(t, 4, n)
		_, err = io.ReadFull(client, received[early:firstPart+4])
		require.NoError(t, err)
	}
	require.True(t, waited)
	_, err = m.Write(first)
	require.NoError(t, err)
	_, err = io.ReadFull(client, received[:firstPart])
	require.NoError(t, err)

	const parts = 256 // more than the connection holds
	require.NoError(t, conn.(*net.TCPConn).SetWriteBuffer(5000))
	go func() {
		defer m.Close()
		for range parts {
			if n, err := m.Write(first); !assert.NoError(t, err) || !assert.Equal(t, firstPart, n) {
				return
			}
		}
	}()
	n, err := io.Copy(io.Discard, client)
	require.NoError(t, err)
	require.EqualValues(t, parts*firstPart, n)
	_, err = m.Write(first)
	require.ErrorIs(t, err, net.ErrClosed)
}

// TestFloodEndsSession sends packets of one byte that nothing reads.
func TestFloodEndsSession(t *testing.T) {
	h := newHarness(t)
	conn, err := h.dial(h.volume, ssh.Password(adminToken))
	require.NoError(t, err)
	session, err := conn.NewSession()
	require.NoError(t, err)
	in, err := session.StdinPipe()
	require.NoError(t, err)
	const window = 2 << 20
	for range window {
		if _, err = in.Write([]byte{0}); err != nil {
			break
		}
	}
	require.Error(t, err, "the session ends before the window is full")
	h.eventually("the session ends", func() bool {
		list := h.audit()
		return list[len(list)-1].Status == http.StatusTooManyRequests
	})
	require.Contains(t, h.log.String(), errFlood.Error())
}

// TestWindowOfSmallRequests fills a window with requests of one packet each while no
// answer is read, as a client that asks for a whole file at once. All are answered.
func TestWindowOfSmallRequests(t *testing.T) {
	h := newHarness(t)
	h.write("file", string(make([]byte, 32<<10)))
	config := h.config(h.volume, ssh.Password(h.mint(auth.Grant{})))
	config.Ciphers, config.MACs = []string{ssh.CipherAES128CTR}, []string{ssh.HMACSHA256}
	_, in, out := h.rawWith(config)
	_, err := in.Write(slices.Concat(initPacket, packet(typeOpen, uint32(1), "file", uint32(flagRead), uint32(0))))
	require.NoError(t, err)
	large := packet(typeRead, uint32(1), "1", uint64(0), uint32(32<<10))
	const blocking = 64 + maxInFlight>>15 // they fill the window of the client, and the guard
	_, err = in.Write(bytes.Repeat(large, blocking))
	require.NoError(t, err)
	small := packet(typeRead, uint32(1), "1", uint64(0), uint32(1))
	count := (2<<20)/len(small) - 2*blocking
	for range count {
		_, err = in.Write(small)
		require.NoError(t, err)
	}
	answers := 0
	for got := range packets(out) {
		if got[0] == 103 {
			answers++
		}
		if answers == blocking+count {
			return
		}
	}
	require.Equal(t, blocking+count, answers)
}
