package console

import (
	"context"
	"strings"
	"time"
	"unicode"

	v1 "berth/api/v1"
)

// lastLines is the number of lines that LastLines returns.
const lastLines = 5

// Tail reads the end of a console.
type Tail interface {
	LastLines(ctx context.Context, id, role string, n int, since time.Time) ([]v1.Line, error)
}

// LastLines returns the last lines that the server of a container has printed since a
// time, the oldest first, as a terminal shows them: without escape sequences and
// control characters. Empty lines are left out. A line has at most maxPiece bytes.
func LastLines(ctx context.Context, t Tail, id string, since time.Time) ([]string, error) {
	read, err := t.LastLines(ctx, id, v1.ServerConsole, lastLines, since)
	var lines []string
	for _, l := range read {
		if text := strings.TrimSpace(printable(l.Data)); text != "" {
			lines = append(lines, text)
		}
	}
	return lines, err
}

// printable returns a line without what a terminal would not show as a character.
func printable(line []byte) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t':
			return ' '
		case !unicode.IsPrint(r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(string(stripANSI(line)), ""))
}
