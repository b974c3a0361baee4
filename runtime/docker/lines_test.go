package docker

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"

	"berth/runtime"
)

var clock = time.Date(2026, 11, 21, 2, 0, 0, 123456789, time.UTC)

// at is a message's time in the engine's format, some nanoseconds after clock.
func at(ns int) string { return clock.Add(time.Duration(ns)).Format("2006-01-02T15:04:05.000000000Z") }

func frame(stream byte, text string) string {
	header := make([]byte, 8)
	header[0] = stream
	binary.BigEndian.PutUint32(header[4:], uint32(len(text)))
	return string(header) + text
}

// got reads a stream and shows its lines as "<ns> <text>", with + for pieces.
func got(t *testing.T, read func(io.Reader, func(runtime.Line) error) error, r io.Reader) (lines []string, err error) {
	t.Helper()
	err = read(r, func(l runtime.Line) error {
		text := fmt.Sprintf("%d %s", l.Time.Sub(clock), l.Data)
		if l.Partial {
			text += "+"
		}
		lines = append(lines, text)
		return nil
	})
	return lines, err
}

func TestReadTTY(t *testing.T) {
	piece := strings.Repeat("p", pieceSize)
	forged := at(1000) + " forged"
	future := time.Now().Add(time.Hour).UTC().Format("2006-01-02T15:04:05.000000000Z") + " x"
	for name, c := range map[string]struct {
		stream string
		want   []string
	}{
		"nothing":              {"", nil},
		"lines":                {at(1) + " a\r\n" + at(2) + " b\n", []string{"1 a", "2 b"}},
		"empty line":           {at(1) + " \r\n" + at(2) + " b\r\n", []string{"1 ", "2 b"}},
		"end of a run":         {at(1) + " a> ", []string{"1 a> "}},
		"two runs":             {at(1) + " a> " + at(2) + " b\r\n", []string{"1 a> ", "2 b"}},
		"pieces":               {at(1) + " " + piece + at(1) + " " + piece + at(1) + " end\r\n", []string{"1 " + piece + "+", "1 " + piece + "+", "1 end"}},
		"a whole piece":        {at(1) + " " + piece + at(1) + " \r\n", []string{"1 " + piece + "+", "1 "}},
		"an older time inside": {at(5) + " log " + at(3) + " text\r\n", []string{"5 log " + at(3) + " text"}},
		"a future inside":      {at(1) + " log " + future + "\r\n", []string{"1 log " + future}},
		"a forged time":        {at(1) + " see " + forged + "\r\n", []string{"1 see ", "1000 forged"}},
		"other times":          {at(1) + " 2026-11-21T02:00:00Z short Z \r\n", []string{"1 2026-11-21T02:00:00Z short Z "}},
		"NUL and bad UTF-8":    {at(1) + " a\x00\xff\xfe\r\n", []string{"1 a\x00\xff\xfe"}},
	} {
		for _, r := range []io.Reader{strings.NewReader(c.stream), iotest.OneByteReader(strings.NewReader(c.stream))} {
			lines, err := got(t, readTTY, r)
			require.NoError(t, err, name)
			require.Equal(t, c.want, lines, name)
		}
	}
}

func TestReadFrames(t *testing.T) {
	piece := strings.Repeat("p", pieceSize)
	stream := frame(1, at(1)+" out\n") + frame(2, at(2)+" err\n") + frame(1, at(3)+" "+piece) + frame(1, at(3)+" end\n") + frame(1, at(4)+" no end")
	lines, err := got(t, readFrames, iotest.HalfReader(strings.NewReader(stream)))
	require.NoError(t, err)
	require.Equal(t, []string{"1 out", "2 err", "3 " + piece + "+", "3 end", "4 no end"}, lines)
}

