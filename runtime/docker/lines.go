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
	// errBroken means that a log stream broke off before its end.
	errBroken = errors.New("log stream is broken")
	// errEnd marks the end of a stream. It is never returned to a caller.
	errEnd = errors.New("log stream is at its end")
)

const (
	// pieceSize is the length in bytes at which the engine splits a long line.
	// Each piece is a separate message with its own time and without a line end.
	pieceSize = 16 << 10
	// readBuffer is the size in bytes of a stream's buffer. Each running container has one.
	readBuffer = 4 << 10
	// stampSize is the length of the time before each message, always with nine
	// digits and in UTC: 2006-01-02T15:04:05.000000000Z
	stampSize = 30
)

// readFrames reads the log of a container without a terminal: each message is a
// frame whose header has its length.
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
			return fmt.Errorf("%w: the engine reported: %s", errBroken, frame)
		}
		if err := message(frame, each); err != nil {
			return err
		}
	}
}

// message delivers one framed message. A message without a line end that is
// shorter than a piece is the end of a run's output.
func message(frame []byte, each func(runtime.Line) error) error {
	at, text, ok := stamp(frame)
	if !ok {
		return fmt.Errorf("%w: a message without a time", errBroken)
	}
	data, ended := bytes.CutSuffix(text, []byte{'\n'})
	return each(runtime.Line{Time: at, Data: bytes.TrimSuffix(data, []byte{'\r'}), Partial: !ended && len(text) >= pieceSize})
}

// stamp parses and removes the time at the beginning of a message.
func stamp(b []byte) (at time.Time, rest []byte, ok bool) {
	if len(b) <= stampSize || b[stampSize] != ' ' || b[stampSize-1] != 'Z' || b[10] != 'T' {
		return at, b, false
	}
	at, err := time.Parse(time.RFC3339Nano, string(b[:stampSize]))
	return at, b[stampSize+1:], err == nil
}

// readTTY reads the log of a container with a terminal. Its messages have no
// frames: a message ends with its line end, or where the next time begins in the
// middle of a line: after a whole piece, or after a run without a final line end.
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
	at   time.Time // of the current message
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

// end returns errEnd if the stream ended between two messages, else errBroken.
func (t *terminal) end(head []byte, err error) error {
	if errors.Is(err, io.EOF) && len(head) == 0 {
		return errEnd
	}
	return fmt.Errorf("%w: %w", errBroken, err)
}

// body reads one message after its time. It does not read beyond the line end,
// so no message waits for the next one.
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

// finish delivers the text before the end of the stream.
func (t *terminal) finish(text []byte) error {
	if err := t.split(text); err != nil {
		return err
	}
	return errEnd
}

// trim delivers the complete pieces of an unfinished line, so that memory is bounded.
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

// split delivers the messages in the text before a line end: pieces, the
// unfinished last line of an earlier run, and the line itself.
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

// inner finds the time of the next message inside a text: after a whole piece, or
// elsewhere if it is later than the current message's and not in the future. If
// a program prints such a time, its own line is split there; nothing else happens.
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
