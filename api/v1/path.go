package v1

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The limits of a path inside a volume, in bytes.
const (
	MaxPath      = 4096
	MaxComponent = 255
)

// The refusals of a path because of its length.
var (
	errPathTooLong = Errorf(InvalidPath, "Invalid path: it is longer than %d bytes", MaxPath)
	ErrNameTooLong = Errorf(InvalidPath, "Invalid path: a name in it is longer than %d bytes", MaxComponent)
)

// PathRule selects which paths with two dots ParsePath refuses.
type PathRule int

const (
	// DotsInNames refuses ".." as a component, and allows two dots inside a name.
	DotsInNames PathRule = iota
	// NoDots refuses two dots anywhere. It is the rule of the path fields of the interface.
	NoDots
)

// ParsePath returns the path inside a volume that a client named as text, in the form of EscapePath.
// It returns an InvalidPath error for a path that breaks a rule: those of rule and of CheckPath, no
// drive prefix, no leading backslash, and nothing unescaped that EscapePath would escape.
func ParsePath(text string, rule PathRule) (path string, err error) {
	path = unescape(text)
	switch {
	case rule == NoDots && strings.Contains(text, ".."),
		strings.HasPrefix(path, `\`),
		len(path) > 1 && path[1] == ':' && isLetter(path[0]),
		EscapePath(path) != text:
		return "", ErrInvalidPath
	}
	return path, CheckPath(path)
}

// CheckPath returns an InvalidPath error for a path, of any bytes, that is empty, absolute or too
// long, or has a NUL or a component "..".
func CheckPath(path string) error {
	if path == "" || path[0] == '/' || strings.Contains(path, "\x00") {
		return ErrInvalidPath
	}
	if len(path) > MaxPath {
		return errPathTooLong
	}
	for part := range strings.SplitSeq(path, "/") {
		if part == ".." {
			return ErrInvalidPath
		}
		if len(part) > MaxComponent {
			return ErrNameTooLong
		}
	}
	return nil
}

func isLetter(b byte) bool { return b|0x20 >= 'a' && b|0x20 <= 'z' }

// escapeLength is the length of an escaped byte, such as \x0a.
const escapeLength = 4

// EscapePath returns a path, of any bytes, as clients see it: each byte of a control character, and
// each byte that is not part of valid UTF-8, is written as \x and two lowercase hexadecimal digits.
// So is a backslash where such an escape stands in the path itself. ParsePath is the inverse.
func EscapePath(path string) string {
	var out strings.Builder
	for rest := path; rest != ""; {
		r, n := utf8.DecodeRuneInString(rest)
		_, escaped := escapeAt(rest)
		if escaped || unicode.IsControl(r) || r == utf8.RuneError && n == 1 {
			for _, b := range []byte(rest[:n]) {
				fmt.Fprintf(&out, `\x%02x`, b)
			}
		} else {
			out.WriteString(rest[:n])
		}
		rest = rest[n:]
	}
	return out.String()
}

// unescape replaces each escape in text by its byte.
func unescape(text string) string {
	var out strings.Builder
	for i := 0; i < len(text); i++ {
		b := text[i]
		if value, escaped := escapeAt(text[i:]); escaped {
			b, i = value, i+escapeLength-1
		}
		out.WriteByte(b)
	}
	return out.String()
}

// escapeAt returns the byte whose escape begins text.
func escapeAt(text string) (b byte, escaped bool) {
	const digits = "0123456789abcdef"
	if len(text) < escapeLength || text[:2] != `\x` {
		return 0, false
	}
	high, low := strings.IndexByte(digits, text[2]), strings.IndexByte(digits, text[3])
	return byte(high<<4 | low), high >= 0 && low >= 0
}
