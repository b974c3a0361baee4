package configfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// maxNodes bounds the memory for the nodes of one yaml file, which take 250 bytes each.
const maxNodes = 100_000

var (
	errYAML  = errors.New("the file is not valid YAML")
	errNodes = errors.New("the file has too many values")
)

// yamlFile sets values in the first document of a yaml file.
func yamlFile(content []byte, set []entry) ([]byte, error) {
	wanted, err := newTree(set)
	if err != nil || len(set) == 0 {
		return content, err
	}
	root, err := parseYAML(content)
	if err != nil {
		return nil, err
	}
	y := yamlEditor{text: yamlText{content, yamlLines(content)}, step: 2}
	if root == nil {
		return y.fill(wanted)
	}
	y.step = indentStep(root)
	if err := y.edit(root, wanted); err != nil {
		return nil, err
	}
	changed, err := replaceAll(content, y.edits)
	if err != nil {
		return nil, err
	}
	now, err := parseYAML(changed)
	if err != nil || !sameBeside(root, now, wanted) {
		return nil, errUnstable
	}
	return changed, nil
}

// parseYAML returns the root of the first document; nil if it has none. It refuses the
// UTF-16 that the parser accepts: its positions count characters, which are bytes elsewhere.
func parseYAML(content []byte) (root *yaml.Node, err error) {
	if !utf8.Valid(content) {
		return nil, errEncoding
	}
	if n := bytes.Count(content, []byte(",")) + bytes.Count(content, []byte("\n")) + bytes.Count(content, []byte(":")) +
		bytes.Count(content, []byte("- ")) + bytes.Count(content, []byte("[")) + bytes.Count(content, []byte("{")) + bytes.Count(content, []byte("?")); n > maxNodes {
		return nil, errNodes
	}
	d := yaml.NewDecoder(bytes.NewReader(content))
	for first := true; ; first = false {
		var doc yaml.Node
		switch err := d.Decode(&doc); {
		case errors.Is(err, io.EOF):
			return root, nil
		case err != nil:
			return nil, fmt.Errorf("%w: %s", errYAML, strings.TrimPrefix(err.Error(), "yaml: "))
		}
		if first && len(doc.Content) > 0 && !empty(doc.Content[0]) {
			root = doc.Content[0]
		}
	}
}

// empty reports whether a node is no text at all.
func empty(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && n.Tag == "!!null" && n.Value == "" && n.Style == 0 && n.Anchor == ""
}

// indentStep returns by how many columns the first nested mapping is indented.
func indentStep(n *yaml.Node) int {
	for i := 1; n.Kind == yaml.MappingNode && i < len(n.Content); i += 2 {
		child := n.Content[i]
		if child.Kind == yaml.MappingNode && child.Style&yaml.FlowStyle == 0 && column(child) > column(n) {
			return column(child) - column(n)
		}
	}
	return 2
}

// column returns the column of the keys of a block mapping, from 1. That of the mapping
// itself may be the one of its anchor.
func column(n *yaml.Node) int { return n.Content[0].Column }

// dash returns the column of the dashes of a block sequence, from 0.
func (y *yamlEditor) dash(n *yaml.Node) (int, error) {
	first := n.Content[0]
	before := y.text.content[y.text.lineStart(first):y.text.offset(first)]
	if at := bytes.LastIndexByte(before, '-'); at >= 0 {
		return at, nil
	}
	return 0, errEnd
}

// yamlEditor collects the edits of one file.
type yamlEditor struct {
	text  yamlText
	step  int  // columns of an indent
	flow  bool // the node is in a flow collection
	edits []edit
}

// yamlText finds the positions of nodes in a file.
type yamlText struct {
	content []byte
	lines   []int // where each line begins
}

// fill adds values to a file without any.
func (y *yamlEditor) fill(t *tree) ([]byte, error) {
	if t.list() {
		return nil, errors.New("the file has no list")
	}
	content := y.text.content
	for _, c := range t.children {
		text, err := y.block(c, 0, ending(content, len(content)))
		if err != nil {
			return nil, err
		}
		content = appendLine(content, text)
	}
	return content, nil
}

// edit sets the values of t in the node n.
func (y *yamlEditor) edit(n *yaml.Node, t *tree) error {
	outer := y.flow
	defer func() { y.flow = outer }()
	y.flow = outer || n.Kind != yaml.ScalarNode && n.Style&yaml.FlowStyle != 0
	switch {
	case n.Kind == yaml.AliasNode && t.value == nil:
		return fmt.Errorf("%s: is an alias, and a value in it would change elsewhere too", t.path)
	case n.Kind == yaml.MappingNode && t.value == nil:
		return y.mapping(n, t)
	case n.Kind == yaml.SequenceNode && t.value == nil:
		return y.sequence(n, t)
	case n.Kind == yaml.MappingNode, n.Kind == yaml.SequenceNode:
		return notScalar(t)
	case t.value == nil && n.Tag != "!!null":
		return notContainer(t)
	case t.value == nil:
		text, err := t.flow() // in place of null
		return errors.Join(err, y.replace(n, text))
	}
	return y.scalar(n, *t.value)
}

