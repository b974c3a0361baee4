package docker

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"berth/runtime"
)

var (
	// errBroken ends a log stream that did not come to its end.
	errBroken = errors.New("log stream is broken")
	// errEnd is that a stream came to its end. It is never returned to a caller.
	errEnd = errors.New("log stream is at its end")
)

const (
	// pieceSize is where the engine cuts a line that is too long. Each piece is
	// a message of its own, with its own time and without a line end.
	pieceSize = 16 << 10
	// readBuffer is what a stream reads at once, in bytes. Each running container has one.
	readBuffer = 4 << 10
	// stampSize is the length of the time in front of each message, always
	// with nine digits and in UTC: 2006-01-02T15:04:05.000000000Z
	stampSize = 30
)

// readFrames reads the log of a container without a terminal: each message is
// a frame whose header tells its length.
func readFrames(r io.Reader, each func(runtime.Line) error) error {
	buffered := bufio.NewReaderSize(r, readBuffer)
	var header [8]byte
	for {
		switch _, err := io.ReadFull(buffered, header[:]); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("%w: %w", errBroken, err)
		}
		size := binary.BigEndian.Uint32(header[4:])
		if header[0] > 3 || size > 1<<20 {
			return fmt.Errorf("%w: a frame of type %d and %d bytes", errBroken, header[0], size)
		}
		frame := make([]byte, size)
		if _, err := io.ReadFull(buffered, frame); err != nil {
			return fmt.Errorf("%w: %w", errBroken, err)
		}
		if header[0] == 3 {
			return fmt.Errorf("%w: the engine says: %s", errBroken, frame)
		}
		if err := message(frame, each); err != nil {
			return err
		}
	}
}

// message hands on one framed message. What has no line end and is shorter
// than a piece is the end of a run's output.
func message(frame []byte, each func(runtime.Line) error) error {
	at, text, ok := stamp(frame)
	if !ok {
		return fmt.Errorf("%w: a message without a time", errBroken)
	}
	data, ended := bytes.CutSuffix(text, []byte{'\n'})
	return each(runtime.Line{Time: at, Data: bytes.TrimSuffix(data, []byte{'\r'}), Partial: !ended && len(text) >= pieceSize})
}

// stamp cuts the time off the front of a message.
func stamp(b []byte) (at time.Time, rest []byte, ok bool) {
	if len(b) <= stampSize || b[stampSize] != ' ' || b[stampSize-1] != 'Z' || b[10] != 'T' {
		return at, b, false
	}
	at, err := time.Parse(time.RFC3339Nano, string(b[:stampSize]))
	return at, b[stampSize+1:], err == nil
}

// readTTY reads the log of a container with a terminal. Its messages have no
// frame: one ends with its line end, or in the middle of a line where the next
// time stands, after a whole piece or where a run ended without a line end.
func readTTY(r io.Reader, each func(runtime.Line) error) error {
	t := terminal{r: bufio.NewReaderSize(r, readBuffer), each: each}
	for {
		if err := t.next(); err == errEnd {
			return nil
		} else if err != nil {
			return err
		}
	}
}

type terminal struct {
	r    *bufio.Reader
	each func(runtime.Line) error
	at   time.Time // of the message that is being read
}

// next reads one message.
func (t *terminal) next() error {
	head, err := t.r.Peek(stampSize + 1)
	if err != nil {
		return t.end(head, err)
	}
	at, _, ok := stamp(head)
	if !ok {
		return fmt.Errorf("%w: a message without a time", errBroken)
	}
	t.at = at
	_, _ = t.r.Discard(len(head))
	return t.body()
}

// end is what the stream's end means: in the middle of a message it is broken.
func (t *terminal) end(head []byte, err error) error {
	if errors.Is(err, io.EOF) && len(head) == 0 {
		return errEnd
	}
	return fmt.Errorf("%w: %w", errBroken, err)
}

// body reads one message after its time. Only what is there is looked at, so a
// message is not kept waiting for the next one.
func (t *terminal) body() error {
	var text []byte
	for {
		more, err := t.r.ReadSlice('\n')
		text = append(text, more...)
		switch {
		case err == nil:
			return t.split(text[:len(text)-1])
		case errors.Is(err, io.EOF):
			return t.finish(text)
		case !errors.Is(err, bufio.ErrBufferFull):
			return fmt.Errorf("%w: %w", errBroken, err)
		}
		if text, err = t.trim(text); err != nil {
			return err
		}
	}
}

// finish hands on what stands before the end of the stream.
func (t *terminal) finish(text []byte) error {
	if err := t.split(text); err != nil {
		return err
	}
	return errEnd
}

// trim hands on the pieces of a line that does not end, so that memory is bounded.
func (t *terminal) trim(text []byte) ([]byte, error) {
	for len(text) > pieceSize+stampSize+1 {
		at, rest, ok := stamp(text[pieceSize:])
		if err := t.each(runtime.Line{Time: t.at, Data: bytes.Clone(text[:pieceSize]), Partial: true}); err != nil {
			return nil, err
		}
		if text = text[pieceSize:]; ok {
			t.at, text = at, rest
		}
	}
	return bytes.Clone(text), nil
}

// split hands on the messages in the text up to a line end: pieces, what an
// ended run left without a line end, and the line itself.
func (t *terminal) split(text []byte) error {
	for {
		cut, at, rest := t.inner(text)
		if cut < 0 {
			return t.each(runtime.Line{Time: t.at, Data: bytes.Clone(bytes.TrimSuffix(text, []byte{'\r'}))})
		}
		if err := t.each(runtime.Line{Time: t.at, Data: bytes.Clone(text[:cut]), Partial: cut == pieceSize}); err != nil {
			return err
		}
		t.at, text = at, rest
	}
}

// inner finds the time of a next message in a text: after a whole piece, or
// else where it is later than this message's and not in the future. A program
// that prints such times has its own line cut there, and does no other harm.
func (t *terminal) inner(text []byte) (cut int, at time.Time, rest []byte) {
	for from := 0; ; {
		z := bytes.Index(text[from:], []byte("Z "))
		if z < 0 {
			return -1, at, nil
		}
		from += z + 1
		cut = from - stampSize
		if cut < 0 || cut > pieceSize {
			continue
		}
		at, rest, ok := stamp(text[cut:])
		if ok && (cut == pieceSize || at.After(t.at)) && !at.After(time.Now()) {
			return cut, at, rest
		}
	}
}
