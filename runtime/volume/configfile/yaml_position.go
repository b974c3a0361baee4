package configfile

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

var errEnd = errors.New("the file has a value whose end is not found")

// lineStart returns where the line of a node begins, or the last line if the file has
// fewer.
func (y *yamlEditor) lineStart(n *yaml.Node) int {
	return y.lines[min(max(0, n.Line-1), len(y.lines)-1)]
}

// offset returns the position of a node, before its anchor and tag.
func (y *yamlEditor) offset(n *yaml.Node) int {
	at := y.lineStart(n)
	for range n.Column - 1 {
		_, size := utf8.DecodeRune(y.content[at:])
		at += size
	}
	return at
}

// start returns the position of a node behind its anchor and tag.
func (y *yamlEditor) start(n *yaml.Node) int {
	at := y.offset(n)
	if n.Kind != yaml.AliasNode {
		at += len(yamlProperties.Find(y.content[at:]))
	}
	return at
}

// replace replaces a scalar by text.
func (y *yamlEditor) replace(n *yaml.Node, text string) error {
	end, err := y.end(n)
	if err != nil {
		return err
	}
	start := y.start(n)
	if start == end { // a key without a value
		text = " " + text
	}
	if n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 { // a comment may follow its indicator
		header := start + len(yamlHeader.Find(y.content[start:]))
		text += string(y.content[header:y.lineEnd(header)])
	}
	y.edits = append(y.edits, edit{start, end, text})
	return nil
}

// end returns the position behind a node. The parser reports only where nodes begin.
func (y *yamlEditor) end(n *yaml.Node) (int, error) {
	at := y.start(n)
	form := yamlClose
	switch {
	case n.Kind == yaml.AliasNode:
		form = yamlAlias
	case n.Style&yaml.DoubleQuotedStyle != 0:
		form = yamlDouble
	case n.Style&yaml.SingleQuotedStyle != 0:
		form = yamlSingle
	case n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		return y.blockEnd(n, at), nil
	case n.Kind == yaml.ScalarNode:
		return y.plainEnd(n, at)
	case len(n.Content) == 0:
		at++ // the bracket
	default:
		end, err := y.end(n.Content[len(n.Content)-1])
		if err != nil || !flow(n) {
			return end, err
		}
		at = end
	}
	found := form.FindIndex(y.content[at:])
	if found == nil {
		return 0, errEnd
	}
	return at + found[1], nil
}

// plainEnd returns the end of a plain scalar. Its lines are folded: a space or a line
// break of the value is any space of the file.
func (y *yamlEditor) plainEnd(n *yaml.Node, at int) (int, error) {
	rest := y.content[at:]
	for value := n.Value; value != ""; {
		word := value
		if i := strings.IndexAny(value, " \n"); i >= 0 {
			word = value[:i]
		}
		if !bytes.HasPrefix(rest, []byte(word)) {
			return 0, errEnd
		}
		rest = rest[len(word):]
		if value = strings.TrimLeft(value[len(word):], " \n"); value != "" {
			rest = bytes.TrimLeft(rest, " \t\r\n")
		}
	}
	return len(y.content) - len(rest), nil
}

// stripLast changes the header of a literal or folded scalar with which the file ends: without a line end its text has
// none, and it must not get one from a line that follows.
func (y *yamlEditor) stripLast(n *yaml.Node) {
	for n.Kind != yaml.ScalarNode && len(n.Content) > 0 {
		n = n.Content[len(n.Content)-1]
	}
	if n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) == 0 || strings.HasSuffix(n.Value, "\n") {
		return
	}
	at := y.start(n)
	header := string(yamlHeader.Find(y.content[at:]))
	changed := slices.ContainsFunc(y.edits, func(e edit) bool { return e.start <= at && at < e.end })
	if text := strings.Trim(header, "+") + "-"; !changed && !strings.Contains(header, "-") {
		y.edits = append(y.edits, edit{at, at + len(header), text})
	}
}

// lineEnd returns the end of the line that has the position at.
func (y *yamlEditor) lineEnd(at int) int {
	if next := yamlBreak.FindIndex(y.content[at:]); next != nil {
		return at + next[0]
	}
	return len(y.content)
}

// blockEnd returns the end of the last line of a literal or folded scalar whose header is at.
// Blank lines are included if they may be part of it. Its header names its indent from that of its
// parent; otherwise its first line that is not blank has it.
func (y *yamlEditor) blockEnd(n *yaml.Node, at int) int {
	header := yamlHeader.Find(y.content[at:])
	keeps := bytes.ContainsAny(header, "+123456789")
	end := y.lineEnd(at)
	indent, first := width(y.content[y.lineStart(n):])+1, true // at least
	if digit := bytes.IndexAny(header, "123456789"); digit > 0 {
		before := y.content[y.lineStart(n):y.offset(n)]
		parent := len(yamlDashes.Find(before))
		if parent == len(before) { // of a list
			parent = max(0, bytes.LastIndexByte(before, '-'))
		}
		indent, first = parent+int(header[digit]-'0'), false
	}
	for i := n.Line; i < len(y.lines) && y.lines[i] < len(y.content); i++ {
		to := y.lineEnd(y.lines[i])
		text := y.content[y.lines[i]:to]
		blank := width(text) == len(text)
		if !blank && width(text) < indent {
			break
		}
		if !blank && first {
			indent, first = width(text), false
		}
		if !blank || keeps || len(text) > indent {
			end = to
		}
	}
	return end
}

func width(line []byte) int { return len(line) - len(bytes.TrimLeft(line, " ")) }
