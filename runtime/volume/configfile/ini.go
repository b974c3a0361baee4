package configfile

import (
	"bytes"
	"fmt"
	"strings"
)

// iniKey is the place of a value. The section "" is the part before any section.
type iniKey struct{ section, key string }

// splitINI splits a key at its last dot that is not written as "\.".
func splitINI(key string) iniKey {
	dot := -1
	for i := range len(key) {
		if key[i] == '.' && (i == 0 || key[i-1] != '\\') {
			dot = i
		}
	}
	plain := strings.NewReplacer(`\.`, ".").Replace
	if dot < 0 {
		return iniKey{"", plain(key)}
	}
	return iniKey{plain(key[:dot]), plain(key[dot+1:])}
}

// iniFile is what is known of a file after one reading.
type iniFile struct {
	values map[iniKey]iniValue // the first of each key
	ends   map[string]iniEnd   // of the first section of each name
}

// iniValue is the value of a key, content[start:end].
type iniValue struct {
	start, end int
	missing    bool // the line has no "="
}

// iniEnd is where a key is added to a section: behind its last line.
type iniEnd struct {
	at      int
	indent  string // of its last key
	equals  string // "=" with the spaces around it
	present bool
}

// ini sets values in sections. Comments are lines that begin with ; or #, and what
// follows a space and ; or a # between spaces.
func ini(content []byte, set []entry) ([]byte, error) {
	f := readINI(content)
	var edits, added []edit
	missing := map[string][]string{} // lines to add, by section that does not exist
	var order []string
	keys := map[iniKey]entry{}
	for _, e := range set {
		if err := oneLine(e); err != nil {
			return nil, err
		}
		k := splitINI(e.key)
		if other, twice := keys[k]; twice {
			if other.value != e.value {
				return nil, fmt.Errorf("%s: is the same key as %s, and has another value", e.key, other.key)
			}
			continue
		}
		keys[k] = e
		end := f.ends[k.section]
		if old, exists := f.values[k]; exists {
			edits = append(edits, old.set(content, e.value)...)
			continue
		}
		text := end.indent + k.key + end.separator() + quoteINI(e.value, "")
		if end.present || k.section == "" {
			added = append(added, addLine(content, end.at, text))
			continue
		}
		if missing[k.section] == nil {
			order = append(order, k.section)
		}
		missing[k.section] = append(missing[k.section], text)
	}
	content, err := replaceAll(content, append(edits, added...)) // a line behind the value that ends there
	if err != nil {
		return nil, err
	}
	for _, section := range order {
		content = appendLine(content, "["+section+"]")
		for _, one := range missing[section] {
			content = appendLine(content, one)
		}
	}
	return content, nil
}

func (e iniEnd) separator() string {
	if e.equals == "" {
		return "="
	}
	return e.equals
}

// addLine adds a line at the position at, which is 0 or the end of a line without its
// ending.
func addLine(content []byte, at int, text string) edit {
	eol := ending(content, at)
	if at == 0 {
		return edit{at, at, text + eol}
	}
	return edit{at, at, eol + text}
}

func readINI(content []byte) iniFile {
	f := iniFile{values: map[iniKey]iniValue{}, ends: map[string]iniEnd{}}
	section, first := "", true
	for _, l := range lines(content) {
		line := content[l.start:l.end]
		trimmed := bytes.TrimSpace(line)
		switch {
		case len(trimmed) == 0, trimmed[0] == ';', trimmed[0] == '#':
			continue
		case trimmed[0] == '[' && bytes.IndexByte(trimmed, ']') > 0:
			section = string(bytes.TrimSpace(trimmed[1:max(1, bytes.LastIndexByte(iniText(trimmed), ']'))]))
			_, known := f.ends[section]
			if first = !known; first {
				f.ends[section] = iniEnd{at: l.end, present: true}
			}
			continue
		}
		f.readKey(content, l, section, first)
	}
	return f
}

// readKey reads a line with a key. first reports whether its section is the first one
// of its name.
func (f iniFile) readKey(content []byte, l line, section string, first bool) {
	line := content[l.start:l.end]
	name, rest, has := bytes.Cut(line, []byte("="))
	key := string(bytes.TrimSpace(name))
	v := iniValue{start: l.start + len(bytes.TrimRight(name, " \t")), missing: true}
	v.end = v.start
	if has {
		from := l.end - len(bytes.TrimLeft(rest, " \t"))
		v = iniValue{start: from, end: from + len(iniText(content[from:l.end]))}
	}
	k := iniKey{section, key}
	if _, known := f.values[k]; !known {
		f.values[k] = v
	}
	if first {
		indent := line[:len(line)-len(bytes.TrimLeft(line, " \t"))]
		end := iniEnd{at: l.end, indent: string(indent), equals: f.ends[section].equals, present: true}
		if has && v.end > v.start {
			end.equals = string(content[l.start+len(bytes.TrimRight(name, " \t")) : v.start])
		}
		f.ends[section] = end
	}
}

// iniText returns the value at the beginning of the rest of a line, without a comment
// and the space before it.
func iniText(rest []byte) []byte {
	if len(rest) > 1 && rest[0] == '"' {
		if close := bytes.IndexByte(rest[1:], '"'); close >= 0 {
			quoted, behind := rest[:close+2], bytes.TrimLeft(rest[close+2:], " \t")
			if len(behind) == 0 || len(behind) < len(rest)-len(quoted) && (behind[0] == ';' || behind[0] == '#') {
				return quoted
			}
		}
	}
	for i := 1; i < len(rest); i++ {
		if space(rest[i-1]) && (rest[i] == ';' || rest[i] == '#' && (i+1 == len(rest) || space(rest[i+1]))) {
			rest = rest[:i]
			break
		}
	}
	if len(rest) > 0 && rest[0] == ';' {
		return nil
	}
	return bytes.TrimRight(rest, " \t")
}

func space(b byte) bool { return b == ' ' || b == '\t' }

// set returns the edits that give a key another value.
func (v iniValue) set(content []byte, value string) []edit {
	old := string(content[v.start:v.end])
	text := quoteINI(value, old)
	switch {
	case v.missing && value == "", text == old, value == old && value == string(iniText([]byte(value))):
		return nil
	case v.missing:
		text = "=" + text
	case v.start == v.end && v.end < len(content) && content[v.end] == ';':
		text += " " // a comment follows
	}
	return []edit{{v.start, v.end, text}}
}

// quoteINI returns a value with quotes if the old one has them, or if it would be read
// in another way without.
func quoteINI(value, old string) string {
	quoted := len(old) > 1 && old[0] == '"' && old[len(old)-1] == '"'
	own := len(value) > 1 && value[0] == '"' && value[len(value)-1] == '"'
	plain := string(iniText([]byte(value))) == value && strings.TrimSpace(value) == value
	if !own && !strings.Contains(value, `"`) && (quoted || !plain) {
		return `"` + value + `"`
	}
	return value
}
