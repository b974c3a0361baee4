package configfile

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
)

// The bounds of conditions and of keys that lead to many values: nothing ends the work of one file.
const (
	maxFound        = 10_000      // values to which the keys of a file lead
	maxConditionOld = 16 << 10    // bytes of a value that is compared with an expression
	maxMatches      = 1000        // of an expression in a value
	maxProgram      = 10_000      // instructions of an expression
	maxMatchWork    = 200_000_000 // bytes that are compared, by the instructions of their expressions
)

// regexCondition begins a condition that is an expression of RE2.
const regexCondition = "regex:"

var (
	errFound = fmt.Errorf("the keys lead to more than %d values", maxFound)
	errWork  = errors.New("the conditions take too long: use shorter expressions")
)

// found is a value to which a key leads.
type found struct {
	key    string // that leads to it alone
	old    string // as text, without quotes
	exists bool
	isBool bool // of yaml and json: true or false
}

// finder returns the values to which a key leads in a file. A key without one leads to itself, unless it has
// a star.
type finder func(key string) ([]found, error)

// resolve returns the values of edits by keys that lead to one value each, those whose condition does not hold
// left out. An edit sees what the edits before it set.
func resolve(edits []Edit, find finder) ([]entry, error) {
	r := resolver{place: map[string]int{}, left: maxMatchWork}
	for _, e := range edits {
		list, err := find(e.Key)
		if err != nil {
			return nil, err // it names the key
		}
		if r.found += len(list); r.found > maxFound {
			return nil, errFound
		}
		replace, err := r.condition(e)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", e.Key, err)
		}
		for _, f := range list {
			if err := r.add(f, replace); err != nil {
				return nil, fmt.Errorf("%s: %w", f.key, err)
			}
		}
	}
	return r.list, nil
}

// resolver collects entries.
type resolver struct {
	list  []entry
	place map[string]int // in list, by key
	found int
	bytes int // of the values of list
	left  int // of maxMatchWork
}

// replacement returns the new value; holds is false if the condition does not hold.
type replacement func(f found) (value string, holds bool, err error)

func (r *resolver) add(f found, replace replacement) error {
	i, again := r.place[f.key]
	if again {
		f.old, f.exists = r.list[i].value, true
	}
	value, holds, err := replace(f)
	switch {
	case err != nil || !holds:
		return err
	case f.isBool:
		if b, err := strconv.ParseBool(value); err == nil {
			value = strconv.FormatBool(b) // 1 is true, where a game has that
		}
	}
	if again {
		r.bytes -= len(r.list[i].value)
	}
	if r.bytes += len(value); r.bytes > 2*MaxSize { // the file is to have all of them; in UTF-16 it may be shorter
		return errSize
	}
	if again {
		r.list[i].value = value
		return nil
	}
	r.place[f.key] = len(r.list)
	r.list = append(r.list, entry{f.key, value})
	return nil
}

// condition returns what an edit does with an old value.
func (r *resolver) condition(e Edit) (replacement, error) {
	expr, isRegex := strings.CutPrefix(e.If, regexCondition)
	switch {
	case e.If == "":
		return func(found) (string, bool, error) { return e.Value, true, nil }, nil
	case !isRegex:
		return func(f found) (string, bool, error) { return e.Value, f.exists && f.old == e.If, nil }, nil
	}
	re, size, err := compile(expr)
	if err != nil {
		return nil, err
	}
	return func(f found) (string, bool, error) {
		if !f.exists {
			return "", false, nil
		}
		if r.left -= (len(f.old) + 1) * size; r.left < 0 {
			return "", false, errWork
		}
		return replaceMatches(re, f.old, e.Value)
	}, nil
}

// compile returns an expression and how many instructions it has.
func compile(expr string) (re *regexp.Regexp, size int, err error) {
	parsed, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return nil, 0, fmt.Errorf("the condition is no RE2 expression: %s", strings.TrimPrefix(err.Error(), "error parsing regexp: "))
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return nil, 0, err
	}
	if size = len(program.Inst); size > maxProgram {
		return nil, 0, errors.New("the expression of the condition is too large")
	}
	re, err = regexp.Compile(expr)
	return re, size, err
}

// replaceMatches replaces each match in a value; $1 and ${1} in text are the groups of the match.
func replaceMatches(re *regexp.Regexp, old, text string) (value string, holds bool, err error) {
	if len(old) > maxConditionOld {
		return "", false, fmt.Errorf("the value is longer than %d bytes, too long for an expression", maxConditionOld)
	}
	matches := re.FindAllStringSubmatchIndex(old, maxMatches+1)
	if len(matches) > maxMatches {
		return "", false, fmt.Errorf("the expression matches more than %d times", maxMatches)
	}
	var out []byte
	at := 0
	for _, m := range matches {
		out = append(out, old[at:m[0]]...)
		if out = re.ExpandString(out, text, old, m); len(out) > MaxSize {
			return "", false, errSize
		}
		at = m[1]
	}
	return string(append(out, old[at:]...)), len(matches) > 0, nil
}

