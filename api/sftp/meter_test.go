package sftp

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"berth/api/auth"
)

// received is a connection that always has data.
type received struct{ net.Conn }

func (received) Read(p []byte) (int, error) { return len(p), nil }

// receive has a meter receive bytes, and reports whether the connection goes on.
func (m *meter) receive(n int) bool {
	_, err := m.Read(make([]byte, n))
	return err == nil
}

func TestMeter(t *testing.T) {
	m := &meter{Conn: received{}}
	closed := m.open()
	require.True(t, m.receive(maxUnread))
	m.taken(100)
	require.True(t, m.receive(100+wireExtra), "a request that was taken does not count")
	m.read(1, false)
	m.read(-1, true)
	require.True(t, m.receive(maxUnread), "the channel was empty")
	m.taken(2 * maxUnread)
	require.True(t, m.receive(maxUnread))
	closed()
	require.True(t, m.receive(maxUnread), "the channel is closed")
	require.False(t, m.receive(1), "taking more than was sent saves nothing up")
	require.True(t, m.hasFlooded())
	m.taken(maxUnread)
	require.False(t, m.receive(0), "the connection stays ended")
}

// TestMeterOfChannels: what waits in one channel is not forgotten because another one is empty.
func TestMeterOfChannels(t *testing.T) {
	m := &meter{Conn: received{}}
	defer m.open()()
	defer m.open()()
	m.read(1, false)
	require.True(t, m.receive(2*maxUnread))
	m.read(-1, true)
	require.False(t, m.receive(1))

	m = &meter{Conn: received{}}
	defer m.open()()
	defer m.open()()
	m.read(1, false)
	m.read(1, false)
	require.True(t, m.receive(2*maxUnread))
	m.read(-1, true)
	require.True(t, m.receive(1), "both were being read")
}

// TestMeterOfSmallRequests keeps a window full of requests of one packet each.
func TestMeterOfSmallRequests(t *testing.T) {
	const request, wire = 26, 80
	m := &meter{Conn: received{}}
	defer m.open()()
	require.True(t, m.receive((2<<20)/request*wire))
	for range 100_000 {
		m.taken(request)
		require.True(t, m.receive(wire))
	}
}

// paced is a channel that has one request at a time.
type paced struct {
	io.ReadWriteCloser
	request []byte
	left    []byte // of the present one
	hidden  int    // reads that have taken all and were not short
}

func (c *paced) Write(p []byte) (int, error) { return len(p), nil }

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
		g := newGuard(channel, &session{meter: &meter{}})
		for range 7 {
			_, err := io.ReadFull(g, make([]byte, len(request)))
			require.NoError(t, err)
			_, err = g.Write(packet(101, uint32(1), uint32(0)))
			require.NoError(t, err)
		}
		require.Zero(t, channel.hidden, length)
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
	const blocking = 64 + maxInFlight // they fill the window of the client, and the guard
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
