package sftp

import (
	"bytes"
	"encoding/binary"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"berth/api/auth"
)

// packet returns a request with its length.
func packet(kind byte, body ...any) []byte {
	b := []byte{0, 0, 0, 0, kind}
	for _, part := range body {
		switch v := part.(type) {
		case uint32:
			b = binary.BigEndian.AppendUint32(b, v)
		case uint64:
			b = binary.BigEndian.AppendUint64(b, v)
		case string:
			b = append(binary.BigEndian.AppendUint32(b, uint32(len(v))), v...)
		}
	}
	binary.BigEndian.PutUint32(b, uint32(len(b)-4))
	return b
}

var initPacket = packet(1, uint32(3))

// raw opens a channel on which a test sends packets of its own.
func (h *harness) raw(token string) (*ssh.Session, io.WriteCloser, io.Reader) {
	h.t.Helper()
	return h.rawWith(h.config(h.volume, ssh.Password(token)))
}

func (h *harness) rawWith(config *ssh.ClientConfig) (*ssh.Session, io.WriteCloser, io.Reader) {
	h.t.Helper()
	conn, err := h.dialWith(config)
	require.NoError(h.t, err)
	session, err := conn.NewSession()
	require.NoError(h.t, err)
	in, err := session.StdinPipe()
	require.NoError(h.t, err)
	out, err := session.StdoutPipe()
	require.NoError(h.t, err)
	require.NoError(h.t, session.RequestSubsystem("sftp"))
	return session, in, out
}

func TestCompleteFlags(t *testing.T) {
	for sent, want := range map[uint32]uint32{
		flagRead:                             flagRead | flagWrite | addedWrite,
		flagWrite:                            flagRead | flagWrite | addedRead,
		flagRead | flagWrite:                 flagRead | flagWrite,
		flagAppend | flagCreate:              flagAppend | flagCreate | flagRead | addedRead,
		flagRead | addedRead:                 flagRead | flagWrite | addedWrite,
		flagWrite | addedWrite | 0x12345600:  flagRead | flagWrite | addedRead,
		flagCreate | flagTrunc:               0,
		math.MaxUint32 &^ (flagRead):         flagsAll | addedRead,
		flagWrite | flagCreate | flagExcl:    flagWrite | flagCreate | flagExcl | flagRead | addedRead,
		flagRead | flagWrite | math.MaxInt32: flagsAll,
	} {
		require.Equal(t, want, completeFlags(sent), "%x", sent)
	}
}

// TestMalformedPackets sends packets that are not of the protocol: the session ends, and
// others go on.
func TestMalformedPackets(t *testing.T) {
	h := newHarness(t)
	other := h.open()
	for name, p := range map[string][]byte{
		"no length":       {0, 0, 0, 0, 1},
		"too long":        {0, 4, 0, 1, 1},
		"negative length": {0xff, 0xff, 0xff, 0xff, 3},
		"unknown type":    packet(77, uint32(1)),
		"cut open":        packet(typeOpen, uint32(1), uint32(1000)),
		"short open":      packet(typeOpen),
		"long open":       packet(typeOpen, uint32(1), string(make([]byte, maxOpen))),
		"huge name":       packet(typeOpen, uint32(1), uint32(math.MaxUint32), uint32(1)),
		"cut read":        packet(typeRead, uint32(1), "1"),
	} {
		_, in, out := h.raw(adminToken)
		_, err := in.Write(append(bytes.Clone(initPacket), p...))
		require.NoError(t, err, name)
		_, err = io.Copy(io.Discard, out)
		require.NoError(t, err, name)
	}
	_, err := other.ReadDir(".")
	require.NoError(t, err)
}

