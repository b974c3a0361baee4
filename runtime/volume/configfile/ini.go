package configfile

import (
	"bytes"
	"fmt"
	"strings"
)

// iniKey is the place of a value in lower case, as games compare names. The section "" is the
// part before any section.
type iniKey struct{ section, name string }

// iniFile is what is known of a file after one reading.
type iniFile struct {
	values map[iniKey]line // the last of each key
	ends   map[string]int  // where a key is added to a section: behind the last line of its first part
}

// ini sets values in sections. Comments are lines that begin with ; or #, and what
// follows a space and ; or a # between spaces. Of several equal keys the last one is set,
// and the others stay: in files of Unreal they are a list.
func ini(content []byte, set []entry) ([]byte, error) {
	f := readINI(content)
	var edits, added []edit
	var missing []string           // sections that do not exist
	below := map[string][]string{} // their lines
	keys := map[iniKey]entry{}
	for _, e := range set {
		if err := oneLine(e); err != nil {
			return nil, err
		}
		section, name := splitINI(e.key)
		k := iniKeyOf(e.key)
		if other, twice := keys[k]; twice && other.value != e.value {
			return nil, fmt.Errorf("%s: is the same key as %s, and has another value", e.key, other.key)
		} else if twice {
			continue
		}
		keys[k] = e
		text := name + "=" + quoteINI(e.value, "")
		old, exists := f.values[k]
		end := f.ends[k.section]
		switch {
		case exists:
			edits = append(edits, setINI(content, old, e.value)...)
		case end > 0:
			added = append(added, edit{end, end, ending(content, end) + text})
		case section == "":
			added = append(added, edit{0, 0, text + ending(content, 0)})
		default:
			if below[k.section] == nil {
				missing, below[k.section] = append(missing, k.section), []string{"[" + section + "]"}
			}
			below[k.section] = append(below[k.section], text)
		}
	}
	var lines []string
	for _, section := range missing {
		lines = append(lines, below[section]...)
	}
	return replaceAll(content, append(append(edits, added...), atEnd(content, lines))) // a line behind the value that ends there
}

// iniKeyOf returns the place to which a key leads.
func iniKeyOf(key string) iniKey {
	section, name := splitINI(key)
	return iniKey{strings.ToLower(section), strings.ToLower(name)}
}

func findINI(content []byte) (finder, error) {
	f := readINI(content)
	return finderOf(func(key string) (string, bool) {
		at, exists := f.values[iniKeyOf(key)]
		old := string(content[at.start:at.end])
		if quotedINI(old) {
			old = old[1 : len(old)-1]
		}
		return old, exists
	}), nil
}

// splitINI splits a key at its last dot that is not written as "\.".
func splitINI(key string) (section, name string) {
	dot := strings.LastIndexByte(strings.ReplaceAll(key, `\.`, "  "), '.')
	return strings.ReplaceAll(key[:max(0, dot)], `\.`, "."), strings.ReplaceAll(key[dot+1:], `\.`, ".")
}

func readINI(content []byte) iniFile {
	f := iniFile{values: map[iniKey]line{}, ends: map[string]int{}}
	section, first := "", true
	var open []iniKey // of the value that the next line may continue
	indent := 0       // of its line
	for _, l := range lines(content) {
		text := content[l.start:l.end]
		trimmed := bytes.TrimSpace(text)
		space := len(text) - len(bytes.TrimLeft(text, " \t"))
		names, value, continues := cutINI(text)
		switch {
		case len(trimmed) == 0, trimmed[0] == ';', trimmed[0] == '#':
			open = nil
			continue
		case trimmed[0] == '[' && bytes.IndexByte(trimmed, ']') > 0:
			section, open = strings.ToLower(string(bytes.TrimSpace(trimmed[1:max(1, bytes.LastIndexByte(iniText(trimmed), ']'))]))), nil
			first = f.ends[section] == 0
		case len(open) > 0 && space > indent && continues:
			for _, k := range open {
				f.values[k] = line{f.values[k].start, l.start + len(bytes.TrimRight(text, " \t"))}
			}
		default:
			open, indent = nil, space
			for i, name := range names {
				start := l.end - len(bytes.TrimLeft(value[i], " \t"))
				k := iniKey{section, strings.ToLower(string(bytes.TrimSpace(name)))}
				f.values[k] = line{start, start + len(iniText(content[start:l.end]))}
				open = append(open, k)
			}
		}
		if first {
			f.ends[section] = l.end
		}
	}
	return f
}

// cutINI returns the name and the value of a line: in front of and behind its first = or :. A line with
// a : before a = has two, as games of Unreal have names with a colon. continues reports whether a line that is
// indented belongs to the value before it: it has no =, and no : with a space behind it.
func cutINI(text []byte) (names, values [][]byte, continues bool) {
	equal, colon := bytes.IndexByte(text, '='), bytes.IndexByte(text, ':')
	for _, at := range []int{colon, equal} {
		if at >= 0 && (at == equal || equal < 0 || at < equal) {
			names, values = append(names, text[:at]), append(values, text[at+1:])
		}
	}
	spaced := colon >= 0 && (colon+1 == len(text) || text[colon+1] == ' ' || text[colon+1] == '\t')
	return names, values, equal < 0 && !spaced
}

// iniText returns the value at the beginning of the rest of a line, without a comment
// and the space before it.
func iniText(rest []byte) []byte {
	space := func(b byte) bool { return b == ' ' || b == '\t' }
	if len(rest) > 1 && rest[0] == '"' {
		if closing := bytes.IndexByte(rest[1:], '"'); closing >= 0 {
			quoted, behind := rest[:closing+2], bytes.TrimLeft(rest[closing+2:], " \t")
			if len(behind) == 0 || len(behind) < len(rest)-len(quoted) && (behind[0] == ';' || behind[0] == '#') {
				return quoted
			}
		}
	}
	for i, b := range rest {
		if b == ';' && (i == 0 || space(rest[i-1])) || b == '#' && i > 0 && space(rest[i-1]) && (i+1 == len(rest) || space(rest[i+1])) {
			rest = rest[:i]
			break
		}
	}
	return bytes.TrimRight(rest, " \t")
}

// setINI returns the edit that gives a key another value.
func setINI(content []byte, at line, value string) []edit {
	old := string(content[at.start:at.end])
	text := quoteINI(value, old)
	switch {
	case text == old, value == old && value == string(iniText([]byte(value))):
		return nil
	case old == "" && at.end < len(content) && content[at.end] == ';':
		text += " " // a comment follows
	}
	return []edit{{at.start, at.end, text}}
}

// quoteINI returns a value with quotes if the old one has them, or if it would be read
// in another way without.
func quoteINI(value, old string) string {
	plain := string(iniText([]byte(value))) == value && strings.TrimSpace(value) == value
	if !quotedINI(value) && !strings.Contains(value, `"`) && (quotedINI(old) || !plain) {
		return `"` + value + `"`
	}
	return value
}

func quotedINI(text string) bool { return len(text) > 1 && text[0] == '"' && text[len(text)-1] == '"' }
