package configfile

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// maxNodes bounds the memory for one yaml file: a node takes 250 bytes, and an element of a flow
// collection 1,250 while it is parsed.
const maxNodes = 50_000

var errNodes = errors.New("the file has too many values: at most some 25,000 lines, or 10,000 elements in brackets")

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
	y := yamlEditor{content: content, lines: []int{0}, aliased: map[string]bool{}}
	eachNode(root, func(n *yaml.Node) {
		if n.Kind == yaml.AliasNode {
			y.aliased[n.Value] = true
		}
	})
	for _, found := range yamlBreak.FindAllIndex(content, -1) {
		y.lines = append(y.lines, found[1])
	}
	if root == nil {
		var lines []string
		for _, c := range wanted.children {
			text, err := c.lines(ending(content, len(content)))
			if err != nil {
				return nil, err
			}
			lines = append(lines, text)
		}
		return replaceAll(content, []edit{atEnd(content, lines)})
	}
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

func findYAML(content []byte) (finder, error) {
	root, err := parseYAML(content)
	if err != nil {
		return nil, err
	}
	if root == nil {
		return treeFinder(map[string]any{}), nil
	}
	return treeFinder(valueOf(root)), nil
}

// valueOf returns a node as treeFinder takes it. Scalars are texts.
func valueOf(n *yaml.Node) any {
	switch n.Kind {
	case yaml.MappingNode:
		values := make(map[string]any, len(n.Content)/2)
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Kind == yaml.ScalarNode {
				values[n.Content[i].Value] = valueOf(n.Content[i+1])
			}
		}
		return values
	case yaml.SequenceNode:
		values := make([]any, 0, len(n.Content))
		for _, c := range n.Content {
			values = append(values, valueOf(c))
		}
		return values
	case yaml.AliasNode:
		if n.Alias != nil && n.Alias.Kind == yaml.ScalarNode {
			return alias{n.Alias.Value}
		}
		return alias{struct{}{}}
	}
	if b, err := strconv.ParseBool(n.Value); err == nil && n.ShortTag() == "!!bool" {
		return b
	}
	return n.Value
}

// eachNode calls do for a node, which may be nil, and all below it.
func eachNode(n *yaml.Node, do func(*yaml.Node)) {
	if n == nil {
		return
	}
	do(n)
	for _, c := range n.Content {
		eachNode(c, do)
	}
}

var (
	yamlHead       = regexp.MustCompile(`(?:\A|(?:^|[\r\n])\.\.\.[ \t]*(?:#[^\r\n]*)?[\r\n])(?:[ \t]*(?:#[^\r\n]*)?[\r\n]+|%[^\r\n]*[\r\n]+)*`)
	yamlDirective  = regexp.MustCompile(`(?m)^%[^ \t\r\n]*`)
	yamlSurrogates = regexp.MustCompile(`(?s)\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\.`)
)

// surrogateShift is how far behind the surrogates the private characters are that stand for them.
const surrogateShift = 0xE000 - 0xD800

// accepted returns a text of the same length that the parser takes: it refuses YAML 1.2 and pairs of surrogates. It has
// comments in place of directives other than TAG. Two private characters stand for each pair in a string; pairs
// reports whether there are any.
func accepted(content []byte) (text []byte, pairs bool) {
	text = yamlHead.ReplaceAllFunc(content, func(head []byte) []byte {
		return yamlDirective.ReplaceAllFunc(head, func(name []byte) []byte {
			if string(name) == "%TAG" {
				return name
			}
			return append([]byte("#"), name[1:]...)
		})
	})
	text = yamlSurrogates.ReplaceAllFunc(text, func(pair []byte) []byte {
		if len(pair) < len(`\ud83d\ude00`) {
			return pair
		}
		pairs = true
		high, _ := strconv.ParseUint(string(pair[2:6]), 16, 16) // the expression has matched digits
		low, _ := strconv.ParseUint(string(pair[8:]), 16, 16)
		return fmt.Appendf(nil, `\u%04x\u%04x`, high+surrogateShift, low+surrogateShift)
	})
	return text, pairs
}

// joinSurrogates replaces what accepted wrote in place of pairs of surrogates by their characters.
func joinSurrogates(n *yaml.Node) {
	if n.Style&yaml.DoubleQuotedStyle == 0 {
		return
	}
	var out []rune
	for _, r := range n.Value {
		if last := len(out) - 1; last >= 0 {
			if joined := utf16.DecodeRune(out[last]-surrogateShift, r-surrogateShift); joined != utf8.RuneError {
				out[last] = joined
				continue
			}
		}
		out = append(out, r)
	}
	n.Value = string(out)
}

