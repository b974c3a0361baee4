package configfile

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf16"
)

// The parts of a properties file as java.util.Properties reads it. A backslash at the end of a
// line joins it with the next one, without the space that begins that.
const (
	propertyJoin   = `\\(?:\r\n|\r|\n|\z)[ \t\f]*`
	propertyEscape = propertyJoin + `|\\u[0-9A-Fa-f]{0,4}|\\[^u\r\n]`
	propertySpace  = `(?:[ \t\f]|` + propertyJoin + `)*`
)

var (
	propertyBlank = regexp.MustCompile(`^(?:[ \t\f\r\n]|[#!][^\r\n]*)*`)
	propertyEntry = regexp.MustCompile(`^((?:[^\\=: \t\f\r\n]|` + propertyEscape + `)*)(` +
		propertySpace + `[=:]?` + propertySpace + `)((?:[^\\\r\n]|` + propertyEscape + `)*)`)
	propertyParts = regexp.MustCompile(`(?s)` + propertyEscape + `|[^\\]+|.`)
	propertyOpen  = regexp.MustCompile(`(?:^|[^\\])(?:\\\\)*` + propertyJoin + `\z`)
)

// property is one entry of a properties file, which may have several lines.
type property struct {
	value      string
	start, end int    // of the value, in bytes
	separator  string // before the value
}

// readProperties returns the last entry of each key. open reports whether the last line is joined
// with the next one.
func readProperties(content []byte) (last map[string]property, open bool, err error) {
	last = map[string]property{}
	for at := len(propertyBlank.Find(content)); at < len(content); at += len(propertyBlank.Find(content[at:])) {
		m := propertyEntry.FindSubmatchIndex(content[at:])
		key, err := readProperty(content, at, at+m[3])
		if err != nil {
			return nil, false, err
		}
		one := property{start: at + m[6], end: at + m[7], separator: string(content[at+m[4] : at+m[5]])}
		if one.value, err = readProperty(content, one.start, one.end); err != nil {
			return nil, false, err
		}
		last[key] = one
		open = one.end == len(content) && propertyOpen.Match(content[at:])
		at = one.end
	}
	return last, open, nil
}

func findProperties(content []byte) (finder, error) {
	last, _, err := readProperties(content)
	return finderOf(func(key string) (string, bool) {
		one, exists := last[key]
		return one.value, exists
	}), err
}

// properties sets values as java.util.Properties reads them. Of several entries with one
// key the last one counts.
func properties(content []byte, set []entry) ([]byte, error) {
	last, open, err := readProperties(content)
	if err != nil {
		return nil, err
	}
	var edits []edit
	var added []string
	for _, e := range set {
		old, exists := last[e.key]
		switch {
		case !exists:
			added = append(added, writeProperty(e.key, true)+"="+writeProperty(e.value, false))
		case old.value != e.value:
			edits = append(edits, edit{old.start, old.end, old.format(e.value)})
		}
	}
	if len(added) > 0 && open {
		added[0] = ending(content, len(content)) + added[0]
	}
	return replaceAll(content, append(edits, atEnd(content, added)))
}

// format returns a value as it is written in place of the old one.
func (p property) format(value string) string {
	text := writeProperty(value, false)
	switch {
	case p.separator == "" && value != "":
		return "=" + text
	case !strings.ContainsAny(p.separator, "=:") && (strings.HasPrefix(text, "=") || strings.HasPrefix(text, ":")):
		return `\` + text
	}
	return text
}

// readProperty returns a key or a value, its escapes resolved.
func readProperty(content []byte, from, to int) (string, error) {
	var units []uint16
	for _, m := range propertyParts.FindAllIndex(content[from:to], -1) {
		part := content[from+m[0] : from+m[1]]
		switch {
		case part[0] != '\\':
			for _, b := range part {
				units = append(units, uint16(b)) // ISO-8859-1
			}
		case len(part) == 1 || part[1] == '\r' || part[1] == '\n': // joins two lines
		case part[1] == 'u':
			code, err := strconv.ParseUint(string(part[2:]), 16, 16)
			if err != nil || len(part) != 6 {
				return "", fmt.Errorf(`%s: \u must be followed by four hexadecimal digits`, place(content, from+m[0]))
			}
			units = append(units, uint16(code))
		case strings.IndexByte("tnrf", part[1]) >= 0:
			units = append(units, uint16("\t\n\r\f"[strings.IndexByte("tnrf", part[1])]))
		default:
			for _, b := range part[1:] {
				units = append(units, uint16(b))
			}
		}
	}
	return string(utf16.Decode(units)), nil
}

// writeProperty returns a key or a value as it is written, in ASCII.
func writeProperty(text string, key bool) string {
	var out strings.Builder
	for i, unit := range utf16.Encode([]rune(text)) {
		char := rune(unit)
		escape := strings.IndexRune("\t\n\r\f", char)
		switch {
		case escape >= 0:
			out.WriteString(`\` + "tnrf"[escape:escape+1])
		case char == '\\', char == ' ' && (key || i == 0), key && strings.ContainsRune("=:#!", char):
			out.WriteString(`\` + string(char))
		case char < ' ' || char > '~':
			fmt.Fprintf(&out, `\u%04X`, unit)
		default:
			out.WriteRune(char)
		}
	}
	return out.String()
}
