package edge

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// contentSplitter reads a JSON object with a field content, whose text may be far
// larger than memory. It writes the decoded text to a spool and replaces it by an
// empty string; the remaining object is small and validated like any body. It
// need not accept only valid JSON: that validation follows.
type contentSplitter struct {
	from    *bufio.Reader
	content *spool
	most    int // limit on the remaining object, in bytes

	left    bytes.Buffer
	depth   int
	isName  bool // the last token is a string at depth 1 that reads content
	isValue bool // the next token is the value of content
	fault   badJSON
	char    [utf8.UTFMax]byte // buffer of put
}

// split returns the body with an empty content. If the content itself is invalid
// the error is a badJSON, returned after the whole body was read. It returns
// errTooLarge and the errors of from and content at once.
func (s *contentSplitter) split() ([]byte, error) {
	for {
		b, err := s.from.ReadByte()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if b == '"' && s.isValue {
			s.left.WriteString(`""`)
			err = s.takeContent()
		} else {
			s.left.WriteByte(b)
			err = s.step(b)
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		if s.left.Len() > s.most {
			return nil, errTooLarge
		}
	}
	if s.fault != "" {
		return nil, s.fault
	}
	return s.left.Bytes(), nil
}

// step tracks the JSON structure outside the content.
func (s *contentSplitter) step(b byte) error {
	wasName := s.isName
	switch b {
	case ' ', '\t', '\r', '\n':
		return nil
	case '"':
		return s.takeString()
	case '{', '[':
		s.depth++
	case '}', ']':
		s.depth--
	}
	s.isName = false
	s.isValue = b == ':' && s.depth == 1 && wasName
	return nil
}

// takeString copies a string that is not the content.
func (s *contentSplitter) takeString() error {
	s.isValue = false
	begin := s.left.Len() - 1
	for {
		part, err := s.from.ReadSlice('"')
		s.left.Write(part)
		if s.left.Len() > s.most {
			return errTooLarge
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil {
			return err
		}
		text := s.left.Bytes()[begin:]
		if escaped(text) {
			continue
		}
		s.isName = s.depth == 1 && readsContent(text)
		return nil
	}
}

// readsContent reports whether a quoted string reads content. It unquotes only
// strings with escapes: a hostile body has a name in every second token.
func readsContent(text []byte) bool {
	const longest = 64 // bytes; each letter of content may be escaped
	if string(text) == `"content"` {
		return true
	}
	return len(text) <= longest && bytes.IndexByte(text, '\\') >= 0 && unquote(text) == "content"
}

// escaped reports whether the last quote of text is escaped, so that the string
// does not end there.
func escaped(text []byte) bool {
	n := 0
	for i := len(text) - 2; i > 0 && text[i] == '\\'; i-- {
		n++
	}
	return n%2 == 1
}

// takeContent writes the decoded content to the spool, up to its closing quote.
func (s *contentSplitter) takeContent() error {
	s.isValue, s.isName = false, false
	if err := s.content.reset(); err != nil { // of duplicate names the last value applies
		return err
	}
	for {
		if err := s.takePlain(); err != nil {
			return err
		}
		r, size, err := s.from.ReadRune()
		switch {
		case err != nil:
			return err
		case r == '"':
			return nil
		case r == '\\':
			err = s.takeEscape()
		case r == utf8.RuneError && size == 1:
			s.fault = "must be UTF-8"
		case r < ' ':
			s.refuse()
		default:
			err = s.put(r)
		}
		if err != nil {
			return err
		}
	}
}

// takePlain writes the buffered bytes up to the first that is not a printable
// ASCII character or that ends or escapes the string.
func (s *contentSplitter) takePlain() error {
	if _, err := s.from.Peek(1); err != nil {
		return err
	}
	ready, _ := s.from.Peek(s.from.Buffered()) // cannot fail: they are buffered
	n := 0
	for n < len(ready) && ready[n] >= ' ' && ready[n] < utf8.RuneSelf && ready[n] != '"' && ready[n] != '\\' {
		n++
	}
	_, err := s.content.Write(ready[:n])
	_, _ = s.from.Discard(n) // cannot fail: they are buffered
	return err
}

// takeEscape writes the character of an escape sequence after its backslash.
func (s *contentSplitter) takeEscape() error {
	b, err := s.from.ReadByte()
	if err != nil {
		return err
	}
	if b == 'u' {
		return s.takeUnicode()
	}
	const letters, meant = `"\/bfnrt`, "\"\\/\b\f\n\r\t"
	i := bytes.IndexByte([]byte(letters), b)
	if i < 0 {
		s.refuse()
		return nil
	}
	return s.put(rune(meant[i]))
}

// takeUnicode writes the character of \uXXXX, or of a surrogate pair of two. Like
// encoding/json it replaces a lone surrogate by U+FFFD.
func (s *contentSplitter) takeUnicode() error {
	first, err := s.from.Peek(4)
	r, ok := hexRune(first)
	if err != nil || !ok {
		s.refuse()
		return err
	}
	_, _ = s.from.Discard(4) // cannot fail: they were peeked
	if !utf16.IsSurrogate(r) {
		return s.put(r)
	}
	second, _ := s.from.Peek(6) // fewer bytes are not an escape
	if len(second) == 6 && second[0] == '\\' && second[1] == 'u' {
		low, _ := hexRune(second[2:])
		if both := utf16.DecodeRune(r, low); both != utf8.RuneError {
			_, _ = s.from.Discard(6) // cannot fail: they were peeked
			return s.put(both)
		}
	}
	return s.put(utf8.RuneError)
}

func hexRune(digits []byte) (r rune, ok bool) {
	n, err := strconv.ParseUint(string(digits), 16, 16)
	return rune(n), err == nil && len(digits) == 4
}

// refuse records that the body is not JSON.
func (s *contentSplitter) refuse() {
	if s.fault == "" {
		s.fault = "is not JSON"
	}
}

func (s *contentSplitter) put(r rune) error {
	_, err := s.content.Write(utf8.AppendRune(s.char[:0], r))
	return err
}
