package configfile

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"regexp"
	"strconv"
	"strings"
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
	xmlStepForm  = regexp.MustCompile(`^(` + xmlName + `)(?:\[([1-9][0-9]{0,6})\]|\[@(` + xmlName + `)=(?:'([^']*)'|"([^"]*)")\])?`)
	xmlFinalAttr = regexp.MustCompile(`^@(` + xmlName + `)$`)
)

// parseXMLPath parses a key such as /a/b[2]/c[@name='x']/@value.
func parseXMLPath(e entry) (p xmlPath, err error) {
	p = xmlPath{key: e.key, value: e.value}
	wrong := fmt.Errorf("%s: must be a path such as /a/b[2]/c[@name='x']/@value", e.key)
	for rest := e.key; rest != ""; {
		if rest[0] != '/' {
			return p, wrong
		}
		if attr := xmlFinalAttr.FindStringSubmatch(rest[1:]); attr != nil && len(p.steps) > 0 {
			p.attr = attr[1]
			return p, nil
		}
		if len(p.steps) == maxNames {
			return p, fmt.Errorf("%s: must have at most %d names", e.key, maxNames)
		}
		step := xmlStepForm.FindStringSubmatch(rest[1:])
		if step == nil {
			return p, wrong
		}
		index, _ := strconv.Atoi(step[2]) // empty is 0
		p.steps = append(p.steps, xmlStep{step[1], index, step[3], step[4] + step[5]})
		rest = rest[1+len(step[0]):]
	}
	if len(p.steps) == 0 {
		return p, wrong
	}
	return p, nil
}

func (s xmlStep) matches(e *xmlElement) bool {
	if s.name != e.name {
		return false
	}
	if s.attr == "" {
		return true
	}
	for _, a := range e.attrs {
		if rawName(a.Name) == s.attr {
			return a.Value == s.want
		}
	}
	return false
}

// set returns the edits that give the element that was found its value.
func (m *xmlMatch) set(content []byte) ([]edit, error) {
	e := m.found
	if m.attr != "" {
		return m.setAttr(content), nil
	}
	switch {
	case e.mixed:
		return nil, fmt.Errorf("%s: the element has elements or comments, not only text", m.key)
	case string(e.text) == m.value:
		return nil, nil
	case e.closed:
		return []edit{{e.start, e.tag, openTag(content[e.start:e.tag]) + escapeXML(m.value) + "</" + e.name + ">"}}, nil
	}
	return []edit{{e.tag, e.end, escapeXML(m.value)}}, nil
}

// openTag returns a tag that ends with "/>" as one that ends with ">".
func openTag(tag []byte) string {
	return strings.TrimRight(strings.TrimSuffix(string(tag), "/>"), " \t\r\n") + ">"
}

// setAttr returns the edit of an attribute. The positions of attributes are found in
// the tag, which the parser has accepted.
func (m *xmlMatch) setAttr(content []byte) []edit {
	e := m.found
	tag := content[e.start:e.tag]
	at := 1 + len(e.name)
	for _, a := range e.attrs {
		at += len(tag[at:]) - len(bytes.TrimLeft(tag[at:], " \t\r\n"))
		open := at + bytes.IndexAny(tag[at:], `"'`)
		end := open + 1 + bytes.IndexByte(tag[open+1:], tag[open])
		if rawName(a.Name) == m.attr {
			if a.Value == m.value {
				return nil
			}
			return []edit{{e.start + open + 1, e.start + end, escapeXML(m.value)}}
		}
		at = end + 1
	}
	return []edit{{e.start + at, e.start + at, " " + m.attr + `="` + escapeXML(m.value) + `"`}}
}

// add returns the edit that adds the missing elements to the parent that was found.
func (m *xmlMatch) add(content []byte) ([]edit, error) {
	var text strings.Builder
	steps := m.steps[m.best:]
	last := steps[len(steps)-1]
	for i, s := range steps {
		if s.index > 1 && (i > 0 || m.seen != s.index-1) {
			return nil, fmt.Errorf("%s: there are fewer than %d elements %s", m.key, s.index-1, s.name)
		}
		if i > 0 {
			text.WriteString(">")
		}
		text.WriteString("<" + s.name)
		if s.attr != "" {
			text.WriteString(" " + s.attr + `="` + escapeXML(s.want) + `"`)
		}
	}
	switch {
	case m.attr != "" && m.attr == last.attr: // it has selected the element
		if m.value != last.want {
			return nil, fmt.Errorf("%s: the element that is missing has another value", m.key)
		}
		text.WriteString("/>")
	case m.attr != "":
		text.WriteString(" " + m.attr + `="` + escapeXML(m.value) + `"/>`)
	default:
		text.WriteString(">" + escapeXML(m.value) + "</" + last.name + ">")
	}
	for i := len(steps) - 2; i >= 0; i-- {
		text.WriteString("</" + steps[i].name + ">")
	}
	return []edit{m.parent.add(content, text.String(), m.best == 1)}, nil
}

// add returns the edit that adds a child to an element, behind its last one.
func (e xmlElement) add(content []byte, child string, root bool) edit {
	switch {
	case e.closed:
		return edit{e.start, e.tag, openTag(content[e.start:e.tag]) + child + "</" + e.name + ">"}
	case e.last > 0:
		return edit{e.last, e.last, e.lead + child}
	case root && len(bytes.TrimSpace(content[e.tag:e.end])) == 0:
		return edit{e.tag, e.tag, ending(content, e.tag) + "  " + child}
	}
	return edit{e.tag, e.tag, child}
}

func escapeXML(text string) string {
	var out strings.Builder
	_ = xml.EscapeText(&out, []byte(text)) // a strings.Builder returns no error
	return out.String()
}
