package configfile

import (
	"maps"
	"slices"
	"strings"
)

// lineValue is a value of the format text, which may have several lines.
type lineValue []string

func valueLines(value string) lineValue {
	return strings.Split(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(value), "\n")
}

// at reports whether the lines of content from the first of list on are those of the value.
func (v lineValue) at(content []byte, list []line) bool {
	if len(list) < len(v) {
		return false
	}
	for i, want := range v {
		if string(content[list[i].start:list[i].end]) != want {
			return false
		}
	}
	return true
}

// set replaces each line that begins with a key by its value, of several such keys by that of the
// shortest. The empty key is the beginning of every line. With AppendLines it adds the value of a key with which no
// line begins, unless its lines are there already.
func (mode Lines) set(content []byte, set []entry) ([]byte, error) {
	values, lengths, missing := map[string]lineValue{}, map[int]bool{}, map[string]lineValue{} // missing by the first line
	for _, e := range set {
		v := valueLines(e.value)
		values[e.key], lengths[len(e.key)] = v, true
		missing[e.value] = v
	}
	first := map[string][]string{}
	for value, v := range missing {
		first[v[0]] = append(first[v[0]], value)
	}
	shortest := slices.Sorted(maps.Keys(lengths))
	found := map[string]bool{}
	var edits []edit
	all := lines(content)
	for i := 0; i < len(all); i++ {
		l := all[i]
		now := string(content[l.start:l.end])
		for _, value := range first[now] {
			if v, is := missing[value]; is && v.at(content, all[i:]) {
				delete(missing, value)
			}
		}
		for _, n := range shortest {
			if n > len(now) {
				break
			}
			v, is := values[now[:n]]
			if !is {
				continue
			}
			if found[now[:n]] = true; v.at(content, all[i:]) {
				i += len(v) - 1
			} else {
				edits = append(edits, edit{l.start, l.end, strings.Join(v, ending(content, l.end))})
			}
			break
		}
	}
	var added []string
	for _, e := range set {
		if v, is := missing[e.value]; is && mode == AppendLines && !found[e.key] {
			added = append(added, v...)
			delete(missing, e.value)
		}
	}
	return replaceAll(content, append(edits, atEnd(content, added)))
}
