package configfile

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
)

var errEscape = errors.New(`the file has a \u that is not followed by four hexadecimal digits`)

// property is one entry of a properties file, which may have several lines.
type property struct {
	key, value string
	start, end int  // of the value, in bytes
	bare       bool // there is neither = nor : before the value
	glued      bool // there is nothing at all before the value
}

// properties sets values as java.util.Properties reads them. Of several entries with one
// key the last one counts.
func properties(content []byte, set []entry) ([]byte, error) {
	p := propertyReader{text: content}
	last := map[string]property{}
	for p.skipBlank() {
		one, err := p.read()
		if err != nil {
			return nil, err
		}
		last[one.key] = one
	}
	var edits []edit
	var added []string
	for _, e := range set {
		old, exists := last[e.key]
		switch {
		case !exists:
			added = append(added, escapeProperty(e.key, true)+"="+escapeProperty(e.value, false))
		case old.value != e.value:
			edits = append(edits, edit{old.start, old.end, old.format(e.value)})
		}
	}
	content, err := replaceAll(content, edits)
	if err != nil {
		return nil, err
	}
	if len(added) > 0 && p.open {
		content = append(content, (ending(content, len(content)) + ending(content, len(content)))...) // ends the continued line
	}
	for _, one := range added {
		content = appendLine(content, one)
	}
	return content, nil
}

// format returns a value as it is written in place of the old one.
func (p property) format(value string) string {
	text := escapeProperty(value, false)
	switch {
	case p.glued && value != "":
		return "=" + text
	case p.bare && strings.HasPrefix(text, "="), p.bare && strings.HasPrefix(text, ":"):
		return `\` + text
	}
	return text
}

// propertyReader reads entries like java.util.Properties.
type propertyReader struct {
	text []byte
	at   int
	open bool // the last line ends with a backslash
}

const propertySpace = " \t\f"

// skipBlank skips blank lines and comments. It returns false at the end.
func (p *propertyReader) skipBlank() bool {
	for p.at < len(p.text) {
		switch b := p.text[p.at]; {
		case strings.IndexByte(propertySpace+"\r\n", b) >= 0:
			p.at++
		case b == '#' || b == '!':
			for p.at < len(p.text) && p.text[p.at] != '\n' && p.text[p.at] != '\r' {
				p.at++
			}
		default:
			return true
		}
	}
	return false
}

// next returns the next character of an entry, its escapes resolved. literal is true
// for an escaped one. more is false at the end of the entry.
func (p *propertyReader) next() (char rune, literal, more bool, err error) {
	p.join()
	if p.at >= len(p.text) || p.text[p.at] == '\n' || p.text[p.at] == '\r' {
		return 0, false, false, nil
	}
	b := p.text[p.at]
	p.at++
	if b != '\\' {
		return rune(b), false, true, nil // ISO-8859-1
	}
	b = p.text[p.at]
	p.at++
	if b != 'u' {
		if i := strings.IndexByte("tnrf", b); i >= 0 {
			b = "\t\n\r\f"[i]
		}
		return rune(b), true, true, nil
	}
	if p.at+4 > len(p.text) {
		return 0, false, false, errEscape
	}
	code, err := strconv.ParseUint(string(p.text[p.at:p.at+4]), 16, 16)
	if err != nil {
		return 0, false, false, errEscape
	}
	p.at += 4
	return rune(code), true, true, nil
}

// join skips a backslash at the end of a line, and the space before the next one's text.
func (p *propertyReader) join() {
	for p.at < len(p.text) && p.text[p.at] == '\\' {
		after := p.at + 1
		switch {
		case after == len(p.text):
			p.at, p.open = after, true
			return
		case p.text[after] == '\r' && after+1 < len(p.text) && p.text[after+1] == '\n':
			after += 2
		case p.text[after] == '\n' || p.text[after] == '\r':
			after++
		default:
			return
		}
		for after < len(p.text) && strings.IndexByte(propertySpace, p.text[after]) >= 0 {
			after++
		}
		p.at, p.open = after, after == len(p.text)
	}
}

// read reads the entry that begins here.
func (p *propertyReader) read() (one property, err error) {
	var key, value []uint16
	for {
		char, literal, more, err := p.next()
		if err != nil {
			return one, err
		}
		if more && !literal && strings.ContainsRune("=:"+propertySpace, char) {
			p.at--
			break
		}
		if !more {
			break
		}
		key = append(key, uint16(char))
	}
	keyEnd := p.at
	one.bare = true
	p.skipSpace()
	if p.at < len(p.text) && (p.text[p.at] == '=' || p.text[p.at] == ':') {
		p.at++
		one.bare = false
		p.skipSpace()
	}
	one.start, one.glued = p.at, p.at == keyEnd
	for {
		char, _, more, err := p.next()
		if err != nil {
			return one, err
		}
		if !more {
			break
		}
		value = append(value, uint16(char))
	}
	one.end = p.at
	one.key, one.value = string(utf16.Decode(key)), string(utf16.Decode(value))
	return one, nil
}

func (p *propertyReader) skipSpace() {
	for p.join(); p.at < len(p.text) && strings.IndexByte(propertySpace, p.text[p.at]) >= 0; p.join() {
		p.at++
	}
}

// escapeProperty writes a key or a value in ASCII.
func escapeProperty(text string, key bool) string {
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
