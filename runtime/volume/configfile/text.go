package configfile

import (
	"slices"
	"strings"
)

// text replaces each line that begins with a key by its value. If there is none, it
// adds the value as a line, unless it is one already.
func text(content []byte, set []entry) ([]byte, error) {
	var edits []edit
	found := make([]bool, len(set))
	for _, l := range lines(content) {
		now := string(content[l.start:l.end])
		i := slices.IndexFunc(set, func(e entry) bool { return strings.HasPrefix(now, e.key) })
		if i >= 0 && now != set[i].value {
			edits = append(edits, edit{l.start, l.end, set[i].value})
		}
		if i >= 0 {
			found[i] = true
		}
		for k, e := range set {
			found[k] = found[k] || now == e.value
		}
	}
	content, err := replaceAll(content, edits)
	if err != nil {
		return nil, err
	}
	for i, e := range set {
		if err := oneLine(e); err != nil {
			return nil, err
		}
		if !found[i] {
			content = appendLine(content, e.value)
		}
	}
	return content, nil
}
