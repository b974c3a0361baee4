package configfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// maxNames bounds the names of a key: the lines that a new one needs have the square of its
// depth in spaces.
const maxNames = 64

// tree holds the values to set in a yaml or json file, by path. A node has either a
// value or children.
type tree struct {
	name     string // one element of the path
	path     string // the whole path, for errors
	value    *string
	children []*tree
}

// newTree returns the tree of all paths.
func newTree(set []entry) (*tree, error) {
	root := &tree{}
	for _, e := range set {
		t := root
		names := splitPath(e.key)
		if len(names) > maxNames {
			return nil, fmt.Errorf("%s: must have at most %d names", e.key, maxNames)
		}
		for _, name := range names {
			t = t.child(name)
		}
		t.value = &e.value
	}
	return root, root.check()
}

// child returns the child with a name, which it adds if it is missing.
func (t *tree) child(name string) *tree {
	if c := t.find(name); c != nil {
		return c
	}
	c := &tree{name: name, path: strings.TrimPrefix(t.path+"."+name, ".")}
	t.children = append(t.children, c)
	return c
}

func (t *tree) find(name string) *tree {
	i := slices.IndexFunc(t.children, func(c *tree) bool { return c.name == name })
	if i < 0 {
		return nil
	}
	return t.children[i]
}

// check returns an error if a key is the beginning of another one.
func (t *tree) check() error {
	if t.value != nil && len(t.children) > 0 {
		return fmt.Errorf("%s: is a value in one key, and a mapping in another", t.path)
	}
	for _, c := range t.children {
		if err := c.check(); err != nil {
			return err
		}
	}
	return nil
}

// list reports whether a tree that does not exist yet is made as a list.
func (t *tree) list() bool { return len(t.children) > 0 && t.children[0].name == "0" }

// index returns the index that a tree names in a list of n elements. It may be n, for
// a new element.
func (t *tree) index(n int) (int, error) {
	i, err := strconv.Atoi(t.name)
	if err != nil || i < 0 || i > n || strconv.Itoa(i) != t.name {
		return 0, fmt.Errorf("%s: the list has %d elements", t.path, n)
	}
	return i, nil
}

// splitPath splits a path at the dots that are not written as "\.".
func splitPath(path string) (names []string) {
	var name strings.Builder
	for i := 0; i < len(path); i++ {
		switch {
		case path[i] == '\\' && i+1 < len(path) && path[i+1] == '.':
			name.WriteByte('.')
			i++
		case path[i] == '.':
			names = append(names, name.String())
			name.Reset()
		default:
			name.WriteByte(path[i])
		}
	}
	return append(names, name.String())
}

// scalar reports whether a value is written without quotes: it is a number, true,
// false or null of JSON.
func scalar(value string) bool {
	if value == "" || value[0] == '"' || value[0] == '{' || value[0] == '[' || strings.TrimSpace(value) != value {
		return false
	}
	return json.Valid([]byte(value))
}

// quote returns a value as a string of JSON, which is one of yaml too: it escapes what
// yaml does not take as it is.
func quote(value string) string {
	var out strings.Builder
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	_ = e.Encode(value) // a string cannot fail
	var quoted strings.Builder
	for _, r := range strings.TrimSuffix(out.String(), "\n") {
		if r >= 0x7F && r < 0xA0 || r == 0x2028 || r == 0x2029 || r == 0xFEFF || r == 0xFFFE || r == 0xFFFF {
			fmt.Fprintf(&quoted, `\u%04x`, r)
			continue
		}
		quoted.WriteRune(r)
	}
	return quoted.String()
}

// bareOrQuoted returns a new value in the style of JSON.
func bareOrQuoted(value string) string {
	if scalar(value) {
		return value
	}
	return quote(value)
}

// flow returns a tree that does not exist yet on one line, as JSON.
func (t *tree) flow() (string, error) {
	if t.value != nil {
		return bareOrQuoted(*t.value), nil
	}
	var parts []string
	for i, c := range t.children {
		text, err := c.flow()
		if err != nil {
			return "", err
		}
		if t.list() {
			if c.name != strconv.Itoa(i) {
				return "", fmt.Errorf("%s: the elements of a new list are 0, 1, 2 and so on", c.path)
			}
		} else {
			text = quote(c.name) + ": " + text
		}
		parts = append(parts, text)
	}
	if t.list() {
		return "[" + strings.Join(parts, ", ") + "]", nil
	}
	return "{" + strings.Join(parts, ", ") + "}", nil
}

var errNotScalar = errors.New("is a mapping or a list, not a value")

func notScalar(t *tree) error { return fmt.Errorf("%s: %w", t.path, errNotScalar) }

func notContainer(t *tree) error {
	if t.path == "" {
		return errors.New("the file is a single value, not a mapping or a list")
	}
	return fmt.Errorf("%s: is a value, not a mapping or a list", t.path)
}