// finderOf returns a finder in a file whose values are those of a map.
func finderOf(lookup func(key string) (old string, exists bool)) finder {
	return func(key string) ([]found, error) {
		old, exists := lookup(key)
		return []found{{key: key, old: old, exists: exists}}, nil
	}
}

// The values of yaml and json in a tree: a map[string]any, a []any, a text, or
type alias struct{ of any } // of yaml, which is not entered

// step is one name of a key.
type step struct {
	name string
	star bool
}

// steps splits a key of yaml or json at the dots; list[0] is list.0. A backslash makes a dot, a star and a
// bracket a part of a name.
func steps(key string) (all []step) {
	for _, part := range splitEscaped(key) {
		var indexes []string
		for m := indexed.FindStringSubmatch(part); m != nil; m = indexed.FindStringSubmatch(part) {
			part, indexes = m[1], append(indexes, m[2])
		}
		if part != "" || len(indexes) == 0 {
			all = append(all, step{unescape.Replace(part), part == "*"})
		}
		for _, i := range slices.Backward(indexes) {
			all = append(all, step{name: i})
		}
	}
	return all
}

var (
	indexed  = regexp.MustCompile(`^(.*[^\\]|)\[([0-9]{1,6})\]$`)
	unescape = strings.NewReplacer(`\.`, ".", `\*`, "*", `\[`, "[")
	escape   = strings.NewReplacer(".", `\.`, "*", `\*`, "[", `\[`)
)

// splitEscaped splits a key at the dots that are not written as "\.".
func splitEscaped(key string) (parts []string) {
	start := 0
	for i := range len(key) {
		if key[i] == '.' && (i == 0 || key[i-1] != '\\') {
			parts = append(parts, key[start:i])
			start = i + 1
		}
	}
	return append(parts, key[start:])
}

// treeFinder returns a finder in a document of yaml or json.
func treeFinder(root any) finder {
	return func(key string) (list []found, err error) {
		w := &walk{all: steps(key)}
		if len(w.all) > maxNames {
			return nil, fmt.Errorf("%s: must have at most %d names", key, maxNames)
		}
		err = w.into(root, 0, "", false)
		return w.list, err
	}
}

// walk finds the values of one key.
type walk struct {
	all  []step
	list []found
}

// into finds those below the value v, to which the steps before n led: the path. star reports whether one of
// them is a star.
func (w *walk) into(v any, n int, path string, star bool) error {
	if n == len(w.all) {
		old, isText := textOf(v)
		_, isBool := v.(bool)
		w.list = append(w.list, found{strings.TrimPrefix(path, "."), old, isText, isBool})
		return w.check()
	}
	s := w.all[n]
	if !s.star {
		if child, exists := childOf(v, s.name); exists {
			return w.into(child, n+1, path+"."+escape.Replace(s.name), star)
		}
		_, isText := textOf(v)
		if star && isText || slices.ContainsFunc(w.all[n:], func(s step) bool { return s.star }) {
			return nil
		}
		for _, s := range w.all[n:] {
			path += "." + escape.Replace(s.name)
		}
		w.list = append(w.list, found{key: strings.TrimPrefix(path, ".")})
		return w.check()
	}
	switch v := v.(type) {
	case map[string]any:
		names := make([]string, 0, len(v))
		for name := range v {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range names {
			if err := w.into(v[name], n+1, path+"."+escape.Replace(name), true); err != nil {
				return err
			}
		}
	case []any:
		for i, child := range v {
			if err := w.into(child, n+1, fmt.Sprint(path, ".", i), true); err != nil {
				return err
			}
		}
	case alias:
		if _, isText := textOf(v); isText {
			return nil
		}
		return fmt.Errorf("%s: is an alias, and a value in it would change elsewhere too", strings.TrimPrefix(path, "."))
	}
	return nil
}

func (w *walk) check() error {
	if len(w.list) > maxFound {
		return errFound
	}
	return nil
}

// childOf returns the child with a name of a map or a list.
func childOf(v any, name string) (child any, exists bool) {
	switch v := v.(type) {
	case map[string]any:
		child, exists = v[name]
	case []any:
		t := tree{name: name}
		if i, err := t.index(len(v)); err == nil && i < len(v) {
			return v[i], true
		}
	}
	return child, exists
}

// textOf returns a scalar as text.
func textOf(v any) (text string, isText bool) {
	if a, is := v.(alias); is {
		v = a.of
	}
	switch v := v.(type) {
	case string:
		return v, true
	case fmt.Stringer: // a number of JSON
		return v.String(), true
	case bool:
		return fmt.Sprint(v), true
	case nil:
		return "null", true
	}
	return "", false
}
