package configfile

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// breaks are the characters of line breaks in YAML 1.1.
const breaks = "\r\n\u0085\u2028\u2029"

// yamlLines returns where each line begins. The parser counts the line breaks of
// Unicode as well.
func yamlLines(content []byte) []int {
	starts := []int{0}
	for i := 0; i < len(content); i++ {
		switch {
		case content[i] == '\r' && i+1 < len(content) && content[i+1] == '\n':
		case content[i] == '\n', content[i] == '\r':
			starts = append(starts, i+1)
		case bytes.HasSuffix(content[:i+1], []byte("\u0085")), bytes.HasSuffix(content[:i+1], []byte("\u2028")), bytes.HasSuffix(content[:i+1], []byte("\u2029")):
			starts = append(starts, i+1)
		}
	}
	return starts
}

// lineStart returns where the line of a node begins, or the last line if the file has
// fewer.
func (y yamlText) lineStart(n *yaml.Node) int {
	return y.lines[min(max(0, n.Line-1), len(y.lines)-1)]
}

// offset returns the position of a node, before its anchor and tag.
func (y yamlText) offset(n *yaml.Node) int {
	at := y.lineStart(n)
	for range n.Column - 1 {
		_, size := utf8.DecodeRune(y.content[at:])
		at += size
	}
	return at
}

// start returns the position of a node behind its anchor and tag.
func (y yamlText) start(n *yaml.Node) int {
	at := y.offset(n)
	for n.Kind != yaml.AliasNode && at < len(y.content) && (y.content[at] == '&' || y.content[at] == '!') {
		if end := bytes.IndexAny(y.content[at:], " \t\r\n"); end >= 0 {
			at += end
		} else {
			at = len(y.content)
		}
		at += len(y.content[at:]) - len(bytes.TrimLeft(y.content[at:], " \t\r\n"))
	}
	return at
}

// replace replaces a scalar by text.
func (y *yamlEditor) replace(n *yaml.Node, text string) error {
	end, err := y.text.end(n)
	if err != nil {
		return err
	}
	start := y.text.start(n)
	if start == end { // a key without a value
		text = " " + text
	}
	if n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 { // a comment may follow its indicator
		header := start + len(y.text.content[start:]) - len(bytes.TrimLeft(y.text.content[start:], "|>+-0123456789"))
		rest := header + bytes.IndexAny(append(y.text.content[header:], '\n'), breaks)
		text += string(y.text.content[header:rest])
	}
	y.edits = append(y.edits, edit{start, end, text})
	return nil
}

// scalar sets the value of a scalar or an alias.
func (y *yamlEditor) scalar(n *yaml.Node, value string) error {
	quoted := n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0
	isString := n.Kind == yaml.ScalarNode && n.ShortTag() == "!!str"
	if n.Kind == yaml.ScalarNode && n.Value == value && (isString || scalar(value)) && !empty(n) {
		return nil
	}
	switch {
	case scalar(value) && !quoted:
		return y.replace(n, value)
	case n.Style&yaml.SingleQuotedStyle != 0 && !strings.ContainsFunc(value, control):
		return y.replace(n, "'"+strings.ReplaceAll(value, "'", "''")+"'")
	case !quoted && n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) == 0 && (plainSafe(value, y.flow) || yamlWord(value) && yamlWord(n.Value)):
		return y.replace(n, value)
	}
	return y.replace(n, quote(value))
}

func control(r rune) bool {
	return r < ' ' || r >= 0x7F && r < 0xA0 || r == 0x2028 || r == 0x2029 || r == 0xFEFF || r == 0xFFFE || r == 0xFFFF
}

// oldYAML matches what is no string in YAML 1.1, which many games still read, or in
// another parser than ours.
var oldYAML = regexp.MustCompile(`^([yYnN]|[yY]es|YES|[nN]o|NO|[oO]n|ON|[oO]ff|OFF|[tT]rue|TRUE|false|False|FALSE|[nN]ull|NULL|[-+.0-9][-+.0-9_:a-fA-FxXoeE,TZtz ]*)$`)

// yamlWord reports whether a value is a word that YAML 1.1 reads as true or false.
func yamlWord(value string) bool {
	return slices.Contains([]string{"yes", "no", "on", "off"}, strings.ToLower(value))
}

// plainSafe reports whether a string can be written without quotes, in a flow
// collection or outside.
func plainSafe(value string, flow bool) bool {
	if flow && strings.ContainsAny(value, ":?") {
		return false
	}
	if value == "" || oldYAML.MatchString(value) || strings.ContainsFunc(value, control) || strings.TrimSpace(value) != value || strings.ContainsAny(value, "[]{},") {
		return false
	}
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte("k: "+value), &doc); err != nil {
		return false
	}
	n := doc.Content[0]
	if n.Kind != yaml.MappingNode || len(n.Content) != 2 {
		return false
	}
	v := n.Content[1]
	return v.Kind == yaml.ScalarNode && v.Style == 0 && v.Value == value && v.ShortTag() == "!!str" && v.Anchor == "" && v.LineComment == ""
}

// quoteKey writes a new key.
func quoteKey(name string, flow bool) string {
	if plainSafe(name, flow) {
		return name
	}
	return quote(name)
}

// plain returns the text of a new value, without quotes if it can be.
func (y *yamlEditor) plain(t *tree, text string, flow bool) string {
	if t.value != nil && !scalar(*t.value) && plainSafe(*t.value, flow) {
		return *t.value
	}
	return text
}

// block returns a tree that does not exist yet as lines with an indent.
func (y *yamlEditor) block(t *tree, indent int, eol string) (string, error) {
	head := strings.Repeat(" ", indent) + quoteKey(t.name, false) + ":"
	if t.value != nil {
		return head + " " + y.plain(t, bareOrQuoted(*t.value), false), nil
	}
	for i, c := range t.children {
		if t.list() {
			if c.name != strconv.Itoa(i) {
				return "", fmt.Errorf("%s: the elements of a new list are 0, 1, 2 and so on", c.path)
			}
			text, err := c.flow()
			if err != nil {
				return "", err
			}
			head += eol + strings.Repeat(" ", indent+y.step) + "- " + y.plain(c, text, false)
			continue
		}
		text, err := y.block(c, indent+y.step, eol)
		if err != nil {
			return "", err
		}
		head += eol + text
	}
	return head, nil
}
