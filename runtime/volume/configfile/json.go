package configfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// maxDepth bounds the nesting of objects, arrays and elements.
const maxDepth = 1000

var (
	errJSON  = errors.New("the file is not valid JSON")
	errDepth = errors.New("the file is nested too deeply")
)

// jsonFile sets values in a JSON file. Of several members with one name the last one
// counts.
func jsonFile(content []byte, set []entry) ([]byte, error) {
	if len(bytes.Trim(content, " \t\r\n")) == 0 {
		content = []byte("{\n}\n")
	}
	root, err := newTree(set)
	if err != nil || len(set) == 0 {
		return content, err
	}
	if !json.Valid(content) {
		return nil, errJSON
	}
	r := jsonReader{content: content, d: json.NewDecoder(bytes.NewReader(content))}
	r.d.UseNumber()
	if err := r.value(root, 0); err != nil {
		return nil, err
	}
	return replaceAll(content, r.edits)
}

// jsonReader reads valid JSON once and collects the edits.
type jsonReader struct {
	content []byte
	d       *json.Decoder
	edits   []edit
}

// begin returns the position of the next token.
func (r *jsonReader) begin() int {
	at := int(r.d.InputOffset())
	return at + len(r.content[at:]) - len(bytes.TrimLeft(r.content[at:], " \t\r\n,:"))
}

// value reads the next value. A nil tree changes nothing in it.
func (r *jsonReader) value(t *tree, depth int) error {
	start := r.begin()
	token, err := r.d.Token()
	if err != nil {
		return errJSON
	}
	if depth > maxDepth {
		return errDepth
	}
	open, nested := token.(json.Delim)
	switch {
	case nested && t != nil && t.value != nil:
		return notScalar(t)
	case nested && open == '{':
		return r.object(t, start, depth)
	case nested:
		return r.array(t, start, depth)
	case t == nil:
		return nil
	}
	return r.scalar(t, token, start)
}

// scalar sets the value that was just read.
func (r *jsonReader) scalar(t *tree, token json.Token, start int) error {
	end := int(r.d.InputOffset())
	if t.value == nil {
		if token != nil {
			return notContainer(t)
		}
		text, err := t.flow() // in place of null
		r.edits = append(r.edits, edit{start, end, text})
		return err
	}
	old, isString := token.(string)
	text := bareOrQuoted(*t.value)
	if isString {
		text = quote(*t.value)
	}
	same := string(r.content[start:end]) == text || isString && old == *t.value
	if !same {
		r.edits = append(r.edits, edit{start, end, text})
	}
	return nil
}

// member is where the members of an object, or the elements of an array, are.
type member struct{ start, colon, value, end int }

// object reads an object behind its brace.
func (r *jsonReader) object(t *tree, open, depth int) error {
	var list []member           // the last one, then one without a start for each that is added
	seen := map[string][]edit{} // the edits of the last member of each name
	for r.d.More() {
		m := member{start: r.begin()}
		token, err := r.d.Token()
		if err != nil {
			return errJSON
		}
		m.colon, m.value = int(r.d.InputOffset()), r.begin()
		var child *tree
		name, _ := token.(string)
		if t != nil {
			child = t.find(name)
		}
		outer := r.edits
		r.edits = nil
		if err := r.value(child, depth+1); err != nil {
			return err
		}
		if child != nil {
			seen[name] = r.edits
		}
		r.edits = outer
		m.end = int(r.d.InputOffset())
		list = []member{m}
	}
	end := r.begin()
	_, _ = r.d.Token() // the brace; the content is valid
	if t == nil {
		return nil
	}
	for _, c := range t.children {
		if own, exists := seen[c.name]; exists {
			r.edits = append(r.edits, own...)
			continue
		}
		text, err := c.flow()
		if err != nil {
			return err
		}
		r.add(list, open, depth, quote(c.name)+r.colon(list)+text)
		list = append(list, member{start: -1})
	}
	r.close(list, end, depth)
	return nil
}

// colon returns what is between a name and its value, as in the last member.
func (r *jsonReader) colon(list []member) string {
	if len(list) > 0 && list[0].start >= 0 {
		return string(r.content[list[0].colon:list[0].value])
	}
	return ": "
}

// array reads an array behind its bracket.
func (r *jsonReader) array(t *tree, open, depth int) error {
	var list []member // as in object
	n := 0
	for ; r.d.More(); n++ {
		var child *tree
		if t != nil {
			child = t.find(fmt.Sprint(n))
		}
		m := member{start: r.begin()}
		if err := r.value(child, depth+1); err != nil {
			return err
		}
		m.end = int(r.d.InputOffset())
		list = []member{m}
	}
	end := r.begin()
	_, _ = r.d.Token() // the bracket; the content is valid
	if t == nil {
		return nil
	}
	for _, c := range t.children {
		i, err := c.index(n)
		if err != nil {
			return err
		}
		if i < n {
			continue
		}
		text, err := c.flow()
		if err != nil {
			return err
		}
		r.add(list, open, depth, text)
		list = append(list, member{start: -1})
		n++
	}
	r.close(list, end, depth)
	return nil
}

// add adds text behind the last member. The space before it is as before that member.
// Members of an empty object at the top get lines of their own.
func (r *jsonReader) add(list []member, open, depth int, text string) {
	at, lead := open+1, ""
	switch {
	case len(list) > 0 && list[0].start >= 0:
		at, lead = list[0].end, ","+r.space(list[0], open)
	case depth == 0:
		lead = strings.Repeat(",", min(1, len(list))) + ending(r.content, at) + "  "
	case len(list) > 0:
		lead = ", "
	}
	r.edits = append(r.edits, edit{at, at, lead + text})
}

// close puts the brace of a filled object at the top on a line of its own.
func (r *jsonReader) close(list []member, end, depth int) {
	if depth == 0 && len(list) > 0 && list[0].start < 0 && r.content[end-1] != '\n' {
		r.edits = append(r.edits, edit{end, end, ending(r.content, end)})
	}
}

// space returns the space before a member: a line break with its indent, or what
// separates members on one line.
func (r *jsonReader) space(m member, open int) string {
	before := r.content[open+1 : m.start]
	text := string(before[len(bytes.TrimRight(before, " \t\r\n")):])
	switch only := len(text) == len(before); {
	case !only || strings.Contains(text, "\n"):
		return text
	case m.value == 0: // of an array
		return " "
	}
	return strings.TrimPrefix(string(r.content[m.colon:m.value]), ":")
}