// TestGuardBoundsWhatIsInFlight sends requests for far more than a session may hold, and
// reads no answer. Then it reads all.
func TestGuardBoundsWhatIsInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const count = 1000
		one := packet(typeRead, uint32(1), "1", uint64(0), uint32(readCost))
		b := blocked{bytes.NewReader(bytes.Repeat(one, count)), make(chan struct{})}
		g := newGuard(b, func() {})
		passed := make(chan []byte, count)
		go func() {
			defer close(passed)
			for request := range packets(g) {
				passed <- request
			}
		}()
		synctest.Wait()
		require.Len(t, passed, maxInFlight/(len(one)-4+readCost), "what fits is passed on, and no more")
		answered := 0
		go func() {
			for range passed {
				_, err := g.Write(packet(103, uint32(1), string(make([]byte, readCost))))
				assert.NoError(t, err)
				answered++
			}
		}()
		synctest.Wait()
		require.LessOrEqual(t, answered*readCost, maxJoined, "nobody reads an answer")
		require.LessOrEqual(t, g.requests.cost, maxInFlight)
		close(b.release)
		synctest.Wait()
		require.Equal(t, count, answered)
		require.Zero(t, g.requests.cost)
	})
}

// TestAnswersReadLate reads the answers to many requests only when all have been sent.
func TestAnswersReadLate(t *testing.T) {
	h := newHarness(t)
	const count, size = 1000, 32 << 10
	h.write("file", string(make([]byte, size)))
	_, in, out := h.raw(h.mint(auth.Grant{}))
	requests := slices.Concat(initPacket, packet(typeOpen, uint32(1), "file", uint32(flagRead), uint32(0)))
	for i := range count {
		requests = append(requests, packet(typeRead, uint32(i), "1", uint64(0), uint32(size))...)
	}
	_, err := in.Write(requests)
	require.NoError(t, err)
	var total int
	for got := range packets(out) {
		if got[0] == 103 {
			total += len(got) - 9
		}
		if total == count*size {
			return
		}
	}
	require.Equal(t, count*size, total)
}

// packets yields the answers of a server, without their length.
func packets(r io.Reader) func(yield func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for {
			var head [4]byte
			if _, err := io.ReadFull(r, head[:]); err != nil {
				return
			}
			body := make([]byte, binary.BigEndian.Uint32(head[:]))
			if _, err := io.ReadFull(r, body); err != nil || !yield(body) {
				return
			}
		}
	}
}

// blocked is a channel whose answers nobody reads.
type blocked struct {
	io.Reader
	release chan struct{}
}

func (b blocked) Write(p []byte) (int, error) { <-b.release; return len(p), nil }
func (b blocked) Close() error                { return nil }

func TestGuardWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one := packet(6, uint32(1), "1", uint64(0), string(make([]byte, 100<<10)))
		b := blocked{bytes.NewReader(bytes.Repeat(one, 100)), make(chan struct{})}
		close(b.release)
		g := newGuard(b, func() {})
		passed := 0
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for range packets(g) {
				passed++
			}
		}()
		synctest.Wait()
		fit := maxInFlight / len(one)
		require.Equal(t, fit, passed)
		answer := packet(101, uint32(1), uint32(0))
		_, err := g.Write(answer[:6])
		require.NoError(t, err)
		synctest.Wait()
		require.Equal(t, fit, passed, "the answer is not complete")
		_, err = g.Write(answer[6:])
		require.NoError(t, err)
		synctest.Wait()
		require.Equal(t, fit+1, passed)
		require.NoError(t, g.Close())
		<-ended // Close ends a Read that waits
	})
}

// TestAnswersAreWrittenAtOnce: package sftp writes the content of an answer by itself.
func TestAnswersAreWrittenAtOnce(t *testing.T) {
	var written [][]byte
	g := newGuard(recorder{nil, &written}, func() {})
	var want [][]byte
	for i := range uint32(3) {
		data, status := packet(103, i, string(make([]byte, i*1000))), packet(101, i, uint32(0))
		for _, part := range [][]byte{data[:13], data[13:], status} {
			if len(part) > 0 {
				n, err := g.Write(part)
				require.NoError(t, err)
				require.Len(t, part, n)
			}
		}
		want = append(want, data, status)
	}
	require.Equal(t, want, written)
	written = nil
	large := packet(103, uint32(0), string(make([]byte, maxJoined+1)))
	for _, part := range [][]byte{large[:13], large[13:]} {
		_, err := g.Write(part)
		require.NoError(t, err)
	}
	require.Equal(t, [][]byte{large[:13], large[13:]}, written, "the guard keeps no copy of a large answer")
}

