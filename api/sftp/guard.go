package sftp

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"sync"
)

// Limits on requests.
const (
	maxPacket = 256 << 10           // bytes, as in pkg/sftp
	maxOpen   = 16 << 10            // bytes of a request to open a file
	maxJoined = 4 * (13 + readCost) // bytes of answers that are written at once: four to usual reads

	// inBuffer is the size of the buffer of requests in bytes. It is more than a packet of package ssh, so
	// that a read that takes all of the channel nearly always is short: meter sees that it is empty.
	inBuffer = 40 << 10
)

// Types of requests.
const (
	typeOpen    = 3
	typeClose   = 4
	typeRead    = 5
	typeWrite   = 6
	typeReaddir = 12
)

// Flags of a request to open a file. The last two are not of the protocol: they mark
// what the guard has added.
const (
	flagRead   = 1 << 0
	flagWrite  = 1 << 1
	flagAppend = 1 << 2
	flagCreate = 1 << 3
	flagTrunc  = 1 << 4
	flagExcl   = 1 << 5
	flagsAll   = 1<<6 - 1

	addedRead  = 1 << 30
	addedWrite = 1 << 31
)

var errPacket = errors.New("malformed packet")

// guard is the channel of a client as pkg/sftp reads and writes it. It passes on a
// request only while the requests in flight and their answers fit in maxInFlight: a
// client that sends much and reads nothing waits for itself.
//
// It opens each file for reading and writing, with a mark where the client has not
// asked for both: pkg/sftp checks the types of requests only for such handles, and
// would take a read of a file that is open for writing for a write.
type guard struct {
	io.ReadWriteCloser
	in    *bufio.Reader
	touch func() // reports progress

	head []byte // of the current request, not yet passed on
	left int    // bytes of the request after head

	inOrder bool // a file was opened to append to it: writes are carried out one by one

	mu      sync.Mutex // guards the next two: pkg/sftp may still write when it has returned
	out     []byte     // answers, or the first part of one, that are written with what follows
	outLeft int        // bytes of the current answer that pkg/sftp has not written

	requests *inFlight
}

func newGuard(channel io.ReadWriteCloser, touch func()) *guard {
	return &guard{ReadWriteCloser: channel, in: bufio.NewReaderSize(channel, inBuffer), touch: touch, requests: newInFlight()}
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

// next reads the beginning of the next request, and waits until it fits.
func (g *guard) next() error {
	head := make([]byte, 5)
	if _, err := io.ReadFull(g.in, head); err != nil {
		return err
	}
	length, kind := int(binary.BigEndian.Uint32(head)), head[4]
	if length < 1 || length > maxPacket {
		return errPacket
	}
	g.touch()
	if !g.requests.add(newRequest(kind, length, g.inOrder, g.in.Buffered() >= length-1)) {
		return io.EOF
	}
	g.head, g.left = head, length-1
	if kind == typeOpen {
		return g.markOpen()
	}
	return nil
}

// markOpen reads the rest of a request to open a file, and completes its flags.
func (g *guard) markOpen() error {
	if g.left > maxOpen {
		return errPacket
	}
	body := make([]byte, g.left)
	if _, err := io.ReadFull(g.in, body); err != nil {
		return err
	}
	const id, size = 4, 4
	if len(body) < id+size {
		return errPacket
	}
	name := uint64(binary.BigEndian.Uint32(body[id:]))
	at := id + size + name
	if at+4 > uint64(len(body)) {
		return errPacket
	}
	flags := binary.BigEndian.Uint32(body[at:])
	g.inOrder = g.inOrder || flags&flagAppend != 0
	binary.BigEndian.PutUint32(body[at:], completeFlags(flags))
	g.head, g.left = append(g.head, body...), 0
	return nil
}

// completeFlags adds flagRead and flagWrite, each with its mark if the client has not
// sent it. Flags without an access stay as they are: the open is refused.
func completeFlags(flags uint32) uint32 {
	flags &= flagsAll
	if flags&(flagRead|flagWrite|flagAppend) == 0 {
		return flags &^ (flagCreate | flagTrunc | flagExcl)
	}
	if flags&flagRead == 0 {
		flags |= flagRead | addedRead
	}
	if flags&(flagWrite|flagAppend) == 0 {
		flags |= flagWrite | addedWrite
	}
	return flags
}

// Write writes a part of an answer. The end of an answer ends its request. pkg/sftp
// calls it from one goroutine at a time, and begins each answer with a new call. The parts of
// an answer are written at once, and with them the answers to requests that have arrived
// together, as OpenSSH's server does it: otherwise a client would wake up for each.
func (g *guard) Write(p []byte) (n int, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.outLeft == 0 && len(p) >= 4 {
		g.outLeft = 4 + int(binary.BigEndian.Uint32(p))
	}
	if err = g.flush(max(len(p), g.outLeft)); err == nil {
		g.outLeft = max(0, g.outLeft-len(p))
		n, err = g.write(p)
	}
	if err != nil {
		g.outLeft = 0
		g.requests.close()
	}
	if g.outLeft == 0 {
		g.requests.answered()
	}
	g.touch()
	return n, err
}

// write writes p after what waits for it, or keeps it for what follows.
func (g *guard) write(p []byte) (n int, err error) {
	fits := len(g.out)+len(p)+g.outLeft <= maxJoined
	if fits && (g.outLeft > 0 || g.requests.answersFollow()) {
		g.out = append(g.out, p...)
		return len(p), nil
	}
	if len(g.out) == 0 {
		return g.ReadWriteCloser.Write(p)
	}
	before := len(g.out)
	all := append(g.out, p...)
	g.out = all[:0]
	n, err = g.ReadWriteCloser.Write(all)
	return max(0, n-before), err
}

// flush writes what waits unless the given number of bytes can join it.
func (g *guard) flush(more int) error {
	if len(g.out) == 0 || len(g.out)+more <= maxJoined {
		return nil
	}
	_, err := g.ReadWriteCloser.Write(g.out)
	g.out = g.out[:0]
	return err
}

// finish writes the answers that wait. pkg/sftp has returned, and what it still writes waits no more.
func (g *guard) finish() {
	g.requests.close()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.flushWhole()
}

func (g *guard) flushWhole() {
	if g.outLeft == 0 {
		_ = g.flush(maxJoined)
	}
}

// Close closes the channel, and ends a Read that waits, and a Write, which waits for the client.
func (g *guard) Close() error {
	if g.mu.TryLock() {
		g.flushWhole()
		g.mu.Unlock()
	}
	g.requests.close()
	return g.ReadWriteCloser.Close()
}
