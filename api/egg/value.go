package egg

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"go.yaml.in/yaml/v4"
)

// The bounds of an egg. The largest that is known has 52 variables and 22 KiB.
const (
	MaxSize   = 1 << 20 // bytes
	maxValues = 20_000  // scalars, lists and maps; a value takes some 250 bytes while it is parsed
	maxDepth  = 32
)

var (
	errSize   = fmt.Errorf("the egg is larger than %d bytes", MaxSize)
	errValues = fmt.Errorf("the egg has more than %d values", maxValues)
	errDepth  = fmt.Errorf("the egg is nested more than %d levels deep", maxDepth)
	errMap    = errors.New("the egg must be a JSON or YAML map")
)

// kind is the type of a value.
type kind byte

const (
	null kind = iota
	text
	boolean
	number
	list
	mapping
)

// value is a value of JSON or YAML. A mapping keeps the order of its keys, which names the
// defaults of an egg.
type value struct {
	kind   kind
	text   string // of a scalar, as the file has it
	names  []string
	values []value // of a list, or beside names
}

// get returns the value with a name, or null.
func (v value) get(name string) value {
	if i := slices.Index(v.names, name); i >= 0 {
		return v.values[i]
	}
	return value{}
}

// set adds a value with a name to a mapping, or replaces that of the name.
func (v *value) set(name string, each value, at map[string]int) {
	if i, is := at[name]; is {
		v.values[i] = each
		return
	}
	at[name] = len(v.names)
	v.names, v.values = append(v.names, name), append(v.values, each)
}

// path returns the value below several names.
func (v value) path(names ...string) value {
	for _, name := range names {
		v = v.get(name)
	}
	return v
}

// nothing reports whether v is one of the forms of an absent value: PHP writes an empty map as
// a list, and Pelican's YAML an empty list as a map.
func (v value) nothing() bool {
	return v.kind == null || v.kind == text && strings.TrimSpace(v.text) == "" || (v.kind == list || v.kind == mapping) && len(v.values) == 0
}

// texts returns the scalars of a list, or v itself if it is a scalar.
func (v value) texts() []string {
	if v.nothing() && v.kind != text {
		return nil
	}
	if v.kind != list {
		return []string{v.text}
	}
	var all []string
	for _, each := range v.values {
		all = append(all, each.text)
	}
	return all
}

// parse parses an egg.
func parse(content []byte) (value, error) {
	if len(content) > MaxSize {
		return value{}, errSize
	}
	if !utf8.Valid(content) {
		return value{}, errors.New("the egg is not UTF-8: save it as UTF-8")
	}
	content = bytes.TrimSpace(bytes.TrimPrefix(content, []byte("\xEF\xBB\xBF")))
	var root value
	var err error
	if bytes.HasPrefix(content, []byte("{")) && isJSON(content) {
		root, err = parseJSON(content)
	} else {
		root, err = parseYAML(content)
	}
	if err == nil && root.kind != mapping {
		err = errMap
	}
	return root, err
}

// isJSON reports whether a text that begins with a brace is meant as JSON: the first name of a
// flow map of YAML need not be quoted.
func isJSON(content []byte) bool {
	rest := bytes.TrimLeft(content[1:], " \t\r\n")
	return len(rest) == 0 || rest[0] == '"' || rest[0] == '}'
}

// parseJSON parses one document of JSON. A name that repeats is an error, unless an option allows
// it: then the last one counts.
func parseJSON(content []byte, options ...jsontext.Options) (value, error) {
	d := jsontext.NewDecoder(bytes.NewReader(content), options...)
	p := jsonParser{d: d}
	v, err := p.value(0)
	if err == nil {
		if _, err = d.ReadToken(); err == nil {
			err = errors.New("there is more behind it")
		} else if errors.Is(err, io.EOF) {
			return v, nil
		}
	}
	if errors.Is(err, errValues) || errors.Is(err, errDepth) {
		return value{}, err
	}
	return value{}, fmt.Errorf("not valid JSON: %s", strings.TrimPrefix(err.Error(), "jsontext: "))
}

type jsonParser struct {
	d    *jsontext.Decoder
	seen int
}

