package configfile

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
)

// jsonFile sets values in a JSON file. Of several members with one name the last one
// counts.
func jsonFile(content []byte, set []entry) ([]byte, error) {
	root, err := newTree(set)
	if err != nil || len(set) == 0 {
		return content, err
	}
	if content, err = checkJSON(content); err != nil {
		return nil, err
	}
	j := jsonEditor{content: content}
	if err := j.value(root, jsonPart{content, 0}); err != nil {
		return nil, err
	}
	return replaceAll(content, j.edits)
}

// checkJSON returns content if it is valid, and an object in place of an empty file.
func checkJSON(content []byte) ([]byte, error) {
	if len(bytes.Trim(content, " \t\r\n")) == 0 {
		return []byte("{}\n"), nil
	}
	err := json.Unmarshal(content, new(json.RawMessage))
	var wrong *json.SyntaxError
	if errors.As(err, &wrong) {
		return nil, fmt.Errorf("the file is not valid JSON: %s: %w", place(content, int(wrong.Offset)-1), err)
	}
	return content, err
}

func findJSON(content []byte) (finder, error) {
	content, err := checkJSON(content)
	if err != nil {
		return nil, err
	}
	var root any
	d := json.NewDecoder(bytes.NewReader(content))
	d.UseNumber()
	err = d.Decode(&root)
	return treeFinder(root), err
}

// jsonEditor collects the edits of one valid file.
type jsonEditor struct {
	content []byte
	edits   []edit
}

// jsonPart is a value and where it begins.
type jsonPart struct {
	text []byte
	at   int
}

// trim removes the space around a value.
func (p jsonPart) trim() jsonPart {
	const space = " \t\r\n"
	left := bytes.TrimLeft(p.text, space)
	return jsonPart{bytes.TrimRight(left, space), p.at + len(p.text) - len(left)}
}

func (p jsonPart) container() bool { return p.text[0] == '{' || p.text[0] == '[' }

// value sets the values of t in p.
func (j *jsonEditor) value(t *tree, p jsonPart) error {
	p = p.trim()
	switch {
	case t.value == nil && p.container():
		return j.members(t, p)
	case p.container():
		return t.notScalar(place(j.content, p.at))
	case t.value == nil && string(p.text) != "null":
		return t.notContainer(place(j.content, p.at))
	case p.text[0] == '"':
		var old string
		if err := json.Unmarshal(p.text, &old); err != nil || old == *t.value {
			return err
		}
		j.edits = append(j.edits, edit{p.at, p.at + len(p.text), quote(*t.value)})
		return nil
	}
	text, err := t.json()
	if text != string(p.text) {
		j.edits = append(j.edits, edit{p.at, p.at + len(p.text), text})
	}
	return err
}

// members sets values in an object or a list.
func (j *jsonEditor) members(t *tree, p jsonPart) error {
	object := p.text[0] == '{'
	found := map[string]jsonPart{} // the last member of each name, or the elements
	d := json.NewDecoder(bytes.NewReader(p.text))
	_, err := d.Token()
	n, end, comma := 0, p.at+1, ""
	for ; err == nil && d.More(); n++ {
		space := p.text[end-p.at:] // before the member, with a comma if it is not the first one
		space = space[:len(space)-len(bytes.TrimLeft(space, ", \t\r\n"))]
		switch comma = ", "; {
		case len(space) > maxIndent:
		case n > 0:
			comma = string(space)
		default:
			comma = "," + string(space)
		}
		name := strconv.Itoa(n)
		if object {
			var token json.Token
			token, err = d.Token()
			name, _ = token.(string)
		}
		var raw json.RawMessage
		err = errors.Join(err, d.Decode(&raw))
		end = p.at + int(d.InputOffset())
		if t.find(name) != nil {
			found[name] = jsonPart{raw, end - len(raw)}
		}
	}
	if err != nil {
		return err
	}
	for _, c := range t.children {
		if member, is := found[c.name]; is {
			if err := j.value(c, member); err != nil {
				return err
			}
			continue
		}
		text, err := c.json()
		if err != nil {
			return err
		}
		if object {
			text = quote(c.name) + ": " + text
		} else if _, err := c.index(n); err != nil {
			return err
		}
		j.edits = append(j.edits, edit{end, end, comma + text})
		n++
		comma = cmp.Or(comma, ", ")
	}
	return nil
}
