package egg

import (
	"encoding/csv"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxRules bounds the rules of a variable.
const maxRules = 50

// variable is a variable of an egg.
type variable struct {
	written                      string // its name as the file has it; the environment has it in upper case
	title, description, fallback string
	viewable, editable           bool
	rules                        []rule
}

// rule is one of the conditions of a variable's value, such as max:20.
type rule struct{ name, argument string }

func (r rule) String() string {
	if r.argument == "" {
		return r.name
	}
	return r.name + ":" + r.argument
}

var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// readVariables reads the variables. Of several with one name the last counts, as in an
// environment.
func (e *egg) readVariables(root value) error {
	all := root.get("variables")
	if all.nothing() {
		return nil
	}
	if all.kind != list {
		return fmt.Errorf("variables: must be a list")
	}
	if len(all.values) > maxVariables {
		return fmt.Errorf("variables: must be at most %d", maxVariables)
	}
	at := map[string]int{}
	for _, v := range all.values {
		read := variable{written: strings.TrimSpace(v.get("env_variable").text), title: v.get("name").text,
			description: v.get("description").text,
			fallback:    v.get("default_value").text, viewable: truth(v.get("user_viewable")), editable: truth(v.get("user_editable")),
			rules: rulesOf(v.get("rules"))}
		if !envName.MatchString(read.written) {
			e.nameless = append(e.nameless, read.written)
			continue
		}
		if len(read.rules) > maxRules {
			return fmt.Errorf("variables: %s: rules: must be at most %d", read.name(), maxRules)
		}
		if i, again := at[read.name()]; again {
			e.reused, e.variables[i] = append(e.reused, read.name()), read
			continue
		}
		at[read.name()] = len(e.variables)
		e.variables = append(e.variables, read)
	}
	return nil
}

// name returns the name in the environment.
func (v variable) name() string { return strings.ToUpper(v.written) }

// truth reports whether a flag is set; one that is absent is.
func truth(v value) bool { return v.kind == null || v.text != "false" && v.text != "0" && v.text != "" }

// rulesOf returns the rules of a text or a list. A text is cut at each |, also within an
// expression, as the panels do.
func rulesOf(v value) (rules []rule) {
	parts := v.texts()
	if v.kind == text {
		parts = strings.Split(v.text, "|")
	}
	for _, part := range parts {
		name, argument, _ := strings.Cut(part, ":")
		if name = strings.ToLower(strings.TrimSpace(name)); name != "" {
			rules = append(rules, rule{name, argument})
		}
	}
	return rules
}

// has reports whether one of several rules is among those of v.
func (v variable) has(names ...string) bool {
	return slices.ContainsFunc(v.rules, func(r rule) bool { return slices.Contains(names, r.name) })
}

// check returns the first rule that a value breaks. An empty value breaks none but required.
func (v variable) check(value string) (broken rule, ok bool) {
	if value == "" {
		return rule{name: "required"}, !v.has("required")
	}
	known := tests()
	for _, r := range v.rules {
		if test := known[r.name]; test != nil && !test(v, r.argument, value) {
			return r, false
		}
	}
	return rule{}, true
}

// unchecked returns the rules that check does not know, or cannot apply.
func (v variable) unchecked() (rules []rule) {
	known := tests()
	for _, r := range v.rules {
		switch {
		case r.name == "regex" || r.name == "not_regex":
			if _, err := expression(r.argument); err != nil {
				rules = append(rules, r)
			}
		case known[r.name] == nil && !slices.Contains([]string{"required", "nullable", "string", "sometimes", "present", "filled",
			"bail"}, r.name):
			rules = append(rules, r)
		}
	}
	return rules
}

// test reports whether a value that is not empty agrees with a rule of a variable.
type test func(v variable, argument, value string) bool

var (
	numeric = regexp.MustCompile(`^\s*[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?\s*$`)
	integer = regexp.MustCompile(`^[+-]?(0|[1-9][0-9]*)$`)
)

func tests() map[string]test {
	match := func(pattern string) test {
		return func(_ variable, _, value string) bool { return regexp.MustCompile(pattern).MatchString(value) }
	}
	oneOf := func(_ variable, argument, value string) bool { return slices.Contains(fields(argument), value) }
	some := func(has func(s, part string) bool) test {
		return func(_ variable, argument, value string) bool {
			return slices.ContainsFunc(fields(argument), func(part string) bool { return has(value, part) })
		}
	}
	size := func(agrees func(size, bound float64) bool) test {
		return func(v variable, argument, value string) bool {
			bound, err := strconv.ParseFloat(strings.TrimSpace(argument), 64)
			return err != nil || agrees(v.size(value), bound)
		}
	}
	whole := func(_ variable, _, value string) bool { return integer.MatchString(value) }
	return map[string]test{
		"boolean": func(_ variable, _, value string) bool {
			return slices.Contains([]string{"0", "1", "true", "false"}, value)
		},
		"numeric":        func(_ variable, _, value string) bool { return numeric.MatchString(value) },
		"integer":        whole,
		"int":            whole,
		"alpha":          match(`^[\pL\pM]+$`),
		"alpha_num":      match(`^[\pL\pM\pN]+$`),
		"alpha_dash":     match(`^[\pL\pM\pN_-]+$`),
		"in":             oneOf,
		"not_in":         func(v variable, argument, value string) bool { return !oneOf(v, argument, value) },
		"starts_with":    some(strings.HasPrefix),
		"ends_with":      some(strings.HasSuffix),
		"max":            size(func(size, bound float64) bool { return size <= bound }),
		"min":            size(func(size, bound float64) bool { return size >= bound }),
		"size":           size(func(size, bound float64) bool { return size == bound }),
		"gt":             size(func(size, bound float64) bool { return size > bound }),
		"gte":            size(func(size, bound float64) bool { return size >= bound }),
		"lt":             size(func(size, bound float64) bool { return size < bound }),
		"lte":            size(func(size, bound float64) bool { return size <= bound }),
		"between":        func(v variable, argument, value string) bool { return inRange(argument, v.size(value)) },
		"digits":         func(_ variable, argument, value string) bool { return digits(argument+","+argument, value) },
		"digits_between": func(_ variable, argument, value string) bool { return digits(argument, value) },
		"url":            func(_ variable, _, value string) bool { return isURL(value) },
		"regex":          func(_ variable, argument, value string) bool { return matches(argument, value, true) },
		"not_regex":      func(_ variable, argument, value string) bool { return !matches(argument, value, false) },
	}
}

// size returns what max, min, between and size compare: the number, or of a text its characters.
func (v variable) size(value string) float64 {
	if v.has("numeric", "integer", "int") {
		if n, err := strconv.ParseFloat(strings.TrimSpace(value), 64); err == nil {
			return n
		}
	}
	return float64(utf8.RuneCountInString(value))
}

// fields divides the argument of a rule at its commas, except those in quotes.
func fields(argument string) []string {
	r := csv.NewReader(strings.NewReader(argument))
	r.LazyQuotes = true
	list, err := r.Read()
	if err != nil {
		return strings.Split(argument, ",")
	}
	return list
}

// inRange reports whether n is between the two numbers of an argument; a wrong one has no bounds.
func inRange(argument string, n float64) bool {
	low, high, _ := strings.Cut(argument, ",")
	least, err1 := strconv.ParseFloat(strings.TrimSpace(low), 64)
	most, err2 := strconv.ParseFloat(strings.TrimSpace(high), 64)
	return err1 != nil || err2 != nil || n >= least && n <= most
}

func digits(argument, value string) bool {
	return strings.Trim(value, "0123456789") == "" && inRange(argument, float64(len(value)))
}

func isURL(value string) bool {
	u, err := url.Parse(value)
	return err == nil && u.Scheme != "" && u.Host != ""
}

// matches reports whether an expression matches; unknown is the answer for one that berth cannot use.
func matches(argument, value string, unknown bool) bool {
	expr, err := expression(argument)
	if err != nil {
		return unknown
	}
	return expr.MatchString(value)
}
