package node

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"path"
	"sync"

	"golang.org/x/crypto/ssh"
)

// The permissions of SFTP, in the panel's words.
const (
	mayRead    = "file.read"
	mayContent = "file.read-content"
	mayCreate  = "file.create"
	mayUpdate  = "file.update"
	mayDelete  = "file.delete"
)

// Types of packets.
const (
	fxInit     = 1
	fxVersion  = 2
	fxOpen     = 3
	fxClose    = 4
	fxRead     = 5
	fxWrite    = 6
	fxLstat    = 7
	fxFstat    = 8
	fxSetstat  = 9
	fxFsetstat = 10
	fxOpendir  = 11
	fxReaddir  = 12
	fxRemove   = 13
	fxMkdir    = 14
	fxRmdir    = 15
	fxRealpath = 16
	fxStat     = 17
	fxRename   = 18
	fxReadlink = 19
	fxSymlink  = 20
	fxExtended = 200

	fxStatus = 101
	fxHandle = 102
)

// Flags of fxOpen, and codes of fxStatus.
const (
	openRead      = 1
	openChange    = 2 | 4 | 16 // write, append, truncate
	openCreate    = 8
	openExclusive = 32

	statusOK          = 0
	statusDenied      = 3
	statusUnsupported = 8
)

// The bounds of a channel.
const (
	maxPacket  = 256 << 10 // bytes, as of berth's SFTP
	maxPending = 4096      // requests that berth has not answered
	maxNaming  = maxPacket // bytes of the names in them: a client that reads no answers may send many

	statID = 1<<32 - 1 // of the requests of the filter's own
)

var errPacket = errors.New("malformed packet")

// filter passes the packets of a client on to berth if its permissions allow that, and records changes when
// berth has made them.
type filter struct {
	client, berth io.ReadWriter
	may           func(permission string) bool
	record        func(event string, file any)

	writing sync.Mutex // held while a packet is written to the client

	mu      sync.Mutex
	pending map[uint32]*fileChange // by the id of the request; nil: it changes nothing that is recorded
	naming  int                    // bytes of the names in pending
	asked   []*fileChange          // those whose file berth was asked for, in order: berth answers in it
}

// fileChange is one that berth has not answered.
type fileChange struct {
	event string
	file  any
	fresh bool // the client may not change a file that is there
	size  int  // bytes of its names
}

// run passes packets on until one side ends.
func (f *filter) run() error {
	ended := make(chan error, 1)
	go func() {
		ended <- f.answers()
		if c, is := f.client.(ssh.Channel); is {
			_ = c.Close() // it ends the reader of requests
		}
	}()
	err := f.requests()
	if c, is := f.berth.(ssh.Channel); is {
		_ = c.CloseWrite() // berth answers what it has, and ends
	}
	return errors.Join(err, <-ended)
}

// packet reads one packet. Its length comes first.
func packet(from io.Reader, buffer []byte) ([]byte, error) {
	if _, err := io.ReadFull(from, buffer[:4]); err != nil {
		return nil, err
	}
	length := binary.BigEndian.Uint32(buffer)
	if length < 5 || length > maxPacket {
		return nil, errPacket
	}
	p := buffer[:4+length]
	_, err := io.ReadFull(from, p[4:])
	return p, err
}

// requests passes the client's requests on.
func (f *filter) requests() error {
	from, buffer := bufio.NewReaderSize(f.client, 32<<10), make([]byte, 4+maxPacket)
	for {
		p, err := packet(from, buffer)
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		id, code := binary.BigEndian.Uint32(p[5:]), uint32(statusOK)
		if p[4] != fxInit {
			if id == statID {
				return errPacket
			}
			var change *fileChange
			change, code, err = f.examine(p[4], p[9:])
			if err == nil && code == statusOK {
				err = f.await(id, change)
			}
			if err != nil {
				return err
			}
		}
		if code == statusOK {
			_, err = f.berth.Write(p)
		} else {
			err = f.refuse(id, code)
		}
		if err != nil {
			return err
		}
	}
}

// textOf reads a text of a packet, and returns what follows it.
func textOf(p []byte) (string, []byte, error) {
	if len(p) < 4 || uint64(len(p)-4) < uint64(binary.BigEndian.Uint32(p)) {
		return "", nil, errPacket
	}
	n := binary.BigEndian.Uint32(p)
	return string(p[4 : 4+n]), p[4+n:], nil
}

// examine returns what a request changes, and the status with which it is refused or statusOK. It changes flags of fxOpen.
func (f *filter) examine(kind byte, rest []byte) (change *fileChange, code uint32, err error) {
	var need, event string
	switch kind {
	case fxClose, fxRead, fxWrite, fxReaddir, fxRealpath, fxFstat: // open was permitted
		return nil, statusOK, nil
	case fxLstat, fxStat, fxOpendir, fxReadlink:
		need = mayRead
	case fxOpen:
		return f.open(rest)
	case fxSetstat, fxFsetstat:
		need = mayUpdate
	case fxRemove, fxRmdir:
		need, event = mayDelete, "delete"
	case fxMkdir:
		need, event = mayCreate, "create-directory"
	case fxSymlink:
		need = mayCreate
	case fxRename:
		need, event = mayUpdate, "rename"
	case fxExtended:
		var name string
		if name, rest, err = textOf(rest); err != nil {
			return nil, 0, err
		}
		switch name {
		case "posix-rename@openssh.com":
			need, event = mayUpdate, "rename"
		case "hardlink@openssh.com":
			need = mayCreate
		case "statvfs@openssh.com":
			need = mayRead
		case "fsync@openssh.com", "limits@openssh.com":
			return nil, statusOK, nil
		default:
			return nil, statusUnsupported, nil
		}
	default:
		return nil, statusUnsupported, nil
	}
	if !f.may(need) {
		return nil, statusDenied, nil
	}
	change, err = changeOf(event, rest)
	return change, statusOK, err
}

