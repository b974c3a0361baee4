package cli

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"regexp"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"
)

const escape = '\x1b'

// maxSequence is the length of the longest sequence that sgr matches, in bytes.
const maxSequence = len("\x1b[") + 32 + len("m")

// sgr matches a sequence that sets colours, and sgrStart the beginning of one.
var (
	sgr      = regexp.MustCompile(`^\x1b\[[0-9;:]{0,32}m`)
	sgrStart = regexp.MustCompile(`^\x1b(\[[0-9;:]{0,32})?$`)
)

// terminal writes the text of tenants to a terminal. The text can set colours; other
// control characters are escaped as \x1b, because they could move the cursor, change
// the window's title or type commands. It is not safe for concurrent use.
type terminal struct {
	out  io.Writer
	rest []byte // the beginning of an incomplete character or sequence
}

// Printable returns a writer to f that is safe for text of tenants: it escapes control
// characters if f is a terminal.
func Printable(f *os.File) io.Writer {
	if IsTerminal(f) {
		return &terminal{out: f}
	}
	return f
}

// Write writes p, except for an incomplete sequence at its end.
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
func IsTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

// terminalOf returns the terminal that w writes to; nil if it is none.
func terminalOf(w io.Writer) *os.File {
	if t, filters := w.(*terminal); filters {
		w = t.out
	}
	f, is := w.(*os.File)
	if !is || !IsTerminal(f) {
		return nil
	}
	return f
}
