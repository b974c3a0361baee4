package configfile

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// MaxSize bounds a configuration file, before and after Apply, in bytes.
const MaxSize = 512 << 10

// maxWork bounds the size of a file times the number of its keys: each key may be
// compared with everything in it, and nothing ends Apply before it is done.
const maxWork = 64 << 20

// Errors of Apply about a whole file. All of its errors are texts for clients.
var (
	errSize     = errors.New("the file is larger than 512 KiB")
	errFormat   = errors.New("the format is not known")
	errEncoding = errors.New("the file is not UTF-8: save it in that encoding")
	errPanic    = errors.New("berth failed to read this file: please report it with the file")
	errUnstable = errors.New("the values cannot be set so that they are read back: the keys conflict, or the file is unusual")
)

// format is one format. It returns content with the values of set, whose keys are
// sorted. Content has no byte order mark; if it is empty the file is missing.
type format func(content []byte, set []entry) ([]byte, error)

// entry is one value to set.
type entry struct{ key, value string }

// formats returns the formats by name.
func formats() map[string]format {
	return map[string]format{"properties": properties, "ini": ini, "yaml": yamlFile, "json": jsonFile, "xml": xmlFile, "text": text}
}

// Formats returns the names of the formats, sorted.
func Formats() []string { return slices.Sorted(maps.Keys(formats())) }

// Apply returns content with the values of set. It returns an error if the content
// cannot be parsed, or a value cannot be set.
func Apply(name string, content []byte, set map[string]string) ([]byte, error) {
	apply, known := formats()[name]
	if !known {
		return nil, errFormat
	}
	return apply.to(content, set)
}

// to is Apply with a format. It turns a panic into an error, so that a file that nobody
// thought of does not keep its container from starting.
func (apply format) to(content []byte, set map[string]string) (changed []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			changed, err = nil, fmt.Errorf("%w: %v", errPanic, p)
		}
	}()
	if len(content) > MaxSize {
		return nil, errSize
	}
	if len(content)*len(set) > maxWork {
		return nil, fmt.Errorf("the file is too large for %d values: at most %d KiB, or 512 KiB for up to 128", len(set), maxWork/len(set)>>10)
	}
	list := make([]entry, 0, len(set))
	for _, key := range slices.Sorted(maps.Keys(set)) {
		list = append(list, entry{key, set[key]})
	}
	if bytes.HasPrefix(content, []byte("\xFF\xFE")) || bytes.HasPrefix(content, []byte("\xFE\xFF")) { // the mark of UTF-16
		return nil, errEncoding
	}
	mark, rest := splitMark(content)
	changed, err = apply(rest, list)
	if err != nil {
		return nil, err
	}
	if len(mark)+len(changed) > MaxSize {
		return nil, errSize
	}
	if again, err := apply(changed, list); err != nil || !bytes.Equal(again, changed) {
		return nil, errUnstable
	}
	return append(slices.Clip(mark), changed...), nil
}

// splitMark separates a byte order mark of UTF-8.
func splitMark(content []byte) (mark, rest []byte) {
	const utf8Mark = "\xEF\xBB\xBF"
	if bytes.HasPrefix(content, []byte(utf8Mark)) {
		return content[:len(utf8Mark)], content[len(utf8Mark):]
	}
	return nil, content
}

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

// appendLine adds a line to the end of content.
func appendLine(content []byte, line string) []byte {
	end := ending(content, len(content))
	if n := len(content); n > 0 && content[n-1] != '\n' && content[n-1] != '\r' {
		content = append(slices.Clip(content), end...)
	}
	return append(slices.Clip(content), line+end...)
}

// line is one line of a file: content[start:end], without its ending.
type line struct{ start, end int }

// lines splits content at "\n", "\r\n" and "\r".
func lines(content []byte) (list []line) {
	for start := 0; start < len(content); {
		n := bytes.IndexAny(content[start:], "\r\n")
		if n < 0 {
			return append(list, line{start, len(content)})
		}
		end := start + n
		list = append(list, line{start, end})
		start = end + 1
		if content[end] == '\r' && start < len(content) && content[start] == '\n' {
			start++
		}
	}
	return list
}

// oneLine returns an error for a value that has a line break.
func oneLine(e entry) error {
	if strings.ContainsAny(e.value, "\r\n") {
		return fmt.Errorf("%s: the value must be one line", e.key)
	}
	return nil
}