// parseYAML returns the root of the first document; nil if it has none. It refuses what is no
// UTF-8, though the parser accepts UTF-16: its positions count characters, which are bytes
// elsewhere.
func parseYAML(content []byte) (root *yaml.Node, err error) {
	if !utf8.Valid(content) {
		return nil, errEncoding
	}
	nodes := 0
	for begin, weight := range map[string]int{"\n": 1, ":": 1, "- ": 1, ",": 5, "[": 5, "{": 5, "?": 5} {
		nodes += bytes.Count(content, []byte(begin)) * weight
	}
	if nodes > maxNodes {
		return nil, errNodes
	}
	text, pairs := accepted(content)
	d := yaml.NewDecoder(bytes.NewReader(text))
	for first := true; ; first = false {
		var doc yaml.Node
		var wrong *yaml.LoadError
		switch err := d.Decode(&doc); {
		case errors.Is(err, io.EOF):
			return root, nil
		case errors.As(err, &wrong):
			return nil, fmt.Errorf("the file is not valid YAML: line %d, column %d: %s", wrong.Mark.Line, wrong.Mark.Column, wrong.Message)
		case err != nil:
			return nil, fmt.Errorf("the file is not valid YAML: %w", err)
		}
		if first && len(doc.Content) > 0 && !empty(doc.Content[0]) {
			root = doc.Content[0]
			if pairs {
				eachNode(root, joinSurrogates)
			}
		}
	}
}

// empty reports whether a node is no text at all.
func empty(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && n.Tag == "!!null" && n.Value == "" && n.Style == 0 && n.Anchor == ""
}

func flow(n *yaml.Node) bool { return n.Style&yaml.FlowStyle != 0 }

// sameBeside reports whether two documents are equal except for the values of t.
func sameBeside(a, b *yaml.Node, t *tree) bool {
	if t != nil && t.value != nil {
		return b != nil && b.Kind == yaml.ScalarNode && b.Value == *t.value
	}
	if a == nil || b == nil || a.Kind != b.Kind {
		return t != nil && (a == nil || a.Kind == yaml.ScalarNode) && b != nil
	}
	if a.Value != b.Value || a.ShortTag() != b.ShortTag() || a.Anchor != b.Anchor || len(a.Content) > len(b.Content) ||
		t == nil && len(a.Content) < len(b.Content) {
		return false
	}
	last := lastKeys(a, t)
	for i, child := range a.Content {
		var c *tree
		if a.Kind == yaml.SequenceNode {
			c = t.find(strconv.Itoa(i))
		} else if i%2 == 1 {
			c = t.find(a.Content[i-1].Value)
		}
		if a.Kind == yaml.MappingNode && last[c] != i {
			c = nil
		}
		if !sameBeside(child, b.Content[i], c) {
			return false
		}
	}
	return true
}

// lastKeys returns where the value of each child of t is in a mapping: behind the last key of
// its name.
func lastKeys(n *yaml.Node, t *tree) map[*tree]int {
	last := map[*tree]int{}
	for i := 0; t != nil && n.Kind == yaml.MappingNode && i < len(n.Content); i += 2 {
		if c := t.find(n.Content[i].Value); c != nil && n.Content[i].Kind == yaml.ScalarNode {
			last[c] = i + 1
		}
	}
	return last
}

// yamlEditor collects the edits of one file.
type yamlEditor struct {
	content []byte
	lines   []int           // where each line begins
	aliased map[string]bool // anchors that have aliases
	edits   []edit
}

// edit sets the values of t in the node n. It refuses to change what has aliases, which would change too.
func (y *yamlEditor) edit(n *yaml.Node, t *tree) error {
	before := len(y.edits)
	err := y.change(n, t)
	if err == nil && len(y.edits) > before && n.Kind != yaml.AliasNode && y.aliased[n.Anchor] {
		return fmt.Errorf("%s: has the anchor &%s, and its aliases would change too (line %d, column %d)", cmp.Or(t.path, "the file"),
			n.Anchor, n.Line, n.Column)
	}
	return err
}

func (y *yamlEditor) change(n *yaml.Node, t *tree) error {
	at := fmt.Sprintf("line %d, column %d", n.Line, n.Column)
	switch {
	case t.value == nil && (n.Kind == yaml.MappingNode || n.Kind == yaml.SequenceNode):
		return y.collection(n, t)
	case t.value == nil && n.Kind == yaml.AliasNode:
		return fmt.Errorf("%s: is an alias, and a value in it would change elsewhere too (%s)", t.path, at)
	case t.value == nil && n.Tag != "!!null":
		return t.notContainer(at)
	case t.value == nil:
		text, err := t.json() // in place of null
		return errors.Join(err, y.replace(n, text))
	case n.Kind == yaml.MappingNode, n.Kind == yaml.SequenceNode:
		return t.notScalar(at)
	}
	return y.scalar(n, *t.value)
}