// FuzzPackets sends bytes to a session: whatever they are, the daemon goes on.
func FuzzPackets(f *testing.F) {
	f.Add(packet(typeOpen, uint32(1), "file", uint32(flagWrite|flagCreate), uint32(0)))
	f.Add(append(packet(11, uint32(1), "."), packet(typeReaddir, uint32(2), "1")...))
	f.Add(append(packet(typeOpen, uint32(1), "f", uint32(27), uint32(0)), packet(6, uint32(2), "1", uint64(5), "data")...))
	f.Add(packet(9, uint32(1), "file", uint32(0x8000000f), uint32(0)))
	f.Add(packet(200, uint32(1), "statvfs@openssh.com", "."))
	f.Add(packet(200, uint32(1), "posix-rename@openssh.com", "a", "b"))
	f.Add(packet(200, uint32(1), "hardlink@openssh.com", "a"))
	f.Add(packet(20, uint32(1), "target", "link"))
	h := newHarness(f)
	p, err := auth.Authenticate(h.store, h.settings.Current().Authorization, adminToken)
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := newSession(h.server, p, access{volume: h.volume}, "127.0.0.1", func() {})
		require.NoError(t, err)
		defer s.end()
		here, there := pipe()
		done := make(chan struct{})
		go func() { defer close(done); s.serveFiles(there); there.Close() }()
		go func() { _, _ = io.Copy(io.Discard, here) }()
		_, _ = here.Write(initPacket)
		_, _ = here.Write(data)
		here.Close()
		<-done
		require.Zero(t, s.server.handles.Used(), "handles are closed with the session")
		require.NoError(t, os.RemoveAll(h.dir))
		require.NoError(t, os.Mkdir(h.dir, 0o700))
	})
}

// duplex is a channel of a test.
type duplex struct {
	io.Reader
	io.WriteCloser
}

// Close of the server's end is that of its answers.
func pipe() (here, there duplex) {
	requests, send := io.Pipe()
	receive, answers := io.Pipe()
	return duplex{receive, send}, duplex{requests, answers}
}

// TestRandomPackets sends valid requests with random fields.
func TestRandomPackets(t *testing.T) {
	h := newHarness(t)
	h.write("0", "text")
	r := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		_, in, out := h.raw(adminToken)
		go func() { _, _ = io.Copy(io.Discard, out) }()
		_, err := in.Write(initPacket)
		require.NoError(t, err)
		for id := range uint32(500) {
			name, path := string([]byte{'0' + byte(r.IntN(10))}), string([]byte{'0' + byte(r.IntN(4))})
			number, offset := r.Uint32N(1<<20), r.Uint64()>>r.UintN(64)
			requests := [][]byte{
				packet(typeOpen, id, path, r.Uint32N(64), uint32(0)), packet(4, id, name), packet(typeRead, id, name, offset, number),
				packet(6, id, name, offset, path), packet(7, id, path), packet(8, id, name), packet(9, id, path, uint32(4), number),
				packet(10, id, name, uint32(1), offset), packet(11, id, path), packet(typeReaddir, id, name), packet(13, id, path),
				packet(14, id, path, uint32(0)), packet(15, id, path), packet(16, id, path), packet(17, id, path), packet(18, id, path, name),
				packet(19, id, path), packet(20, id, name, path), packet(200, id, "statvfs@openssh.com", path), packet(200, id, "x", path),
				packet(200, id, "hardlink@openssh.com", path, name), packet(200, id, "posix-rename@openssh.com", path, name),
			}
			if _, err := in.Write(requests[r.IntN(len(requests))]); err != nil {
				t.Fatalf("the session ended at request %d: %v", id, err)
			}
		}
		require.NoError(t, in.Close())
	}
	h.login(h.volume, adminToken)
}
