package cli

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/mattn/go-runewidth"
	"golang.org/x/term"
)

// screen shows lines on a terminal, and replaces them. It is not safe for concurrent use.
type screen struct {
	f    *os.File
	full bool // the lines begin at the top of the terminal, which is cleared; else at the cursor

	shown int // lines; of a screen that is not full
	begun bool
}

// newScreen returns a screen on the terminal that w writes to; nil if it is none.
func newScreen(w io.Writer, full bool) *screen {
	f := terminalOf(w)
	if f == nil {
		return nil
	}
	return &screen{f: f, full: full}
}

// draw replaces the lines. They must not have control characters other than colours.
// Lines that do not fit the height are left out.
func (s *screen) draw(lines []string) error {
	width, height, err := term.GetSize(int(s.f.Fd()))
	if err != nil {
		width, height = 0, 0
	}
	if height > 2 && len(lines) > height-1 { // the cursor is on a line of its own
		lines = append(lines[:height-2:height-2], "…")
	}
	var b bytes.Buffer
	switch {
	case s.full && !s.begun:
		b.WriteString("\x1b[2J\x1b[H")
	case s.full:
		b.WriteString("\x1b[H")
	case s.shown > 0:
		fmt.Fprintf(&b, "\x1b[%dA", s.shown)
	}
	s.begun, s.shown = true, len(lines)
	for _, line := range lines {
		if width > 0 && !s.full && runewidth.StringWidth(line) > width {
			line = runewidth.Truncate(line, width, "…")
		}
		b.WriteString(line + "\x1b[K\n")
	}
	b.WriteString("\x1b[J")
	_, err = b.WriteTo(s.f)
	return err
}

// drawTable replaces the lines by those of a table.
func (s *screen) drawTable(t *table) error {
	var b strings.Builder
	if err := t.print(&b); err != nil {
		return err
	}
	return s.draw(strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n"))
}
