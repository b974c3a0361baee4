package console

import (
	"bytes"
	"regexp"
	"time"

	v1 "berth/api/v1"
)

// maxMatch is how much of a line is looked at, in bytes. The end of a longer one is not.
const maxMatch = 64 << 10

// matcher looks for the start pattern of one run.
type matcher struct {
	run     run
	pattern string
	re      *regexp.Regexp // nil: matches nothing any more
	from    time.Time      // no line of the run is older, unless the clock was set back
	begun   bool           // a line of the run was read: all behind it are the run's
	line    []byte         // the beginning of a line that goes on
}

// newMatcher makes the matcher of a target. A pattern that is none never matches.
func newMatcher(t Target) *matcher {
	m := &matcher{run: runOf(t), pattern: t.Pattern, from: fromOf(t)}
	if t.Pattern != "" {
		m.re, _ = regexp.Compile(t.Pattern) // admission has refused a bad one
	}
	return m
}

// of says whether this is the matcher of a target.
func (m *matcher) of(t Target) bool {
	return m != nil && m.run == runOf(t) && m.pattern == t.Pattern
}

// add looks at a line. It is true once: when the pattern has matched.
func (m *matcher) add(l v1.Line) bool {
	if m.re == nil || l.Message || !m.ofRun(l) {
		return false
	}
	if l.Partial || len(m.line) > 0 {
		m.line = append(m.line, l.Data[:min(len(l.Data), maxMatch-len(m.line))]...)
		if l.Partial {
			return false
		}
		l.Data = m.line
	}
	matched := matches(m.re, l.Data[:min(len(l.Data), maxMatch)])
	m.line = nil
	if matched {
		m.re = nil
	}
	return matched
}

// ofRun reports whether the run printed a line. Lines come in the order in which
// they were printed, so their times decide only about the first one.
func (m *matcher) ofRun(l v1.Line) bool {
	m.begun = m.begun || !l.Time.Before(m.since())
	return m.begun
}

// since returns the time that no line of the run is older than. It is zero while
// the clock is behind the start: it was set back, and times decide nothing.
func (m *matcher) since() time.Time {
	if time.Now().Before(m.from) {
		return time.Time{}
	}
	return m.from
}

// matches looks at a line as a terminal shows it: without escape sequences, and
// at each of the texts that carriage returns put over one another.
func matches(re *regexp.Regexp, line []byte) bool {
	line = bytes.TrimRight(stripANSI(line), "\r")
	if re.Match(line) {
		return true
	}
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

// stripANSI takes out a terminal's escape sequences. What has none is returned as it is.
func stripANSI(line []byte) []byte {
	i := bytes.IndexByte(line, escape)
	if i < 0 {
		return line
	}
	plain := append(make([]byte, 0, len(line)), line[:i]...)
	for i < len(line) {
		if line[i] == escape {
			i += sequence(line[i:])
			continue
		}
		plain = append(plain, line[i])
		i++
	}
	return plain
}

// sequence is the length of the escape sequence that text begins with.
func sequence(text []byte) int {
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

// span is the length of text up to and with the first byte that ends a sequence.
func span(text []byte, ends func(byte) bool) int {
	for i, c := range text {
		if ends(c) {
			return i + 1
		}
	}
	return len(text)
}

// stringEnd is the length of an operating system command or the like, with its end.
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
