package sftp

import (
	"bytes"
	"net/http"
	"slices"
	"testing"

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