// collection sets values in a mapping or a list. Its last child gets its own new values first, so
// these are before those that the collection gets.
func (y *yamlEditor) collection(n *yaml.Node, t *tree) error {
	var missing []*tree
	last, count := lastKeys(n, t), len(n.Content)
	for _, c := range t.children {
		at, exists := last[c]
		if n.Kind == yaml.SequenceNode {
			i, err := c.index(count)
			if err != nil {
				return err
			}
			at, exists, count = i, i < len(n.Content), max(count, i+1)
		}
		if !exists {
			missing = append(missing, c)
		} else if err := y.edit(n.Content[at], c); err != nil {
			return err
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return y.add(n, missing)
}

// add adds children to the end of a mapping or a list.
func (y *yamlEditor) add(n *yaml.Node, missing []*tree) error {
	at, eol, comma := y.start(n)+1, "", ""
	if len(n.Content) > 0 {
		end, err := y.end(n.Content[len(n.Content)-1])
		if err != nil {
			return err
		}
		at, comma = end, ", "
	}
	if !flow(n) {
		indent := n.Content[0].Column - 1 // the column of the mapping itself may be that of its anchor
		if n.Kind == yaml.SequenceNode {
			indent = bytes.LastIndexByte(y.content[y.lineStart(n.Content[0]):y.offset(n.Content[0])], '-')
		}
		switch {
		case indent < 0:
			return errEnd
		case indent > maxIndent:
			return errDepth
		}
		at = y.lineEnd(at)
		eol = ending(y.content, at) + strings.Repeat(" ", indent)
		if at == len(y.content) {
			y.stripLast(n.Content[len(n.Content)-1])
		}
	}
	for _, c := range missing {
		text, err := c.inline()
		switch {
		case n.Kind == yaml.MappingNode && flow(n):
			text = plain(c.name) + ": " + text
		case n.Kind == yaml.MappingNode:
			text, err = c.lines(eol)
		case !flow(n):
			text = "- " + text
		}
		if err != nil {
			return err
		}
		if flow(n) {
			text, comma = comma+text, ", "
		}
		y.edits = append(y.edits, edit{at, at, eol + text})
	}
	return nil
}

// lines returns a key that does not exist yet with its value as lines, between which is eol
// with the indent.
func (t *tree) lines(eol string) (string, error) {
	head := plain(t.name) + ":"
	if t.value != nil {
		text, err := t.inline()
		return head + " " + text, err
	}
	list, err := t.list()
	eol += "  "
	for _, c := range t.children {
		var text string
		var failed error
		if list {
			text, failed = c.inline()
			text = "- " + text
		} else {
			text, failed = c.lines(eol)
		}
		head, err = head+eol+text, errors.Join(err, failed)
	}
	return head, err
}

// inline returns a tree that does not exist yet on one line.
func (t *tree) inline() (string, error) {
	if t.value != nil && !bare(*t.value) {
		return plain(*t.value), nil
	}
	return t.json()
}

// scalar sets the value of a scalar or an alias.
func (y *yamlEditor) scalar(n *yaml.Node, value string) error {
	quoted := n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0
	isString := n.Kind == yaml.ScalarNode && n.ShortTag() == "!!str"
	switch {
	case n.Kind == yaml.ScalarNode && n.Value == value && (isString || bare(value)) && !empty(n):
		return nil
	case bare(value) && !quoted, oldBool.MatchString(value) && oldBool.MatchString(n.Value) && !quoted:
		return y.replace(n, value)
	case n.Style&yaml.SingleQuotedStyle != 0 && !strings.ContainsFunc(value, control):
		return y.replace(n, "'"+strings.ReplaceAll(value, "'", "''")+"'")
	case quoted:
		return y.replace(n, quote(value))
	}
	return y.replace(n, plain(value))
}

var (
	yamlBreak      = regexp.MustCompile("\r\n|[\r\n\u0085\u2028\u2029]")
	yamlPlain      = regexp.MustCompile(`^[\pL_/][\pL\pN_./-]*( +[\pL\pN_./-]+)*$`)
	oldBool        = regexp.MustCompile(`(?i)^(y|n|yes|no|on|off)$`) // of YAML 1.1, which many games still read
	yamlWord       = regexp.MustCompile(`(?i)^(y|n|yes|no|on|off|true|false|null)$`)
	yamlDouble     = regexp.MustCompile(`(?s)^"(?:[^"\\]|\\.)*"`)
	yamlSingle     = regexp.MustCompile(`(?s)^'(?:[^']|'')*'`)
	yamlAlias      = regexp.MustCompile(`^[^ \t\r\n,\]}]*`)
	yamlClose      = regexp.MustCompile(`^(?:[\s,:]|#[^\r\n]*)*[\]}]`)
	yamlProperties = regexp.MustCompile(`^(?:[&!][^ \t\r\n]*\s*)*`)
	yamlDashes     = regexp.MustCompile(`^ *(?:- +)*`)
	yamlHeader     = regexp.MustCompile(`^[|>][-+0-9]*`)
)

// plain returns a string without quotes if no parser can read it as something else.
func plain(value string) string {
	if yamlPlain.MatchString(value) && !yamlWord.MatchString(value) {
		return value
	}
	return quote(value)
}
