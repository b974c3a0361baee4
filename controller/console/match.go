package console

import (
	"bytes"
	"regexp"
	"time"

	v1 "berth/api/v1"
)

// maxMatch is how many bytes of a long line are matched together at least.
const maxMatch = 64 << 10

// matcher searches the output of one run for its start pattern.
type matcher struct {
	run     run
	pattern string
	re      *regexp.Regexp // nil after a match, and for an invalid or empty pattern
	from    time.Time      // no line of the run is older, unless the clock was set back
	begun   bool           // a line of the run was read: all lines after it belong to the run
	line    []byte         // the last pieces read so far of a line in several pieces
}

// newMatcher returns the matcher of a target. An invalid pattern never matches.
func newMatcher(t Target) *matcher {
	m := &matcher{run: runOf(t), pattern: t.Pattern, from: fromOf(t), begun: t.OwnLog}
	if t.Pattern != "" {
		m.re, _ = regexp.Compile(t.Pattern) // the API refuses invalid patterns
	}
	return m
}

// isFor reports whether m is the matcher of a target. m may be nil.
func (m *matcher) isFor(t Target) bool {
	return m != nil && m.run == runOf(t) && m.pattern == t.Pattern
}

// add reads the next line. It returns true once: when the pattern matches.
func (m *matcher) add(l v1.Line) bool {
	if m.re == nil || l.Message || !m.ofRun(l) {
		return false
	}
	matched := false
	if l.Partial || len(m.line) > 0 {
		m.line = append(m.line, l.Data...)
		switch cr := bytes.LastIndexByte(m.line, '\r'); {
		case !l.Partial:
			matched, m.line = matches(m.re, m.line), nil
		case cr >= 0: // a terminal begins the line again
			matched = matches(m.re, m.line[:cr])
			m.line = append(m.line[:0], m.line[cr+1:]...)
		case len(m.line) > 2*maxMatch:
			matched = matches(m.re, m.line)
			m.line = append(m.line[:0], m.line[len(m.line)-maxMatch:]...)
		}
	} else {
		matched = matches(m.re, l.Data)
	}
	if matched {
		m.re, m.line = nil, nil
	}
	return matched
}

// ofRun reports whether the run printed a line. Lines arrive in the order in which they
// were printed, so only the first line of the run is determined by its time.
func (m *matcher) ofRun(l v1.Line) bool {
	m.begun = m.begun || !l.Time.Before(m.since())
	return m.begun
}

// since returns a time that no line of the run is older than. It is zero while the clock
// is behind the start, because then the clock was set back and times mean nothing.
func (m *matcher) since() time.Time {
	if time.Now().Before(m.from) {
		return time.Time{}
	}
	return m.from
}

// matches reports whether a line matches as a terminal shows it: without escape
// sequences, as a whole or in one of its parts between carriage returns and what does the same.
func matches(re *regexp.Regexp, line []byte) bool {
	if re.Match(bytes.TrimRight(stripANSI(line, ""), "\r")) {
		return true
	}
	line = bytes.TrimRight(stripANSI(line, "\r"), "\r")
	if bytes.IndexByte(line, '\r') < 0 {
		return false
	}
	for part := range bytes.SplitSeq(line, []byte{'\r'}) {
		if re.Match(part) {
			return true
		}
	}
	return false
}

const (
	escape = 0x1b
	bell   = 0x07
)

// stripANSI returns line without terminal escape sequences, and with restart in place of
// each that begins the line again. A line without any is returned unchanged.
func stripANSI(line []byte, restart string) []byte {
	i := bytes.IndexByte(line, escape)
	if i < 0 {
		return line
	}
	plain := append(make([]byte, 0, len(line)), line[:i]...)
	for i < len(line) {
		if line[i] == escape {
			n := escapeLen(line[i:])
			if beginsAgain(line[i : i+n]) {
				plain = append(plain, restart...)
			}
			i += n
			continue
		}
		plain = append(plain, line[i])
		i++
	}
	return plain
}

// beginsAgain reports whether an escape sequence moves the cursor to the first column, or erases
// what is before it.
func beginsAgain(sequence []byte) bool {
	parameters, isControl := bytes.CutPrefix(sequence, []byte{escape, '['})
	if !isControl || len(parameters) == 0 {
		return false
	}
	final := len(parameters) - 1
	first, second, _ := bytes.Cut(parameters[:final], []byte{';'})
	one := func(number []byte) bool { return len(number) == 0 || string(number) == "0" || string(number) == "1" }
	switch parameters[final] {
	case 'E', 'F':
		return true
	case 'G', '`':
		return one(first)
	case 'H', 'f':
		return one(second)
	case 'J', 'K':
		return string(first) == "1" || string(first) == "2"
	}
	return false
}

// escapeLen returns the length of the escape sequence at the start of text.
func escapeLen(text []byte) int {
	if len(text) < 2 {
		return len(text)
	}
	switch c := text[1]; {
	case c == '[':
		return 2 + span(text[2:], func(c byte) bool { return c >= 0x40 && c <= 0x7e })
	case c == ']', c == 'P', c == 'X', c == '^', c == '_':
		return 2 + stringEnd(text[2:])
	case c >= 0x20 && c <= 0x2f:
		return 2 + span(text[2:], func(c byte) bool { return c >= 0x30 && c <= 0x7e })
	}
	return 2
}

// span returns the length of text up to and including the first final byte.
func span(text []byte, isFinal func(byte) bool) int {
	for i, c := range text {
		if isFinal(c) {
			return i + 1
		}
	}
	return len(text)
}

// stringEnd returns the length of a control string, such as an operating system command,
// including its terminator.
func stringEnd(text []byte) int {
	for i, c := range text {
		if c == bell {
			return i + 1
		}
		if c == escape && i+1 < len(text) && text[i+1] == '\\' {
			return i + 2
		}
	}
	return len(text)
}
