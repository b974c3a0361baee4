package egg

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
)

// The bounds of an expression. Repeats are expanded when it is compiled, so a short one may have
// millions of steps.
const (
	maxExpression = 500  // bytes, of a rule
	maxPattern    = 4096 // bytes, of all start patterns together
	maxSteps      = 10_000
)

var errSteps = fmt.Errorf("must be at most %d steps: repeat less in it", maxSteps)

// compile compiles an expression of RE2 unless it is large.
func compile(pattern string) (*regexp.Regexp, error) {
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil, err
	}
	if steps(tree) > maxSteps {
		return nil, errSteps
	}
	return regexp.Compile(pattern)
}

// steps estimates the steps of an expression from above, without expanding it.
func steps(e *syntax.Regexp) int {
	n := 1 + len(e.Rune)
	for _, part := range e.Sub {
		n += steps(part)
	}
	if e.Op == syntax.OpRepeat {
		n *= max(1, e.Min, e.Max)
	}
	return min(n, maxSteps+1)
}

// expression compiles an expression of PCRE with its delimiters, such as /^[a-z]+$/i, as far as
// RE2 can.
func expression(argument string) (*regexp.Regexp, error) {
	argument = strings.TrimSpace(argument)
	if len(argument) < 2 || len(argument) > maxExpression {
		return nil, fmt.Errorf("must be 2 to %d bytes", maxExpression)
	}
	begin, end := argument[0], argument[0]
	if i := strings.IndexByte("([{<", begin); i >= 0 {
		end = ")]}>"[i]
	}
	last := strings.LastIndexByte(argument, end)
	if last < 1 || strings.ContainsRune(`\ `, rune(begin)) || isAlnum(begin) {
		return nil, errors.New("has no delimiters")
	}
	flags := ""
	for _, flag := range argument[last+1:] {
		switch flag {
		case 'i', 'm', 's':
			flags += string(flag)
		case 'u', 'D': // RE2 is UTF-8, and its $ is the end of the text
		default:
			return nil, fmt.Errorf("has the flag %q, which RE2 lacks", flag)
		}
	}
	pattern := argument[1:last]
	if flags != "" {
		pattern = "(?" + flags + ")" + pattern
	}
	return compile(pattern)
}

func isAlnum(b byte) bool {
	return b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z'
}
