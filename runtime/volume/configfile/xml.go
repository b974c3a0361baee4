package configfile

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
)

// The bounds of an XML file: each key may be compared with every element.
const (
	maxDepth    = 1000
	maxElements = 20_000
)

var errElements = fmt.Errorf("the file has more than %d elements", maxElements)

// element is an element of a file that is kept as it was written: its parts one after the
// other are the file.
type element struct {
	open     string // its tag, which ends with "/>" if it has no end tag
	parts    []part
	close    string // its end tag
	name     string
	attrs    []xml.Attr
	parent   *element
	children map[string][]*element // by name
	last     int                   // behind the last child among the parts; 0 if there is none
	text     []byte                // of the parts that are only text
	mixed    bool                  // it has elements, comments or instructions
}

// part is a child, or something else between two tags as it was written.
type part struct {
	child *element
	text  string
}

// xmlFile sets the text and the attributes of elements.
func xmlFile(content []byte, set []entry) ([]byte, error) {
	if len(set) == 0 {
		return content, nil
	}
	var paths []xmlPath
	for _, e := range set {
		p, err := parseXMLPath(e)
		if err != nil {
			return nil, err
		}
		paths = append(paths, p)
	}
	if emptyXML(content) {
		root := paths[0].steps[0].name
		content = []byte("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<" + root + ">\n</" + root + ">\n")
	}
	file, err := parseXML(content)
	if err != nil {
		return nil, err
	}
	for _, p := range paths {
		if err := p.set(file); err != nil {
			return nil, err
		}
	}
	for _, p := range paths { // two paths may lead to one value
		if found, _, _ := p.find(file, 0); found == nil || p.value != p.of(found) {
			return nil, errUnstable
		}
	}
	var out bytes.Buffer
	file.write(&out)
	return out.Bytes(), nil
}

func emptyXML(content []byte) bool { return len(bytes.Trim(content, " \t\r\n")) == 0 }

func findXML(content []byte) (finder, error) {
	file := &element{}
	if !emptyXML(content) {
		var err error
		if file, err = parseXML(content); err != nil {
			return nil, err
		}
	}
	return func(key string) (list []found, err error) {
		p, err := parseXMLPath(entry{key: key})
		if err == nil {
			err = p.all(file, 0, "", &list)
		}
		star := slices.ContainsFunc(p.steps, func(s xmlStep) bool { return s.name == "*" })
		if err == nil && len(list) == 0 && !star {
			list = []found{{key: key}}
		}
		return list, err
	}, nil
}

// parseXML returns the whole file as an element without tags.
func parseXML(content []byte) (*element, error) {
	file := &element{}
	at, depth, elements := file, 0, 0
	d := xml.NewDecoder(bytes.NewReader(content))
	d.CharsetReader = func(_ string, input io.Reader) (io.Reader, error) { return input, nil } // whatever it declares, Apply has converted it
	for {
		start := int(d.InputOffset())
		token, err := d.RawToken()
		raw := string(content[start:d.InputOffset()])
		wrong := func(text string) error {
			line, column := d.InputPos()
			return fmt.Errorf("the file is not valid XML: line %d, column %d: %s", line, column, text)
		}
		var syntax *xml.SyntaxError
		switch token := token.(type) {
		case xml.StartElement:
			e := &element{open: raw, name: rawName(token.Name), attrs: token.Attr, parent: at}
			if name, twice := repeated(token.Attr); twice {
				return nil, wrong("the attribute " + name + " of " + e.name + " stands twice")
			}
			at.insert(len(at.parts), part{child: e})
			if at, depth, elements = e, depth+1, elements+1; depth > maxDepth {
				return nil, errDepth
			}
			if elements > maxElements {
				return nil, errElements
			}
		case xml.EndElement:
			if at.name != rawName(token.Name) || at == file {
				return nil, wrong("</" + rawName(token.Name) + "> ends no open element")
			}
			at.close = raw
			at, depth = at.parent, depth-1
		case nil:
			switch {
			case errors.As(err, &syntax):
				return nil, wrong(syntax.Msg)
			case !errors.Is(err, io.EOF):
				return nil, wrong(err.Error())
			case at != file:
				return nil, wrong(at.name + " has no end")
			case file.last == 0:
				return nil, wrong("it has no element")
			}
			return file, nil
		default:
			text, plain := token.(xml.CharData)
			at.parts, at.text, at.mixed = append(at.parts, part{text: raw}), append(at.text, text...), at.mixed || !plain
		}
	}
}

func rawName(n xml.Name) string {
	if n.Space != "" {
		return n.Space + ":" + n.Local
	}
	return n.Local
}

// repeated returns the name of two attributes, which the parser accepts.
func repeated(list []xml.Attr) (name string, twice bool) {
	names := make(map[xml.Name]bool, len(list))
	for _, a := range list {
		if names[a.Name] {
			return rawName(a.Name), true
		}
		names[a.Name] = true
	}
	return "", false
}

// insert adds parts; the last one is a child behind all others.
func (e *element) insert(at int, parts ...part) {
	child := parts[len(parts)-1].child
	e.parts = slices.Insert(e.parts, at, parts...)
	if e.children == nil {
		e.children = map[string][]*element{}
	}
	e.children[child.name] = append(e.children[child.name], child)
	e.last, e.mixed = at+len(parts), true
}

func (e *element) write(out *bytes.Buffer) {
	out.WriteString(e.open)
	for _, p := range e.parts {
		out.WriteString(p.text)
		if p.child != nil {
			p.child.write(out)
		}
	}
	out.WriteString(e.close)
}
