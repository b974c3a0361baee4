package configfile

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"
)

// MaxSize bounds a configuration file, before and after Apply, in bytes.
const MaxSize = 512 << 10

// Errors of Apply about a whole file. All of its errors are texts for clients.
var (
	errSize     = errors.New("the file is larger than 512 KiB")
	errFormat   = errors.New("the format is not known")
	errEncoding = errors.New("the file has bytes that its encoding does not know: save it as UTF-8")
	errDepth    = errors.New("the file is nested too deeply")
	errPanic    = errors.New("berth failed to read this file: please report it with the file")
	errNUL      = errors.New("the file has NUL bytes: it is no text, or it is UTF-16 without a byte order mark: save it as UTF-8")
	errUnstable = errors.New("the values cannot be set so that they are read back: the keys conflict, or the file is unusual")
)

// Change is what is set in a file.
type Change struct {
	Set   map[string]string // by key, before Edits
	Edits []Edit            // in their order
	Lines Lines             // of the format text
}

// Edit sets the values to which a key leads. A condition compares each value as text: it is equal to If, or
// each match of the expression behind "regex:" in it is replaced by Value. A missing value meets none.
type Edit struct {
	Key, Value string
	If         string // empty: none
}

// Lines is what becomes of a key of the format text with which no line begins.
type Lines int

// The values of Lines.
const (
	AppendLines Lines = iota // its value is added
	OnlyReplace              // nothing
)

// format is one format. Content has no byte order mark; if it is empty the file is missing.
type format struct {
	// set returns content with the values of entries, which may have a key twice: the last one counts.
	set func(content []byte, set []entry) ([]byte, error)
	// find returns a finder in content; nil if keys have no conditions and lead to themselves.
	find func(content []byte) (finder, error)
}

// entry is one value to set.
type entry struct{ key, value string }

// formats returns the formats by name.
func formats(lines Lines) map[string]format {
	return map[string]format{
		"properties": {properties, findProperties}, "ini": {ini, findINI}, "yaml": {yamlFile, findYAML}, "json": {jsonFile, findJSON},
		"xml": {xmlFile, findXML}, "text": {set: lines.set},
	}
}

// Formats returns the names of the formats, sorted.
func Formats() []string { return slices.Sorted(maps.Keys(formats(AppendLines))) }

// Apply returns content with a change made. It returns an error if the content cannot be parsed, or a
// value cannot be set.
func Apply(name string, content []byte, c Change) ([]byte, error) {
	apply, known := formats(c.Lines)[name]
	if !known {
		return nil, errFormat
	}
	if len(content) > MaxSize {
		return nil, errSize
	}
	charset := charsetOf(content)
	if name == "xml" && charset == encoding.Nop && !utf8.Valid(content) {
		charset = charmap.ISO8859_1 // the bytes that it does not change stay in any encoding whose lower half is ASCII
	}
	text, err := convert(charset.NewDecoder(), charset.NewEncoder(), content)
	if err != nil {
		return nil, err
	}
	if bytes.IndexByte(text, 0) >= 0 {
		return nil, errNUL
	}
	edits := make([]Edit, 0, len(c.Set)+len(c.Edits))
	for _, key := range slices.Sorted(maps.Keys(c.Set)) {
		edits = append(edits, Edit{Key: key, Value: c.Set[key]})
	}
	if text, err = apply.to(text, append(edits, c.Edits...)); err != nil {
		return nil, err
	}
	changed, err := convert(charset.NewEncoder(), charset.NewDecoder(), text)
	if err == nil && len(changed) > MaxSize {
		err = errSize
	}
	return changed, err
}

// convert returns a text in another encoding from which it can be converted back.
func convert(there, back interface{ Bytes([]byte) ([]byte, error) }, text []byte) ([]byte, error) {
	converted, err := there.Bytes(text)
	if err != nil {
		return nil, errEncoding
	}
	if same, err := back.Bytes(converted); err != nil || !bytes.Equal(same, text) {
		return nil, errEncoding
	}
	return converted, nil
}

