package sftp

import (
	"bytes"
	"io"
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
	m.taken(100, false, 0)
	require.False(t, m.add(100*wireForTaken), "bytes that were taken do not count")
	m.taken(1, true, 0)
	require.False(t, m.add(maxUnread), "all were taken")
	m.taken(maxUnread, false, 0)
	require.False(t, m.add(maxUnread))
	require.True(t, m.add(1), "taking more than was sent saves nothing up")
	require.True(t, m.flooded())
	m.taken(1, true, 0)
	require.True(t, m.add(0), "the connection stays ended")
}

// endless is a connection that always has data.
type endless struct{ net.Conn }

func (endless) Read(p []byte) (int, error) { return len(p), nil }
func (endless) Close() error               { return nil }

// TestMeterWaits: a connection waits while its channel has enough to take, unless the channel waits
// for the client.
func TestMeterWaits(t *testing.T) {
	for name, c := range map[string]struct {
		do    func(m *meter)
		after time.Duration // the connection receives again
	}{
		"nothing changes":      {func(*meter) {}, hung - time.Second - stuck/2},
		"a little was taken":   {func(m *meter) { m.taken(maxAhead/4, false, 0) }, stuck / 2},
		"half was taken":       {func(m *meter) { m.taken(maxAhead/2+1, false, 0) }, 0},
		"all was taken":        {func(m *meter) { m.taken(1, true, 0) }, 0},
		"a call is stuck":      {func(m *meter) { m.begin(false) }, stuck},
		"a call has ended":     {func(m *meter) { m.begin(false); m.finish(false) }, hung},
		"one of two calls":     {func(m *meter) { m.begin(false); m.begin(false); time.Sleep(stuck / 4); m.finish(false) }, 5 * stuck / 4},
		"content is written":   {func(m *meter) { m.begin(true) }, 0},
		"it was written":       {func(m *meter) { m.begin(true); m.finish(true) }, hung},
		"no channel is served": {func(m *meter) { m.serves(false); m.add(maxAhead + 1) }, 0},
		"it is closed":         {func(m *meter) { m.Close() }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMeter(endless{})
				m.serve(nil)
				m.begin(false)
				m.finish(false)
				m.add(maxAhead + 1)
				received := make(chan time.Time, 1)
				go func() {
					_, _ = m.Read(make([]byte, 1))
					received <- time.Now()
				}()
				time.Sleep(time.Second + stuck/2) // Read asks again each stuck
				require.Empty(t, received)
				began := time.Now()
				c.do(m)
				select {
				case at := <-received:
					require.Equal(t, c.after, at.Sub(began))
				case <-time.After(time.Minute):
					m.Close()
					t.Error("the connection waits for ever")
				}
			})
		})
	}
}

// filled is a channel whose reads fill what they are given, after a time.
type filled struct {
	ssh.Channel
	after time.Duration
}

func (c filled) Read(p []byte) (int, error) {
	time.Sleep(c.after)
	return len(p), nil
}

// TestMeterOfFilledReads: a read that waited lets the connection go on, but does not end the count
// of a flood: it may have waited with sending.
func TestMeterOfFilledReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for after, left := range map[time.Duration]int{stuck - 1: maxAhead - 10, stuck: 0} {
			m := newMeter(nil)
			channel, done := m.serve(filled{after: after})
			m.add(maxAhead)
			_, err := channel.Read(make([]byte, 10))
			require.NoError(t, err)
			require.Equal(t, left, m.ahead)
			require.Equal(t, maxAhead-10*wireForTaken, m.unread)
			require.Zero(t, m.calls)
			done()
		}
	})
}

// paced is a channel that has one request at a time.
type paced struct {
	io.ReadWriteCloser
	request []byte
	left    []byte // of the present one
	hidden  int    // reads that have taken all and were not short
}

func (c *paced) Read(p []byte) (int, error) {
	if len(c.left) == 0 {
		c.left = c.request
	}
	n := copy(p, c.left)
	if c.left = c.left[n:]; len(c.left) == 0 && n == len(p) {
		c.hidden++
	}
	return n, nil
}

// TestGuardFindsChannelEmpty: when a request has been read, the channel was seen to be empty.
func TestGuardFindsChannelEmpty(t *testing.T) {
	for _, length := range []int{1, 16<<10 - 30, 32<<10 - 30, 32 << 10, 128 << 10} {
		request := packet(typeWrite, uint32(1), "1", uint64(0), string(make([]byte, length)))
		channel := &paced{request: request}
		g := newGuard(channel, func() {})
		for range 7 {
			_, err := io.ReadFull(g, make([]byte, len(request)))
			require.NoError(t, err)
			g.requests.answered()
		}
		require.Zero(t, channel.hidden, length)
	}
}

// TestMeterOfSmallRequests keeps a window full of requests of one packet each.
func TestMeterOfSmallRequests(t *testing.T) {
	const request, wire = 26, 80
	m := newMeter(nil)
	require.False(t, m.add((2<<20)/request*wire))
	for range 1_000_000 {
		m.taken(request, false, 0)
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
