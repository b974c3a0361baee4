package configfile

import (
	"maps"
	"slices"
)

// text replaces each line that begins with a key by its value, of several such keys by that
// of the shortest. If there is none, it adds the value as a line, unless it is one already.
func text(content []byte, set []entry) ([]byte, error) {
	keys, lengths, missing := map[string]string{}, map[int]bool{}, map[string]bool{}
	for _, e := range set {
		if err := oneLine(e); err != nil {
			return nil, err
		}
		keys[e.key], lengths[len(e.key)], missing[e.value] = e.value, true, true
	}
	shortest := slices.Sorted(maps.Keys(lengths))
	found := map[string]bool{}
	var edits []edit
	for _, l := range lines(content) {
		now := string(content[l.start:l.end])
		delete(missing, now)
		for _, n := range shortest {
			if n > len(now) {
				break
			}
			value, is := keys[now[:n]]
			if !is {
				continue
			}
			if found[now[:n]] = true; now != value {
				edits = append(edits, edit{l.start, l.end, value})
			}
			break
		}
	}
	var added []string
	for _, e := range set {
		if !found[e.key] && missing[e.value] {
			added = append(added, e.value)
			delete(missing, e.value)
		}
	}
	return replaceAll(content, append(edits, atEnd(content, added)))
}
