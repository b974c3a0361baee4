package sftp

import (
	"bytes"
	"net"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"berth/api/auth"
)

func TestMeter(t *testing.T) {
	m := newMeter(nil)
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

// endless is a connection that always has data.
type endless struct{ net.Conn }

func (endless) Read(p []byte) (int, error) { return len(p), nil }
func (endless) Close() error               { return nil }

// TestMeterWaits: a connection waits while its channel has enough to read, unless a call of the
// channel is stuck.
func TestMeterWaits(t *testing.T) {
	const never = time.Hour
	for name, c := range map[string]struct {
		do    func(m *meter)
		after time.Duration // the connection receives again
	}{
		"nothing changes":      {func(*meter) {}, never},
		"a little was taken":   {func(m *meter) { m.taken(maxAhead/4, false) }, stuck / 2},
		"half was taken":       {func(m *meter) { m.taken(maxAhead/2+1, false) }, 0},
		"all was taken":        {func(m *meter) { m.taken(1, true) }, 0},
		"a call is stuck":      {func(m *meter) { m.call(1) }, 3 * stuck / 2},
		"a call has ended":     {func(m *meter) { m.call(1); m.call(-1) }, never},
		"one of two calls":     {func(m *meter) { m.call(1); m.call(1); time.Sleep(stuck - 1); m.call(-1) }, 5 * stuck / 2},
		"no channel is served": {func(m *meter) { m.serves(false) }, 0},
		"it is closed":         {func(m *meter) { m.Close() }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMeter(endless{})
				m.serve(nil)
				m.add(maxAhead + 1)
				var began, received time.Time
				go func() {
					_, _ = m.Read(make([]byte, 1))
					received = time.Now()
				}()
				time.Sleep(time.Minute + stuck/2) // Read looks each stuck
				require.Zero(t, received)
				began = time.Now()
				c.do(m)
				time.Sleep(time.Minute)
				if synctest.Wait(); c.after == never {
					require.Zero(t, received)
					m.Close()
					return
				}
				require.Equal(t, c.after, received.Sub(began))
			})
		})
	}
}

// TestMeterOfSmallRequests keeps a window full of requests of one packet each.
func TestMeterOfSmallRequests(t *testing.T) {
	const request, wire = 26, 80
	m := newMeter(nil)
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
