package sftp

import (
	"bytes"
	"encoding/binary"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"berth/api/auth"
	v1 "berth/api/v1"
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

// Types of requests, and flags of a request to open a file.
const (
	typeOpen    = 3
	typeClose   = 4
	typeReaddir = 12

	flagRead   = 1 << 0
	flagWrite  = 1 << 1
	flagAppend = 1 << 2
	flagCreate = 1 << 3
)

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

// TestLongPaths sends paths that are longer than any path of a volume: each is refused, and the
// session goes on.
func TestLongPaths(t *testing.T) {
	h := newHarness(t)
	c := h.open()
	for _, length := range []int{v1.MaxPath + 1, 16 << 10, 64 << 10} {
		path := strings.Repeat("a/", length/2)
		_, err := c.OpenFile(path, os.O_WRONLY|os.O_CREATE)
		require.Error(t, err, length)
		require.Error(t, c.Mkdir(path), length)
		require.Error(t, c.Rename("x", path), length)
		_, err = c.Stat(path)
		require.Error(t, err, length)
	}
	require.NoError(t, c.Mkdir("goes on"))
}

// testGuard returns a guard of requests, and a channel with what it passes on.
func testGuard(answers io.ReadWriteCloser) (g *guard, passed chan []byte) {
	g, passed = newGuard(answers, &session{meter: &meter{}}), make(chan []byte, 100)
	go func() {
		defer close(passed)
		for request := range packets(g) {
			passed <- request
		}
	}()
	return g, passed
}

// TestOrderOfRequests requires that a command waits for the content before it, and content for it;
// that several of its kind do not wait; and that appended content is carried out alone.
func TestOrderOfRequests(t *testing.T) {
	write, read := packet(typeWrite, uint32(1), "1", uint64(0), "text"), packet(typeRead, uint32(1), "1", uint64(0), uint32(5))
	set, closes := packet(10, uint32(1), "1", uint32(0)), packet(typeClose, uint32(1), "1")
	for name, c := range map[string]struct {
		requests [][]byte
		appends  bool
		passed   []int // after so many answers
	}{
		"content, another, content": {[][]byte{write, read, set, write}, false, []int{2, 2, 3, 4}},
		"several commands":          {[][]byte{set, set, closes}, false, []int{3}},
		"close after content":       {[][]byte{write, closes, set, read}, false, []int{1, 3, 3, 4}},
		"appended content":          {[][]byte{write, write, closes}, true, []int{1, 2, 3}},
		"too many":                  {slices.Repeat([][]byte{read}, maxInFlight+2), false, []int{maxInFlight, maxInFlight + 1, maxInFlight + 2}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				in, requests := io.Pipe()
				g, passed := testGuard(duplex{in, discard{}})
				g.appends.Store(c.appends)
				go func() { _, _ = requests.Write(slices.Concat(c.requests...)) }()
				for answers, want := range c.passed {
					synctest.Wait()
					require.Len(t, passed, want, "after %d answers", answers)
					answer := packet(101, uint32(1), uint32(0))
					for _, part := range [][]byte{answer[:6], answer[6:]} {
						synctest.Wait()
						require.Len(t, passed, want, "the answer is not complete")
						_, err := g.Write(part)
						require.NoError(t, err)
					}
				}
				require.NoError(t, g.Close())
				require.NoError(t, requests.Close())
			})
		})
	}
}

// discard is the sending end of a channel.
type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }
func (discard) Close() error                { return nil }

// TestGuardEnds: a Read that waits for an answer ends with the channel.
func TestGuardEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		read := packet(typeRead, uint32(1), "1", uint64(0), uint32(5))
		g, passed := testGuard(duplex{bytes.NewReader(bytes.Repeat(read, 100)), discard{}})
		synctest.Wait()
		require.NoError(t, g.Close())
		synctest.Wait()
		require.Len(t, passed, maxInFlight)
		for range passed {
		}
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

// TestLongReads: an answer has as much as OpenSSH's, in the middle of a file too.
func TestLongReads(t *testing.T) {
	h := newHarness(t)
	const from, size = 1000, 252 << 10
	content := make([]byte, 1<<20)
	for i := range content {
		content[i] = byte(i * 7 >> 3)
	}
	h.write("file", string(content))
	_, in, out := h.raw(h.mint(auth.Grant{}))
	_, err := in.Write(slices.Concat(initPacket, packet(typeOpen, uint32(1), "file", uint32(flagRead), uint32(0)),
		packet(typeRead, uint32(2), "1", uint64(from), uint32(size)), packet(typeRead, uint32(3), "1", uint64(0), uint32(math.MaxUint32))))
	require.NoError(t, err)
	var lengths []int
	for got := range packets(out) {
		if got[0] != 103 {
			continue
		}
		if len(lengths) == 0 {
			require.True(t, bytes.Equal(content[from:from+len(got)-9], got[9:]))
		}
		if lengths = append(lengths, len(got)-9); len(lengths) == 2 {
			break
		}
	}
	require.Equal(t, []int{size, maxRead}, lengths)
}

// TestHeldBytes: reads and writes are passed on only while they have little memory together.
func TestHeldBytes(t *testing.T) {
	for name, c := range map[string]struct {
		request []byte
		passed  int
	}{
		"long reads":  {packet(typeRead, uint32(1), "1", uint64(0), uint32(math.MaxUint32)), maxHeld / maxRead},
		"usual reads": {packet(typeRead, uint32(1), "1", uint64(0), uint32(32<<10)), maxInFlight},
		"long writes": {packet(typeWrite, uint32(1), "1", uint64(0), string(make([]byte, 255<<10))), maxHeld / maxRead},
		"no field":    {packet(typeRead), maxInFlight},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g, passed := testGuard(duplex{bytes.NewReader(bytes.Repeat(c.request, 100)), discard{}})
				synctest.Wait()
				require.Len(t, passed, c.passed)
				_, err := g.Write(packet(101, uint32(1))) // an answer
				require.NoError(t, err)
				synctest.Wait()
				require.Len(t, passed, c.passed+1)
				require.NoError(t, g.Close())
				synctest.Wait()
				for range passed {
				}
			})
		})
	}
}

// TestReadsBehindAnyFile: a read at an offset that no file has is the end of the file, and no fault
// that is logged.
func TestReadsBehindAnyFile(t *testing.T) {
	h := newHarness(t)
	h.write("file", "text")
	f, err := h.open().Open("file")
	require.NoError(t, err)
	for _, off := range []int64{4, 1 << 40, math.MaxInt64 - 1<<20, math.MaxInt64 - 1, math.MaxInt64} {
		_, err := f.ReadAt(make([]byte, 100), off)
		require.ErrorIs(t, err, io.EOF, off)
	}
	require.NotContains(t, h.log.String(), "ERROR")
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
		s.meter = &meter{}
		here, there := pipe()
		done := make(chan struct{})
		go func() { defer close(done); s.serveFiles(there); there.Close() }()
		go func() { _, _ = io.Copy(io.Discard, here) }()
		_, _ = here.Write(initPacket)
		_, _ = here.Write(data)
		here.Close()
		<-done
		require.Zero(t, s.server.limits.handles.Used(), "handles are closed with the session")
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
