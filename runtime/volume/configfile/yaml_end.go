package configfile

import (
	"bytes"
	"errors"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

var errEnd = errors.New("the file has a value whose end is not found")

// end returns the position behind a node. The parser reports only where nodes begin.
func (y yamlText) end(n *yaml.Node) (int, error) {
	at := y.start(n)
	switch {
	case n.Kind == yaml.AliasNode:
		return y.word(at), nil
	case n.Kind == yaml.ScalarNode:
		return y.scalarEnd(n, at)
	case n.Style&yaml.FlowStyle == 0 && len(n.Content) > 0:
		return y.end(n.Content[len(n.Content)-1])
	}
	at++ // the bracket
	if len(n.Content) > 0 {
		end, err := y.end(n.Content[len(n.Content)-1])
		if err != nil {
			return 0, err
		}
		at = end
	}
	for at < len(y.content) {
		switch y.content[at] {
		case ' ', '\t', '\r', '\n', ',', ':':
			at++
		case '#':
			at += len(y.content[at:]) - len(bytes.TrimLeftFunc(y.content[at:], func(r rune) bool { return !strings.ContainsRune(breaks, r) }))
		case ']', '}':
			return at + 1, nil
		default:
			return 0, errEnd
		}
	}
	return 0, errEnd
}

// word returns the end of an alias.
func (y yamlText) word(at int) int {
	if n := bytes.IndexAny(y.content[at:], " \t\r\n,]}"); n >= 0 {
		return at + n
	}
	return len(y.content)
}

func (y yamlText) scalarEnd(n *yaml.Node, at int) (int, error) {
	switch {
	case n.Style&yaml.DoubleQuotedStyle != 0:
		for i := at + 1; i < len(y.content); i++ {
			switch y.content[i] {
			case '\\':
				i++
			case '"':
				return i + 1, nil
			}
		}
		return 0, errEnd
	case n.Style&yaml.SingleQuotedStyle != 0:
		for i := at + 1; i < len(y.content); i++ {
			if y.content[i] != '\'' {
				continue
			}
			if i+1 == len(y.content) || y.content[i+1] != '\'' {
				return i + 1, nil
			}
			i++
		}
		return 0, errEnd
	case n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		return y.blockEnd(at), nil
	}
	return y.plainEnd(n, at)
}

// plainEnd returns the end of a plain scalar. Its lines are folded: a space or a line
// break of the value is any space of the file.
func (y yamlText) plainEnd(n *yaml.Node, at int) (int, error) {
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

// lineOf returns the index of the line that has the position at.
func (y yamlText) lineOf(at int) int {
	i, exact := slices.BinarySearch(y.lines, at)
	if !exact {
		i--
	}
	return i
}

// blockEnd returns the end of the last line of a literal or folded scalar, blank lines
// included if the scalar keeps them. Its first line that is not blank has its indent.
func (y yamlText) blockEnd(at int) int {
	line := y.lineOf(at)
	_, end := y.line(line)
	header := y.content[at:end]
	keeps := bytes.IndexByte(header[:len(header)-len(bytes.TrimLeft(header, "|>+-0123456789"))], '+') >= 0
	start, _ := y.line(line)
	indent := width(y.content[start:end]) + 1 // at least
	for first := true; line+1 < len(y.lines); {
		line++
		from, to := y.line(line)
		if from == len(y.content) {
			break // behind the last line break is no line
		}
		text := y.content[from:to]
		blank := width(text) == len(text)
		if !blank && width(text) < indent {
			break
		}
		if !blank && first {
			indent, first = width(text), false
		}
		if !blank || keeps {
			end = to
		}
	}
	return end
}

// line returns where a line begins and ends, without its ending.
func (y yamlText) line(i int) (from, to int) {
	from, to = y.lines[i], len(y.content)
	if i+1 < len(y.lines) {
		to = y.lines[i+1]
	}
	return from, from + len(bytes.TrimRight(y.content[from:to], breaks))
}

func width(line []byte) int { return len(line) - len(bytes.TrimLeft(line, " ")) }