// changeOf returns the change of a request, or nil if it is not recorded.
func changeOf(event string, rest []byte) (*fileChange, error) {
	if event == "" {
		return nil, nil
	}
	name, rest, err := textOf(rest)
	if err != nil {
		return nil, err
	}
	c := &fileChange{event: event, file: fileName(name), size: len(name)}
	if event == "rename" {
		to, _, err := textOf(rest)
		if err != nil {
			return nil, err
		}
		c.file, c.size = map[string]string{"from": fileName(name), "to": fileName(to)}, len(name)+len(to)
	}
	return c, nil
}

// fileName returns a path as panels show it.
func fileName(name string) string { return path.Clean("/" + name) }

// await has a request wait for its answer. A client that used the id of one that waits could hide what it changes.
func (f *filter) await(id uint32, c *fileChange) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, is := f.pending[id]; is || len(f.pending) >= maxPending {
		return fmt.Errorf("request %d is in flight, or %d others are", id, maxPending)
	}
	if c != nil {
		if f.naming += c.size; f.naming > maxNaming {
			return errors.New("the names of the requests in flight are too long")
		}
	}
	f.pending[id] = c
	return nil
}

// open examines fxOpen. A client that may create files but not change them gets a new file or none, and one
// that may change but not create them one that is there.
func (f *filter) open(rest []byte) (change *fileChange, code uint32, err error) {
	name, after, err := textOf(rest)
	if err != nil || len(after) < 4 {
		return nil, 0, errPacket
	}
	flags := binary.BigEndian.Uint32(after)
	if flags&(openChange|openCreate) == 0 || flags&openRead != 0 {
		if !f.may(mayContent) {
			return nil, statusDenied, nil
		}
	}
	if flags&(openChange|openCreate) == 0 {
		return nil, statusOK, nil
	}
	creates, updates := f.may(mayCreate) && flags&openCreate != 0, f.may(mayUpdate)
	c := &fileChange{event: "write", file: fileName(name), size: len(name)}
	switch {
	case creates && !updates:
		flags |= openExclusive
		c.fresh = true
	case updates && !creates:
		flags &^= openCreate | openExclusive
	case !creates:
		return nil, statusDenied, nil
	}
	binary.BigEndian.PutUint32(after, flags)
	if !creates {
		return c, statusOK, nil
	}
	c.event = "create" // unless berth has it
	if !updates {
		return c, statusOK, nil
	}
	f.mu.Lock()
	f.asked = append(f.asked, c)
	f.mu.Unlock()
	_, err = f.berth.Write(request(fxStat, statID, ssh.Marshal(struct{ Path string }{name})))
	return c, statusOK, err
}

// request returns a packet.
func request(kind byte, id uint32, body []byte) []byte {
	p := binary.BigEndian.AppendUint32(nil, uint32(len(body)+5)) //nolint:gosec // a path of a packet, or less
	return append(binary.BigEndian.AppendUint32(append(p, kind), id), body...)
}

// refuse answers a request with a status.
func (f *filter) refuse(id, code uint32) error {
	message := map[uint32]string{statusDenied: "Permission denied", statusUnsupported: "Operation unsupported"}[code]
	f.writing.Lock()
	defer f.writing.Unlock()
	_, err := f.client.Write(request(fxStatus, id, ssh.Marshal(struct {
		Code          uint32
		Message, Lang string
	}{code, message, ""})))
	return err
}

// answers passes berth's answers on, except for those to the filter's own requests.
func (f *filter) answers() error {
	from, buffer := bufio.NewReaderSize(f.berth, 32<<10), make([]byte, 4+maxPacket)
	for {
		p, err := packet(from, buffer)
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		id := binary.BigEndian.Uint32(p[5:])
		done := p[4] == fxHandle || p[4] == fxStatus && len(p) >= 13 && binary.BigEndian.Uint32(p[9:]) == statusOK
		own, denied := false, false
		if p[4] != fxVersion { // it has no id
			own, denied = f.answered(id, p[4] != fxStatus, done)
		}
		if own {
			continue
		}
		if denied {
			_ = f.refuse(id, statusDenied)
			continue
		}
		f.writing.Lock()
		_, _ = f.client.Write(p) // also if the client has left: what berth does for it is recorded
		f.writing.Unlock()
	}
}

// answered takes an answer, and reports whether it is to a request of the filter's own, and whether the client lacks the
// permission for what berth has not done.
func (f *filter) answered(id uint32, found, done bool) (own, denied bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if id == statID && len(f.asked) > 0 {
		if found {
			f.asked[0].event = "write"
		}
		f.asked = f.asked[1:]
		return true, false
	}
	c := f.pending[id]
	delete(f.pending, id)
	if c != nil {
		f.naming -= c.size
	}
	if c != nil && done {
		f.record(c.event, c.file)
	}
	return false, c != nil && c.fresh && !done
}