// A stream that breaks off is never taken for the end of a run.
func TestBrokenStreamsAreErrors(t *testing.T) {
	for name, c := range map[string]struct {
		read   func(io.Reader, func(runtime.Line) error) error
		stream io.Reader
	}{
		"header":         {readFrames, strings.NewReader("\x01\x00\x00")},
		"frame":          {readFrames, strings.NewReader(frame(1, at(1)+" text\n")[:30])},
		"no body":        {readFrames, strings.NewReader(frame(1, at(1)+" text\n")[:8])},
		"type":           {readFrames, strings.NewReader(frame(9, at(1)+" text\n"))},
		"size":           {readFrames, bytes.NewReader([]byte{1, 0, 0, 0, 255, 255, 255, 255, 1})},
		"no time":        {readFrames, strings.NewReader(frame(1, "text\n"))},
		"system error":   {readFrames, strings.NewReader(frame(3, at(1)+" error grabbing logs"))},
		"tty no time":    {readTTY, strings.NewReader(strings.Repeat("x", 100))},
		"tty short":      {readTTY, strings.NewReader("2026-11-21T")},
		"tty connection": {readTTY, io.MultiReader(strings.NewReader(at(1)+" a\n"+at(2)+" b"), iotest.ErrReader(io.ErrUnexpectedEOF))},
		"connection":     {readFrames, io.MultiReader(strings.NewReader(frame(1, at(1)+" a\n")), iotest.ErrReader(io.ErrUnexpectedEOF))},
	} {
		_, err := got(t, c.read, c.stream)
		require.ErrorIs(t, err, errBroken, name)
	}
}

func TestCallbackErrorEndsReading(t *testing.T) {
	for _, err := range []error{io.EOF, io.ErrUnexpectedEOF, io.ErrClosedPipe} {
		stop := func(runtime.Line) error { return err }
		require.Equal(t, err, readTTY(strings.NewReader(at(1)+" a\n"), stop))
		require.Equal(t, err, readTTY(strings.NewReader(at(1)+" a"), stop))
		require.Equal(t, err, readFrames(strings.NewReader(frame(1, at(1)+" a\n")), stop))
	}
}

// A line of any length takes bounded memory: pieces are handed on as they come.
func TestEndlessLineIsSplit(t *testing.T) {
	one := at(1) + " " + strings.Repeat("p", pieceSize)
	endless := io.LimitReader(&repeat{text: one}, int64(len(one)*1000))
	largest, pieces := 0, 0
	require.NoError(t, readTTY(endless, func(l runtime.Line) error {
		largest = max(largest, len(l.Data))
		pieces++
		return nil
	}))
	require.Equal(t, pieceSize, largest)
	require.Equal(t, 1000, pieces)
}

type repeat struct {
	text string
	pos  int
}

func (r *repeat) Read(b []byte) (int, error) {
	n := copy(b, r.text[r.pos:])
	r.pos = (r.pos + n) % len(r.text)
	return n, nil
}

func FuzzLogStreams(f *testing.F) {
	f.Add([]byte(at(1) + " a\r\n" + at(2) + " b"))
	f.Add([]byte(frame(1, at(1)+" a\n")))
	f.Fuzz(func(t *testing.T, stream []byte) {
		for _, read := range []func(io.Reader, func(runtime.Line) error) error{readTTY, readFrames} {
			taken := 0
			_ = read(bytes.NewReader(stream), func(l runtime.Line) error {
				taken += len(l.Data)
				return nil
			})
			require.LessOrEqual(t, taken, len(stream), "no byte is delivered twice")
		}
	})
}

func TestPullProgress(t *testing.T) {
	l := layers{}
	step := func(id, status string, current, total int64) bool {
		m := pullMessage{ID: id, Status: status}
		m.Detail.Current, m.Detail.Total = current, total
		return l.record(m)
	}
	require.True(t, step("1.20", "Pulling from library/x", 0, 0))
	require.Zero(t, l.progress())
	require.True(t, step("a", "Pulling fs layer", 0, 0))
	require.False(t, step("a", "Pulling fs layer", 0, 0), "the same again is no progress")
	require.True(t, step("b", "Already exists", 0, 0))
	require.Equal(t, runtime.Progress{Layers: 2, Done: 1}, l.progress())
	require.True(t, step("a", "Downloading", 50, 100))
	require.False(t, step("a", "Downloading", 50, 100))
	require.False(t, step("a", "Retrying in 5 seconds", 0, 0))
	require.Equal(t, runtime.Progress{Layers: 2, Done: 1, Current: 50, Total: 100}, l.progress())
	require.True(t, step("a", "Download complete", 0, 0))
	require.True(t, step("a", "Extracting", 10, 100))
	require.True(t, step("a", "Extracting", 20, 100))
	require.True(t, step("a", "Pull complete", 0, 0))
	require.True(t, step("", "Digest: sha256:…", 0, 0))
	require.Equal(t, runtime.Progress{Layers: 2, Done: 2, Current: 100, Total: 100}, l.progress())
}