func (y *yamlEditor) mapping(n *yaml.Node, t *tree) error {
	for _, c := range t.children {
		at := -1 // of several equal keys the last one counts
		for i := 0; i < len(n.Content); i += 2 {
			if key := n.Content[i]; key.Kind == yaml.ScalarNode && key.Value == c.name {
				at = i
			}
		}
		switch {
		case at < 0:
			if err := y.addKey(n, c); err != nil {
				return err
			}
		case empty(n.Content[at+1]) && c.value == nil && n.Style&yaml.FlowStyle == 0:
			if err := y.addBelow(n.Content[at], n.Content[at+1], c); err != nil {
				return err
			}
		default:
			if err := y.edit(n.Content[at+1], c); err != nil {
				return err
			}
		}
	}
	return nil
}

func (y *yamlEditor) sequence(n *yaml.Node, t *tree) error {
	count := len(n.Content)
	for _, c := range t.children {
		i, err := c.index(count)
		if err != nil {
			return err
		}
		if i < len(n.Content) {
			if err := y.edit(n.Content[i], c); err != nil {
				return err
			}
			continue
		}
		count++
		text, err := c.flow()
		if err != nil {
			return err
		}
		if n.Style&yaml.FlowStyle != 0 {
			err = y.addFlow(n, text, count > 1)
		} else {
			err = y.addItem(n, y.plain(c, text, false))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// addItem adds an element to a block sequence.
func (y *yamlEditor) addItem(n *yaml.Node, text string) error {
	indent, err := y.dash(n)
	if err != nil {
		return err
	}
	return y.addLine(n, strings.Repeat(" ", indent)+"- "+text)
}

// addKey adds a key to the end of a mapping.
func (y *yamlEditor) addKey(n *yaml.Node, t *tree) error {
	if n.Style&yaml.FlowStyle != 0 {
		text, err := t.flow()
		if err != nil {
			return err
		}
		more := len(n.Content) > 0 || slices.ContainsFunc(y.edits, func(e edit) bool { return e.start == y.inside(n) && e.end == e.start })
		return y.addFlow(n, quoteKey(t.name, true)+": "+y.plain(t, text, true), more)
	}
	text, err := y.block(t, column(n)-1, ending(y.text.content, y.text.offset(n)))
	if err != nil {
		return err
	}
	return y.addLine(n, text)
}

// addBelow adds the children of t below a key without a value.
func (y *yamlEditor) addBelow(key, value *yaml.Node, t *tree) error {
	text, err := y.block(t, key.Column-1, ending(y.text.content, y.text.offset(key)))
	if err != nil {
		return err
	}
	_, below, _ := strings.Cut(text, "\n")
	return y.addLineAt(y.text.offset(value), below)
}

// addLine adds lines behind the last line of a node.
func (y *yamlEditor) addLine(n *yaml.Node, text string) error {
	end, err := y.text.end(n)
	if err != nil {
		return err
	}
	return y.addLineAt(end, text)
}

// addLineAt adds lines behind the line that has the position at.
func (y *yamlEditor) addLineAt(at int, text string) error {
	if n := bytes.IndexAny(y.text.content[at:], breaks); n >= 0 {
		at += n
	} else {
		at = len(y.text.content)
	}
	y.edits = append(y.edits, edit{at, at, ending(y.text.content, at) + text})
	return nil
}

// inside returns the position behind the opening bracket of a flow collection.
func (y *yamlEditor) inside(n *yaml.Node) int { return y.text.start(n) + 1 }

// addFlow adds an element to a flow collection.
func (y *yamlEditor) addFlow(n *yaml.Node, text string, more bool) error {
	at, lead := y.inside(n), ""
	if more {
		lead = ", "
	}
	if len(n.Content) > 0 {
		last := n.Content[len(n.Content)-1]
		end, err := y.text.end(last)
		if err != nil {
			return err
		}
		at = end
		if n.Kind == yaml.MappingNode {
			last = n.Content[len(n.Content)-2] // its key
		}
		before := y.text.content[y.text.lineStart(last):y.text.offset(last)]
		if last.Line > n.Line && len(bytes.TrimLeft(before, " ")) == 0 { // on a line of its own
			lead = "," + ending(y.text.content, at) + string(before)
		}
	}
	y.edits = append(y.edits, edit{at, at, lead + text})
	return nil
}
