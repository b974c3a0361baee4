package cli

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"regexp"
	"unicode"
	"unicode/utf8"
)

const escape = '\x1b'

// maxSequence is the length of the longest sequence that sgr matches, in bytes.
const maxSequence = len("\x1b[") + 32 + len("m")

// sgr is a sequence that sets colours, and sgrStart what may become one.
var (
	sgr      = regexp.MustCompile(`^\x1b\[[0-9;:]{0,32}m`)
	sgrStart = regexp.MustCompile(`^\x1b(\[[0-9;:]{0,32})?$`)
)

// terminal writes text to a terminal so that it can set colours, and do nothing
// else to it: what tenants print could move the cursor, retitle the window or
// type commands. Other control characters are written as \x1b. It is for one
// goroutine.
type terminal struct {
	out  io.Writer
	rest []byte // the begin of a character or sequence that has not come to its end
}

// Printable returns a writer to f that is safe for text of tenants. What is no
// terminal gets everything as it is.
func Printable(f *os.File) io.Writer {
	if IsTerminal(f) {
		return &terminal{out: f}
	}
	return f
}

// unfiltered returns the writer that w filters for, or w.
func unfiltered(w io.Writer) io.Writer {
	if t, ok := w.(*terminal); ok {
		return t.out
	}
	return w
}

// Write never returns fewer bytes than it got without an error.
func (t *terminal) Write(p []byte) (int, error) {
	var b bytes.Buffer
	text := append(t.rest, p...)
	for len(text) > 0 {
		n := t.next(&b, text)
		if n == 0 {
			break
		}
		text = text[n:]
	}
	t.rest = bytes.Clone(text)
	if _, err := b.WriteTo(t.out); err != nil {
		return 0, err
	}
	return len(p), nil
}

// next writes the first character or sequence of text, and returns its length; 0
// if it is incomplete.
func (t *terminal) next(b *bytes.Buffer, text []byte) int {
	if !utf8.FullRune(text) || len(text) == 1 && text[0] == '\r' {
		return 0
	}
	if text[0] == escape {
		head := text[:min(len(text), maxSequence+1)] // an expression takes time in proportion to its input
		if sgrStart.Match(head) {
			return 0
		}
		if s := sgr.Find(head); s != nil {
			b.Write(s)
			return len(s)
		}
	}
	r, n := utf8.DecodeRune(text)
	switch {
	case r == '\n', r == '\t', r == '\r' && text[1] == '\n':
		b.Write(text[:n])
	case r == utf8.RuneError && n == 1, r < utf8.RuneSelf && unicode.IsControl(r):
		fmt.Fprintf(b, `\x%02x`, text[0])
	case unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r):
		fmt.Fprintf(b, `\u%04x`, r)
	default:
		b.Write(text[:n])
	}
	return n
}

// IsTerminal reports whether f is a terminal.
func IsTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
