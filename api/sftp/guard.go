package sftp

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"sync"
	"sync/atomic"
)

// Limits on requests.
const (
	maxPacket   = 256 << 10 // bytes, as in pkg/sftp
	maxInFlight = 16        // requests: two for each goroutine of pkg/sftp
	maxRead     = 255 << 10 // bytes of an answer to a read, as OpenSSH's server has

	// maxHeld is how many bytes the reads and writes in flight may have together: as many are in
	// memory until the client has read their answers. A single one may always pass.
	maxHeld = 1 << 20

	// inBuffer is the size of the buffer of requests in bytes. It is more than a packet of package ssh, so
	// that a read that takes all of the channel nearly always is short: the meter sees that it is empty.
	inBuffer = 40 << 10
)

// Types of requests.
const (
	typeRead  = 5
	typeWrite = 6
)

var errPacket = errors.New("malformed packet")

// kind is what pkg/sftp does with a request.
type kind int

const (
	command  kind = iota // it is carried out after the other commands before it
	content              // a read or a write, which is carried out beside other ones
	appended             // a write to the end of a file, which must be carried out alone
)

// guard is the channel of a client as pkg/sftp reads and writes it. It passes on a request when no
// request of another kind is in flight: pkg/sftp carries out content and commands beside one another,
// and would set the time of a file before the writes that were sent earlier. It also bounds the
// requests in flight, as pkg/sftp keeps answers without a bound until the first one is ready.
type guard struct {
	channel io.ReadWriteCloser
	in      *bufio.Reader
	session *session

	head    []byte      // of the current request, not yet passed on
	left    int         // bytes of the request after head
	outLeft int         // bytes of the current answer that pkg/sftp has not written
	appends atomic.Bool // a file was opened to append to it

	mu       sync.Mutex
	changed  *sync.Cond
	inFlight []int // bytes of each, in their order, which is that of the answers
	held     int   // their sum
	kind     kind  // of those in flight
	closed   bool
}

func newGuard(channel io.ReadWriteCloser, s *session) *guard {
	g := &guard{channel: channel, in: bufio.NewReaderSize(channel, inBuffer), session: s}
	g.changed = sync.NewCond(&g.mu)
	return g
}

// Read reads requests.
func (g *guard) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if len(g.head) == 0 && g.left == 0 {
		if err := g.next(); err != nil {
			return 0, err
		}
	}
	if len(g.head) > 0 {
		n := copy(p, g.head)
		g.head = g.head[n:]
		return n, nil
	}
	n, err := g.in.Read(p[:min(len(p), g.left, inBuffer-1)]) // through the buffer
	g.left -= n
	return n, err
}

// next reads the length and the type of the next request, and waits until it may be passed on.
func (g *guard) next() error {
	head := make([]byte, 5)
	if _, err := io.ReadFull(g.in, head); err != nil {
		return err
	}
	length := int(binary.BigEndian.Uint32(head))
	if length < 1 || length > maxPacket {
		return errPacket
	}
	g.session.touch()
	g.session.meter.taken(4 + length)
	k := command
	switch {
	case head[4] == typeWrite && g.appends.Load():
		k = appended
	case head[4] == typeWrite, head[4] == typeRead:
		k = content
	}
	bytes, err := g.bytesOf(head[4], length)
	if err != nil {
		return err
	}
	if !g.wait(k, bytes) {
		return io.EOF
	}
	g.head, g.left = head, length-1
	return nil
}

// bytesOf returns how many bytes a request, whose head was read, or its answer has in memory. Those
// of a read are the last field of its packet.
func (g *guard) bytesOf(kind byte, length int) (int, error) {
	switch {
	case kind == typeRead && length > inBuffer-1: // with a handle that is none
		return maxRead, nil
	case kind == typeRead && length >= 5:
		rest, err := g.in.Peek(length - 1)
		if err != nil {
			return 0, io.EOF
		}
		return int(min(binary.BigEndian.Uint32(rest[len(rest)-4:]), maxRead)), nil
	case kind == typeWrite:
		return length, nil
	}
	return 0, nil
}

// wait waits until a request of so many bytes may be passed on. It returns false after close.
func (g *guard) wait(k kind, bytes int) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for !g.closed && len(g.inFlight) > 0 && (k != g.kind || k == appended || len(g.inFlight) == maxInFlight || g.held+bytes > maxHeld) {
		g.changed.Wait()
	}
	g.inFlight = append(g.inFlight, bytes)
	g.held += bytes
	g.kind = k
	return !g.closed
}

// Write writes a part of an answer. The end of an answer ends its request. pkg/sftp calls it from one
// goroutine, and begins each answer with a new call.
func (g *guard) Write(p []byte) (n int, err error) {
	if g.outLeft == 0 && len(p) >= 4 {
		g.outLeft = 4 + int(binary.BigEndian.Uint32(p))
	}
	n, err = g.channel.Write(p)
	g.session.touch()
	if g.outLeft = max(0, g.outLeft-len(p)); err != nil {
		g.end()
	} else if g.outLeft == 0 {
		g.mu.Lock()
		if len(g.inFlight) > 0 {
			g.held -= g.inFlight[0]
			g.inFlight = g.inFlight[1:]
		}
		g.changed.Broadcast()
		g.mu.Unlock()
	}
	return n, err
}

// Close closes the channel, and ends a Read that waits.
func (g *guard) Close() error {
	g.end()
	return g.channel.Close()
}

func (g *guard) end() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	g.changed.Broadcast()
}
