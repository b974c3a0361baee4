package configfile

import (
	"encoding/xml"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// xmlPath is a parsed key and its value.
type xmlPath struct {
	key, value string
	steps      []xmlStep
	attr       string // empty: the text of the element
}

// xmlStep selects an element among the children of another one.
type xmlStep struct {
	name       string
	index      int    // from 1; 0: the first that fits
	attr, want string // the attribute that selects it; empty: none
}

var (
	xmlName      = `[\pL_][\pL\pN_.:-]*`
	xmlStepForm  = regexp.MustCompile(`^/(` + xmlName + `|\*)(?:\[([1-9][0-9]{0,6})\]|\[@(` + xmlName + `)=(?:'([^']*)'|"([^"]*)")\])?`)
	xmlFinalAttr = regexp.MustCompile(`^/@(` + xmlName + `)$`)
)

// parseXMLPath parses a key such as /a/b[2]/c[@name='x']/@value.
func parseXMLPath(e entry) (p xmlPath, err error) {
	p = xmlPath{key: e.key, value: e.value}
	rest := e.key
	for step := xmlStepForm.FindStringSubmatch(rest); step != nil; step = xmlStepForm.FindStringSubmatch(rest) {
		index, _ := strconv.Atoi(step[2]) // empty is 0
		p.steps = append(p.steps, xmlStep{step[1], index, step[3], step[4] + step[5]})
		rest = rest[len(step[0]):]
	}
	if attr := xmlFinalAttr.FindStringSubmatch(rest); attr != nil {
		p.attr, rest = attr[1], ""
	}
	switch {
	case rest != "" || len(p.steps) == 0:
		return p, fmt.Errorf("%s: must be a path such as /a/b[2]/c[@name='x']/@value", e.key)
	case len(p.steps) > maxNames:
		return p, fmt.Errorf("%s: must have at most %d names", e.key, maxNames)
	case strings.ContainsFunc(e.value, func(r rune) bool { return r != 0xFFFD && escapeXML(string(r)) == escapeXML("\uFFFD") }):
		return p, fmt.Errorf("%s: the value has a character that XML does not have", e.key)
	}
	return p, nil
}

// named returns the children of an element that have the name of the step.
func (s xmlStep) named(e *element) []*element {
	if s.name != "*" {
		return e.children[s.name]
	}
	var list []*element
	for _, p := range e.parts {
		if p.child != nil {
			list = append(list, p.child)
		}
	}
	return list
}

// among returns the children of an element that have the name and the index of the step.
func (s xmlStep) among(e *element) []*element {
	list := s.named(e)
	switch {
	case s.index > len(list):
		return nil
	case s.index > 0:
		return list[s.index-1 : s.index]
	}
	return list
}

// fits reports whether an element has the attribute of the step.
func (s xmlStep) fits(e *element) bool {
	value, has := e.attr(s.attr)
	return s.attr == "" || has && value == s.want
}

// all adds the elements to which the path leads from e to list, each with the path that leads to it alone.
func (p xmlPath) all(e *element, depth int, path string, list *[]found) error {
	if depth == len(p.steps) {
		f := found{key: path, old: p.of(e), exists: true}
		if p.attr != "" {
			f.key += "/@" + p.attr
			_, f.exists = e.attr(p.attr)
		}
		if *list = append(*list, f); len(*list) > maxFound {
			return errFound
		}
		return nil
	}
	step, seen := p.steps[depth], map[string]int{} // how many of a name are before
	for i, child := range step.named(e) {
		seen[child.name]++
		if step.index > 0 && i+1 != step.index || !step.fits(child) {
			continue
		}
		at := path + "/" + child.name
		if len(e.children[child.name]) > 1 {
			at += fmt.Sprintf("[%d]", seen[child.name])
		}
		if err := p.all(child, depth+1, at, list); err != nil {
			return err
		}
	}
	return nil
}

// find returns the element of the path below e. If there is none it returns the first element
// that matches most steps, and their number.
func (p xmlPath) find(e *element, depth int) (found, best *element, steps int) {
	if depth == len(p.steps) {
		return e, e, depth
	}
	best, steps = e, depth
	step := p.steps[depth]
	for _, child := range step.among(e) {
		if !step.fits(child) {
			continue
		}
		found, child, deep := p.find(child, depth+1)
		if found != nil {
			return found, child, deep
		}
		if deep > steps {
			best, steps = child, deep
		}
	}
	return nil, best, steps
}

// of returns the value that the path names in its element.
func (p xmlPath) of(e *element) string {
	if p.attr == "" {
		return string(e.text)
	}
	value, _ := e.attr(p.attr)
	return value
}

// set sets the value in a file.
func (p xmlPath) set(file *element) error {
	e, parent, depth := p.find(file, 0)
	if e == nil && depth == 0 {
		return fmt.Errorf("%s: the root element is %s", p.key, file.parts[file.last-1].child.name)
	}
	if e == nil {
		e = parent
		for _, step := range p.steps[depth:] {
			if step.index > 1 && step.index != len(e.children[step.name])+1 {
				return fmt.Errorf("%s: there are fewer than %d elements %s", p.key, step.index-1, step.name)
			}
			e = e.add(step)
		}
	}
	if p.attr != "" {
		e.setAttr(p.attr, p.value)
		return nil
	}
	switch {
	case e.mixed:
		return fmt.Errorf("%s: the element has elements or comments, not only text", p.key)
	case string(e.text) != p.value:
		e.unclose()
		e.parts, e.text = []part{{text: escapeXML(p.value)}}, []byte(p.value)
	}
	return nil
}

// add adds a child behind the last one, with the space before that.
func (e *element) add(s xmlStep) *element {
	child := &element{open: "<" + s.name + "/>", name: s.name, parent: e}
	if s.attr != "" {
		child.setAttr(s.attr, s.want)
	}
	e.unclose()
	lead, at := "", e.last
	switch {
	case at > 1:
		lead = e.parts[at-2].text
	case at == 0 && len(e.parts) == 1 && strings.TrimSpace(e.parts[0].text) == "":
		lead = e.parts[0].text + "  "
	case at == 0:
		at = len(e.parts)
	}
	if lead = lead[len(strings.TrimRight(lead, " \t\r\n")):]; len(lead) > maxIndent {
		lead = ""
	}
	e.insert(at, part{text: lead}, part{child: child})
	return child
}

// unclose gives an element that has none an end tag.
func (e *element) unclose() {
	if tag, closed := strings.CutSuffix(e.open, "/>"); closed {
		e.open, e.close = strings.TrimRight(tag, " \t\r\n")+">", "</"+e.name+">"
	}
}

func (e *element) attr(name string) (value string, has bool) {
	i := slices.IndexFunc(e.attrs, func(a xml.Attr) bool { return rawName(a.Name) == name })
	if i < 0 {
		return "", false
	}
	return e.attrs[i].Value, true
}

// setAttr changes an attribute in the tag, or adds it behind the last one. The parser has
// accepted the tag, so the next quotes are those of the next attribute.
func (e *element) setAttr(name, value string) {
	at := 1 + len(e.name)
	for i, a := range e.attrs {
		open := at + strings.IndexAny(e.open[at:], `"'`) + 1
		end := open + strings.IndexByte(e.open[open:], e.open[open-1])
		if rawName(a.Name) == name {
			if a.Value != value {
				e.open, e.attrs[i].Value = e.open[:open]+escapeXML(value)+e.open[end:], value
			}
			return
		}
		at = end + 1
	}
	e.open = e.open[:at] + " " + name + `="` + escapeXML(value) + `"` + e.open[at:]
	prefix, local, found := strings.Cut(name, ":")
	if !found {
		prefix, local = "", name
	}
	e.attrs = append(e.attrs, xml.Attr{Name: xml.Name{Space: prefix, Local: local}, Value: value})
}

// escapeXML returns a text as it is written: in ASCII, which every encoding of a file has.
func escapeXML(text string) string {
	var escaped, out strings.Builder
	_ = xml.EscapeText(&escaped, []byte(text)) // a strings.Builder returns no error
	for _, r := range escaped.String() {
		if r < utf8.RuneSelf {
			out.WriteRune(r)
		} else {
			fmt.Fprintf(&out, "&#%d;", r)
		}
	}
	return out.String()
}
