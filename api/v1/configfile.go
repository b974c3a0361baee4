package v1

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

// ConfigFile is a configuration file in the volume, in which values are set before each
// start.
type ConfigFile struct {
	Path   string            `json:"path" api:"required"`             // in the volume
	Format string            `json:"format" api:"required"`           // properties, ini, yaml, json, xml or text
	Set    map[string]string `json:"set,omitempty"`                   // values by key; ${NAME} is an environment variable
	Edits  []ConfigEdit      `json:"edits,omitempty"`                 // made in their order, after Set
	Append *bool             `json:"append,omitempty" default:"true"` // of the format text: add a line for a key with which none begins
	Create *bool             `json:"create,omitempty" default:"true"` // create a missing file
}

// ConfigEdit sets a value, or those to which a key with * leads.
type ConfigEdit struct {
	Key   string `json:"key" api:"required"`
	Value string `json:"value" api:"required"` // ${NAME} is an environment variable
	If    string `json:"if,omitempty"`         // only if the value is this text, or matches the expression behind "regex:"
}

// ConditionExpression begins an If that is an RE2 expression. Each match of it is replaced by Value, in which
// $1 and ${1} are its groups.
const ConditionExpression = "regex:"

// Appends reports whether a line is added for a key with which none begins.
func (c ConfigFile) Appends() bool { return c.Append == nil || *c.Append }

// Creates reports whether the file is created if it is missing.
func (c ConfigFile) Creates() bool { return c.Create == nil || *c.Create }

// ConfigFormats returns the values of ConfigFile.Format.
func ConfigFormats() []string { return []string{"properties", "ini", "yaml", "json", "xml", "text"} }

// The limits of a configuration file once its variables are replaced. A short value may name
// a long variable many times, so its text is bounded while it is built.
const (
	MaxConfigFile  = 512 << 10 // bytes of a file, and of the keys and values that are set in it
	MaxConfigValue = 64 << 10  // bytes of one value
)

// variable matches ${NAME}, and $${NAME}, which is a literal ${NAME}.
var variable = regexp.MustCompile(`\$?\$\{([^{}]*)\}`)

// Expand replaces ${NAME} in a value by the environment variable once: what it inserts is not
// expanded again. Unknown names stay. It returns false for more than MaxConfigValue bytes.
func Expand(value string, env map[string]string) (expanded string, ok bool) {
	return expand(value, func(found string) string {
		if literal, is := strings.CutPrefix(found, "$$"); is {
			return "$" + literal
		}
		if known, is := env[variableName(found)]; is {
			return known
		}
		return found
	})
}

// ExpandTemplate is Expand for the replacement of the matches of an expression: what it inserts has no groups,
// and $${NAME} stays, which is a literal ${NAME} there.
func ExpandTemplate(value string, env map[string]string) (expanded string, ok bool) {
	return expand(value, func(found string) string {
		if known, is := env[variableName(found)]; is && !strings.HasPrefix(found, "$$") {
			return strings.ReplaceAll(known, "$", "$$")
		}
		return found
	})
}

func variableName(found string) string { return found[strings.IndexByte(found, '{')+1 : len(found)-1] }

// expand replaces what variable matches.
func expand(value string, replace func(found string) string) (expanded string, ok bool) {
	var out strings.Builder
	for len(value) > 0 && out.Len() <= MaxConfigValue {
		at := variable.FindStringIndex(value)
		if at == nil {
			out.WriteString(value)
			break
		}
		text := replace(value[at[0]:at[1]])
		if at[0]+len(text) > MaxConfigValue {
			return "", false
		}
		out.WriteString(value[:at[0]])
		out.WriteString(text)
		value = value[at[1]:]
	}
	return out.String(), out.Len() <= MaxConfigValue
}

// Expanded returns the value with its variables replaced.
func (e ConfigEdit) Expanded(env map[string]string) (value string, ok bool) {
	if strings.HasPrefix(e.If, ConditionExpression) {
		return ExpandTemplate(e.Value, env)
	}
	return Expand(e.Value, env)
}

// Expanded returns the file with the variables of its values replaced.
func (c ConfigFile) Expanded(env map[string]string) (ConfigFile, error) {
	size := 0
	one := func(e ConfigEdit) (string, error) {
		value, ok := e.Expanded(env)
		if !ok {
			return "", Errorf(InvalidRequest, "%s: must be at most %d bytes with its variables replaced", e.Key, MaxConfigValue)
		}
		if size += len(e.Key) + len(value) + len(e.If); size > MaxConfigFile {
			return "", Errorf(InvalidRequest, "the keys and values must be at most %d bytes with their variables replaced", MaxConfigFile)
		}
		return value, nil
	}
	set := make(map[string]string, len(c.Set))
	for _, key := range slices.Sorted(maps.Keys(c.Set)) {
		value, err := one(ConfigEdit{Key: key, Value: c.Set[key]})
		if err != nil {
			return c, err
		}
		set[key] = value
	}
	edits := slices.Clone(c.Edits)
	for i, e := range edits {
		value, err := one(e)
		if err != nil {
			return c, err
		}
		edits[i].Value = value
	}
	c.Set, c.Edits = set, edits
	return c, nil
}
