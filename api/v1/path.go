package v1

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// The limits of a path inside a volume, in bytes.
const (
	MaxPath      = 4096
	MaxComponent = 255
)

// CheckPath applies the path rules of the interface to a path that a client sent,
// before any file is touched: not empty, no "..", not absolute, no drive prefix, no
// leading backslash, no control characters, and a limited length. It returns
// ErrInvalidPath for a path that breaks a rule.
func CheckPath(path string) error {
	if strings.Contains(path, "..") {
		return ErrInvalidPath
	}
	return CheckResolved(path)
}

// CheckResolved is CheckPath for a path whose ".." components were resolved before, as
// SFTP requires. It allows two dots inside a name.
func CheckResolved(path string) error {
	switch {
	case path == "", len(path) > MaxPath, !utf8.ValidString(path),
		path[0] == '/', path[0] == '\\',
		len(path) > 1 && path[1] == ':' && isLetter(path[0]),
		strings.ContainsFunc(path, unicode.IsControl):
		return ErrInvalidPath
	}
	for part := range strings.SplitSeq(path, "/") {
		if len(part) > MaxComponent || part == ".." {
			return ErrInvalidPath
		}
	}
	return nil
}

func isLetter(b byte) bool { return b|0x20 >= 'a' && b|0x20 <= 'z' }