// charsetOf returns the encoding that a byte order mark names, with the mark. Without one
// bytes stay as they are.
func charsetOf(content []byte) encoding.Encoding {
	switch {
	case bytes.HasPrefix(content, []byte("\xFF\xFE")):
		return unicode.UTF16(unicode.LittleEndian, unicode.ExpectBOM)
	case bytes.HasPrefix(content, []byte("\xFE\xFF")):
		return unicode.UTF16(unicode.BigEndian, unicode.ExpectBOM)
	case bytes.HasPrefix(content, []byte("\xEF\xBB\xBF")):
		return unicode.UTF8BOM
	}
	return encoding.Nop
}

// to applies a format twice: the second time must change nothing, so each value reads back
// as it was requested. It turns a panic into an error, so that a file that nobody thought of
// does not keep its container from starting.
func (f format) to(content []byte, edits []Edit) (changed []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			changed, err = nil, fmt.Errorf("%w: %v", errPanic, p)
		}
	}()
	var set []entry
	if f.find == nil {
		for _, e := range edits {
			set = append(set, entry{e.Key, e.Value})
		}
	} else if len(edits) > 0 {
		find, err := f.find(content)
		if err == nil {
			set, err = resolve(edits, find)
		}
		if err != nil {
			return nil, err
		}
	}
	if changed, err = f.set(content, set); err != nil {
		return nil, err
	}
	if len(changed) > MaxSize {
		return nil, errSize
	}
	if again, err := f.set(changed, set); err != nil || !bytes.Equal(again, changed) || bytes.IndexByte(changed, 0) >= 0 {
		return nil, errUnstable
	}
	return changed, nil
}

// maxIndent bounds the space that is copied for each key that is added.
const maxIndent = 100

// edit replaces the bytes from start to end.
type edit struct {
	start, end int
	text       string
}

// replaceAll makes edits that do not overlap. Those at the same position keep their
// order. It makes none if the result is too large: one value may replace many lines.
func replaceAll(content []byte, edits []edit) ([]byte, error) {
	size := len(content)
	for _, e := range edits {
		size += len(e.text) - (e.end - e.start)
	}
	if size > MaxSize {
		return nil, errSize
	}
	slices.SortStableFunc(edits, func(a, b edit) int { return a.start - b.start })
	var out bytes.Buffer
	at := 0
	for _, e := range edits {
		out.Write(content[at:e.start])
		out.WriteString(e.text)
		at = e.end
	}
	out.Write(content[at:])
	return out.Bytes(), nil
}

// ending returns the line ending of content: the last one before the position at, else
// the first one behind it, else "\n".
func ending(content []byte, at int) string {
	i := bytes.LastIndexByte(content[:at], '\n')
	if i < 0 {
		i = bytes.IndexByte(content, '\n')
	}
	switch {
	case i > 0 && content[i-1] == '\r':
		return "\r\n"
	case i < 0 && bytes.IndexByte(content, '\r') >= 0:
		return "\r"
	}
	return "\n"
}

// atEnd returns the edit that adds lines to the end of content.
func atEnd(content []byte, lines []string) edit {
	n, eol, lead := len(content), ending(content, len(content)), ""
	if len(lines) == 0 {
		return edit{n, n, ""}
	}
	if n > 0 && content[n-1] != '\n' && content[n-1] != '\r' {
		lead = eol
	}
	return edit{n, n, lead + strings.Join(lines, eol) + eol}
}

// line is one line of a file: content[start:end], without its ending.
type line struct{ start, end int }

// lines splits content at "\n", "\r\n" and "\r".
func lines(content []byte) (list []line) {
	for start := 0; start < len(content); {
		end := start + lineEnd(content[start:])
		list = append(list, line{start, end})
		start = end + 1
		if bytes.HasPrefix(content[end:], []byte("\r\n")) {
			start++
		}
	}
	return list
}

// lineEnd returns the length of the first line of content.
func lineEnd(content []byte) int {
	if n := bytes.IndexAny(content, "\r\n"); n >= 0 {
		return n
	}
	return len(content)
}

// oneLine returns an error for a value that has a line break.
func oneLine(e entry) error {
	if strings.ContainsAny(e.value, "\r\n") {
		return fmt.Errorf("%s: the value must be one line", e.key)
	}
	return nil
}

// place names the position at, for errors.
func place(content []byte, at int) string {
	before := content[:max(0, min(at, len(content)))]
	return fmt.Sprintf("line %d, column %d", bytes.Count(before, []byte("\n"))+1,
		utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:])+1)
}