func (p *jsonParser) value(depth int) (value, error) {
	if p.seen++; p.seen > maxValues {
		return value{}, errValues
	}
	if depth > maxDepth {
		return value{}, errDepth
	}
	token, err := p.d.ReadToken()
	if err != nil {
		return value{}, err
	}
	switch token.Kind() {
	case 'n':
		return value{}, nil
	case 't', 'f':
		return value{kind: boolean, text: token.String()}, nil
	case '0':
		return value{kind: number, text: token.String()}, nil
	case '"':
		return value{kind: text, text: token.String()}, nil
	case '[':
		return p.children(value{kind: list}, ']', depth)
	}
	return p.children(value{kind: mapping}, '}', depth)
}

// children reads the elements of v, up to its end.
func (p *jsonParser) children(v value, end jsontext.Kind, depth int) (value, error) {
	at := map[string]int{}
	for p.d.PeekKind() != end {
		name := ""
		if v.kind == mapping {
			token, err := p.d.ReadToken()
			if err != nil {
				return v, err
			}
			name = token.String()
		}
		each, err := p.value(depth + 1)
		switch {
		case err != nil:
			return v, err
		case v.kind == mapping:
			v.set(name, each, at)
		default:
			v.values = append(v.values, each)
		}
	}
	_, err := p.d.ReadToken()
	return v, err
}

// parseYAML parses one document of YAML. A name that repeats and an alias are errors: exporters
// write none, and a few aliases stand for billions of values.
func parseYAML(content []byte) (value, error) {
	nodes := 0
	for begin, weight := range map[string]int{"\n": 1, ": ": 1, "- ": 1, ",": 2, "[": 2, "{": 2, "?": 2} {
		nodes += bytes.Count(content, []byte(begin)) * weight
	}
	if nodes > 4*maxValues { // before the parser makes them; texts hold these characters too
		return value{}, errValues
	}
	var doc, more yaml.Node
	d := yaml.NewDecoder(bytes.NewReader(content))
	if err := d.Decode(&doc); errors.Is(err, io.EOF) {
		return value{}, errMap
	} else if err != nil {
		return value{}, yamlError(err)
	}
	if err := d.Decode(&more); err == nil {
		return value{}, errors.New("not an egg: the file has several YAML documents")
	} else if !errors.Is(err, io.EOF) {
		return value{}, yamlError(err)
	}
	seen := 0
	return fromYAML(doc.Content[0], &seen, 0)
}

func yamlError(err error) error {
	var wrong *yaml.LoadError
	if errors.As(err, &wrong) {
		return fmt.Errorf("not valid YAML: line %d: %s", wrong.Mark.Line, wrong.Message)
	}
	return fmt.Errorf("not valid YAML: %w", err)
}

func fromYAML(n *yaml.Node, seen *int, depth int) (v value, err error) {
	if *seen++; *seen > maxValues {
		return v, errValues
	}
	if depth > maxDepth {
		return v, errDepth
	}
	switch n.Kind {
	case yaml.ScalarNode:
		if v.kind = yamlKind(n); v.kind != null {
			v.text = n.Value
		}
		return v, nil
	case yaml.SequenceNode:
		v.kind = list
		for _, child := range n.Content {
			each, err := fromYAML(child, seen, depth+1)
			if err != nil {
				return v, err
			}
			v.values = append(v.values, each)
		}
		return v, nil
	case yaml.MappingNode:
		return yamlMapping(n, seen, depth)
	}
	return v, fmt.Errorf("line %d: an alias is not supported: write its value", n.Line)
}

func yamlMapping(n *yaml.Node, seen *int, depth int) (value, error) {
	v := value{kind: mapping}
	at := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		name := n.Content[i]
		if name.Kind != yaml.ScalarNode {
			return v, fmt.Errorf("line %d: a name must be a text", name.Line)
		}
		if _, again := at[name.Value]; again {
			return v, fmt.Errorf("line %d: %s is there twice", name.Line, quoted(name.Value))
		}
		each, err := fromYAML(n.Content[i+1], seen, depth+1)
		if err != nil {
			return v, err
		}
		v.set(name.Value, each, at)
	}
	return v, nil
}

// yamlKind returns the type of a scalar by YAML 1.2: yes, no, on and off are texts.
func yamlKind(n *yaml.Node) kind {
	switch n.ShortTag() {
	case "!!null":
		return null
	case "!!bool":
		return boolean
	case "!!int", "!!float":
		return number
	}
	return text
}
