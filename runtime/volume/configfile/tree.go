package configfile

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// maxNames bounds the names of a key: the lines that a new one needs have the square of its
// depth in spaces.
const maxNames = 32

// tree holds the values to set in a yaml or json file, by path. A node has either a
// value or children.
type tree struct {
	name     string // one element of the path
	path     string // the whole path, for errors
	value    *string
	children []*tree // those that are numbers first, in their order
	byName   map[string]*tree
}

// newTree returns the tree of all paths.
func newTree(set []entry) (*tree, error) {
	root := &tree{byName: map[string]*tree{}}
	for _, e := range set {
		t := root
		for _, s := range steps(e.key) {
			t = t.child(s.name)
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
	c := &tree{name: name, path: strings.TrimPrefix(t.path+"."+name, "."), byName: map[string]*tree{}}
	t.children, t.byName[name] = append(t.children, c), c
	return c
}

func (t *tree) find(name string) *tree {
	if t == nil {
		return nil
	}
	return t.byName[name]
}

// check sorts the children. It returns an error if a key is the beginning of another one.
func (t *tree) check() error {
	if t.value != nil && len(t.children) > 0 {
		return fmt.Errorf("%s: is a value in one key, and a mapping in another", t.path)
	}
	rank := func(t *tree) int {
		if n, err := strconv.Atoi(t.name); err == nil {
			return n
		}
		return math.MaxInt
	}
	slices.SortStableFunc(t.children, func(a, b *tree) int { return cmp.Compare(rank(a), rank(b)) })
	for _, c := range t.children {
		if err := c.check(); err != nil {
			return err
		}
	}
	return nil
}

// list reports whether a tree that does not exist yet is made as a list.
func (t *tree) list() (bool, error) {
	if len(t.children) == 0 || t.children[0].name != "0" {
		return false, nil
	}
	for i, c := range t.children {
		if c.name != strconv.Itoa(i) {
			return false, fmt.Errorf("%s: the elements of a new list are 0, 1, 2 and so on", c.path)
		}
	}
	return true, nil
}

// index returns the index that a tree names in a list of n elements. It may be n, for
// a new element.
func (t *tree) index(n int) (int, error) {
	i, err := strconv.Atoi(t.name)
	if err != nil || i < 0 || i > n || strconv.Itoa(i) != t.name {
		return 0, fmt.Errorf("%s: the list has %d elements", t.path, n)
	}
	return i, nil
}

// bare reports whether a value is written without quotes: it is a number, true, false or
// null of JSON.
func bare(value string) bool {
	if value == "" || value[0] == '"' || value[0] == '{' || value[0] == '[' || strings.TrimSpace(value) != value {
		return false
	}
	return json.Valid([]byte(value))
}

// quote returns a value as a string of JSON, which is one of yaml too: it escapes what
// yaml does not take as it is.
func quote(value string) string {
	var out, quoted strings.Builder
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	_ = e.Encode(value) // a string cannot fail
	for _, r := range strings.TrimSuffix(out.String(), "\n") {
		if control(r) {
			fmt.Fprintf(&quoted, `\u%04x`, r)
			continue
		}
		quoted.WriteRune(r)
	}
	return quoted.String()
}

// control reports whether yaml takes a character only as an escape.
func control(r rune) bool {
	return r < ' ' || r >= 0x7F && r < 0xA0 || r == 0x2028 || r == 0x2029 || r == 0xFEFF || r == 0xFFFE || r == 0xFFFF
}

// json returns a tree that does not exist yet.
func (t *tree) json() (string, error) {
	if t.value != nil && bare(*t.value) {
		return *t.value, nil
	}
	if t.value != nil {
		return quote(*t.value), nil
	}
	list, err := t.list()
	if err != nil {
		return "", err
	}
	var parts []string
	for _, c := range t.children {
		text, err := c.json()
		if err != nil {
			return "", err
		}
		if !list {
			text = quote(c.name) + ": " + text
		}
		parts = append(parts, text)
	}
	if list {
		return "[" + strings.Join(parts, ", ") + "]", nil
	}
	return "{" + strings.Join(parts, ", ") + "}", nil
}

func (t *tree) notScalar(place string) error {
	return fmt.Errorf("%s: is a mapping or a list, not a value (%s)", t.path, place)
}

func (t *tree) notContainer(place string) error {
	if t.path == "" {
		return fmt.Errorf("the file is a single value, not a mapping or a list (%s)", place)
	}
	return fmt.Errorf("%s: is a value, not a mapping or a list (%s)", t.path, place)
}
