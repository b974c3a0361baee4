package configfile

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// maxPasses bounds how often an XML file is read, as elements below missing elements
// are added one after the other.
const maxPasses = 64

var (
	errXML    = errors.New("the file is not valid XML")
	errPasses = errors.New("too many values below elements that do not exist")
)

// xmlFile sets the text and the attributes of elements.
func xmlFile(content []byte, set []entry) ([]byte, error) {
	var wanted []xmlPath
	for _, e := range set {
		p, err := parseXMLPath(e)
		if err != nil {
			return nil, err
		}
		wanted = append(wanted, p)
	}
	if len(wanted) == 0 {
		return content, nil
	}
	if len(bytes.Trim(content, " \t\r\n")) == 0 {
		content = []byte("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<" + wanted[0].steps[0].name + ">\n</" + wanted[0].steps[0].name + ">\n")
	}
	if err := checkXML(content); err != nil {
		return nil, err
	}
	for range maxPasses {
		r := xmlReader{content: content, list: newMatches(wanted)}
		if err := r.read(); err != nil {
			return nil, err
		}
		edits, more, err := r.edits()
		if err != nil {
			return nil, err
		}
		if content, err = replaceAll(content, edits); err != nil || !more {
			return content, err
		}
	}
	return nil, errPasses
}

// checkXML returns an error unless content is well-formed.
func checkXML(content []byte) error {
	d := xml.NewDecoder(bytes.NewReader(content))
	depth := 0
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%w: %s", errXML, strings.TrimPrefix(err.Error(), "XML syntax error on "))
		}
		switch token := token.(type) {
		case xml.StartElement:
			if repeats(token.Attr) {
				return fmt.Errorf("%w: an attribute of %s stands twice", errXML, token.Name.Local)
			}
			depth++
		case xml.EndElement:
			depth--
		}
		if depth > maxDepth {
			return errDepth
		}
	}
}

// repeats reports whether two attributes have one name, which the parser accepts.
func repeats(list []xml.Attr) bool {
	names := make(map[xml.Name]bool, len(list))
	for _, a := range list {
		names[a.Name] = true
	}
	return len(names) < len(list)
}

// xmlMatch follows one path through the file.
type xmlMatch struct {
	xmlPath
	depth  int        // steps that match the open elements
	counts []int      // elements that have matched each step in the open parent
	best   int        // steps that matched at most
	parent xmlElement // the element of the step best, the first one with it
	seen   int        // its children that match the next step
	found  *xmlElement
}

func newMatches(list []xmlPath) (matches []*xmlMatch) {
	for _, p := range list {
		matches = append(matches, &xmlMatch{xmlPath: p, counts: make([]int, len(p.steps)+1)})
	}
	return matches
}

// xmlElement is an element: its tag is content[start:tag], and its end tag begins at end.
type xmlElement struct {
	start, tag, end int
	closed          bool // the tag ends with "/>"
	mixed           bool // it has elements, comments or instructions
	last            int  // the end of its last child element; 0: it has none
	lead            string
	name            string
	text            []byte
	attrs           []xml.Attr
}

// xmlReader reads a well-formed file once.
type xmlReader struct {
	content []byte
	list    []*xmlMatch
	open    []*xmlElement
	root    string
}

func (r *xmlReader) read() error {
	d := xml.NewDecoder(bytes.NewReader(r.content))
	for {
		start := int(d.InputOffset())
		token, err := d.RawToken()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return errXML
		}
		end := int(d.InputOffset())
		switch token := token.(type) {
		case xml.StartElement:
			r.enter(token, start, end)
		case xml.EndElement:
			r.leave(start, end)
		case xml.CharData:
			if n := len(r.open); n > 0 && !r.open[n-1].mixed {
				r.open[n-1].text = append(r.open[n-1].text, token...)
			}
		default:
			if n := len(r.open); n > 0 {
				r.open[n-1].mixed = true
			}
		}
	}
}

func rawName(n xml.Name) string {
	if n.Space != "" {
		return n.Space + ":" + n.Local
	}
	return n.Local
}

func (r *xmlReader) enter(token xml.StartElement, start, end int) {
	e := &xmlElement{start: start, tag: end, name: rawName(token.Name), attrs: token.Attr, closed: bytes.HasSuffix(r.content[start:end], []byte("/>"))}
	if n := len(r.open); n > 0 {
		parent := r.open[n-1]
		parent.mixed, parent.text = true, nil
		before := r.content[:start]
		parent.lead = string(before[len(bytes.TrimRight(before, " \t\r\n")):])
	} else {
		r.root = e.name
	}
	r.open = append(r.open, e)
	depth := len(r.open)
	for _, m := range r.list {
		if m.found != nil || m.depth != depth-1 || depth > len(m.steps) || !m.steps[depth-1].matches(e) {
			continue
		}
		m.counts[depth-1]++
		if want := m.steps[depth-1].index; want > 0 && m.counts[depth-1] != want {
			continue
		}
		m.depth, m.counts[depth] = depth, 0
	}
}

func (r *xmlReader) leave(start, end int) {
	depth := len(r.open)
	e := r.open[depth-1]
	e.end = start
	r.open = r.open[:depth-1]
	if depth > 1 {
		r.open[depth-2].last = end
	}
	for _, m := range r.list {
		if m.found != nil || m.depth != depth {
			continue
		}
		if depth == len(m.steps) {
			m.found = e
		} else if depth > m.best {
			m.best, m.parent, m.seen = depth, *e, m.counts[depth]
		}
		m.depth = depth - 1
	}
}

// edits returns the edits of all values that are found, and of the elements that are
// added. It reports whether values are left for another reading.
func (r *xmlReader) edits() (edits []edit, more bool, err error) {
	added := map[string]bool{}
	for _, m := range r.list {
		var own []edit
		place := fmt.Sprint(m.parent.start, m.steps[min(m.best, len(m.steps)-1)])
		switch {
		case m.found != nil:
			own, err = m.set(r.content)
		case m.best == 0:
			err = fmt.Errorf("%s: the root element is %s", m.key, r.root)
		case added[place]: // below an element that is added now
			more = true
		default:
			added[place] = true
			own, err = m.add(r.content)
		}
		if err != nil {
			return nil, false, err
		}
		for _, e := range own {
			if slices.ContainsFunc(edits, e.overlaps) {
				more = true
				continue
			}
			edits = append(edits, e)
		}
	}
	return edits, more, nil
}

// overlaps reports whether two edits change the same bytes, or are the same insertion:
// two paths to one element.
func (e edit) overlaps(other edit) bool {
	return e == other || e.start < other.end && other.start < e.end
}
