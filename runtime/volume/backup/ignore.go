package backup

import (
	"io/fs"
	"path"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/bmatcuk/doublestar/v4"

	v1 "berth/api/v1"
)

// rule is one pattern of Options.Ignore.
type rule struct {
	glob   string
	keep   bool // the pattern began with an exclamation mark
	folder bool // it ended with a slash: it matches folders only
	base   bool // it has no other slash: it matches names in every folder
}

// Rules are parsed patterns, as .gitignore has them.
type Rules []rule

// ParseRules parses patterns. As with git, one that is not valid selects nothing.
func ParseRules(patterns []string) (rules Rules) {
	for _, p := range patterns {
		if r, ok := parseRule(p); ok {
			rules = append(rules, r)
		}
	}
	return rules
}

// parseRule parses a line. ok is false for a comment, an empty line and a pattern that
// is not valid.
func parseRule(line string) (r rule, ok bool) {
	if strings.HasPrefix(line, "#") {
		return r, false
	}
	p := trimSpaces(strings.TrimSuffix(line, "\r"))
	p, r.keep = strings.CutPrefix(p, "!")
	p, r.folder = strings.CutSuffix(p, "/")
	if p == "" {
		return r, false
	}
	r.base = !strings.Contains(p, "/")
	r.glob = glob(strings.TrimPrefix(p, "/"))
	return r, doublestar.ValidatePattern(r.glob)
}

// glob converts a pattern of git to one of the library.
func glob(p string) string {
	parts := strings.Split(p, "/")
	for i, part := range parts {
		if len(part) > 1 && strings.Trim(part, "*") == "" {
			parts[i] = "**"
		} else {
			parts[i] = component(part)
		}
	}
	if last := len(parts) - 1; last > 0 && parts[last] == "**" {
		parts = append(parts, "*") // everything in the folder, but not the folder
	}
	return strings.Join(parts, "/")
}

// component converts a part without slashes: several asterisks are one, and braces have
// no meaning.
func component(part string) string {
	var b strings.Builder
	for i := 0; i < len(part); i++ {
		switch c := part[i]; c {
		case '\\':
			b.WriteByte(c)
			if i++; i < len(part) {
				b.WriteByte(part[i])
			}
		case '{', '}':
			b.WriteString("\\" + string(c))
		case '*':
			if i+1 == len(part) || part[i+1] != '*' {
				b.WriteByte(c)
			}
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// trimSpaces removes the spaces at the end, except one after a backslash.
func trimSpaces(p string) string {
	trimmed := strings.TrimRight(p, " ")
	if escapes := len(trimmed) - len(strings.TrimRight(trimmed, `\`)); escapes%2 == 1 && len(trimmed) < len(p) {
		return trimmed + " "
	}
	return trimmed
}

// Match reports whether the rules select the entry at p, of this mode, and everything in it
// if it is a folder.
func (rules Rules) Match(p string, mode fs.FileMode) bool {
	for _, r := range slices.Backward(rules) {
		name := p
		if r.folder && !mode.IsDir() {
			continue
		}
		if r.base {
			name = path.Base(p)
		}
		if doublestar.MatchUnvalidated(r.glob, name) {
			return !r.keep
		}
	}
	return false
}

// Matcher compares names with the patterns of ignore, in bounded time.
type Matcher struct {
	Rules Rules
	Most  time.Duration // of a core; 0: no bound

	spent time.Duration
}

// Match reports whether the patterns select an entry, see Rules.Match, or the error of the bound. Patterns with many
// asterisks may take milliseconds for each long path.
func (m *Matcher) Match(p string, mode fs.FileMode) (bool, error) {
	if len(m.Rules) == 0 {
		return false, nil
	}
	runtime.LockOSThread() // whose time is measured
	defer runtime.UnlockOSThread()
	began := threadTime()
	selected := m.Rules.Match(p, mode)
	m.spent += threadTime() - began
	if m.Most > 0 && m.spent > m.Most {
		return false, v1.Errorf(v1.SizeLimit, "The patterns of ignore take too long for so many files: more than %s", m.Most)
	}
	return selected, nil
}
