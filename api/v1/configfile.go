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
	Path   string            `json:"path" api:"required"`   // in the volume
	Format string            `json:"format" api:"required"` // properties, ini, yaml, json, xml or text
	Set    map[string]string `json:"set" api:"required"`    // values by key; ${NAME} is an environment variable
}

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
	var out strings.Builder
	for len(value) > 0 && out.Len() <= MaxConfigValue {
		at := variable.FindStringIndex(value)
		if at == nil {
			out.WriteString(value)
			break
		}
		found := value[at[0]:at[1]]
		text := found
		if literal, is := strings.CutPrefix(found, "$$"); is {
			text = "$" + literal
		} else if known, is := env[found[2:len(found)-1]]; is {
			text = known
		}
		if at[0]+len(text) > MaxConfigValue {
			return "", false
		}
		out.WriteString(value[:at[0]])
		out.WriteString(text)
		value = value[at[1]:]
	}
	return out.String(), out.Len() <= MaxConfigValue
}

// Expanded returns the file with the variables of its values replaced.
func (c ConfigFile) Expanded(env map[string]string) (ConfigFile, error) {
	set := make(map[string]string, len(c.Set))
	size := 0
	for _, key := range slices.Sorted(maps.Keys(c.Set)) {
		value, ok := Expand(c.Set[key], env)
		if !ok {
			return c, Errorf(InvalidRequest, "%s: must be at most %d bytes with its variables replaced", key, MaxConfigValue)
		}
		if size += len(key) + len(value); size > MaxConfigFile {
			return c, Errorf(InvalidRequest, "the keys and values must be at most %d bytes with their variables replaced", MaxConfigFile)
		}
		set[key] = value
	}
	c.Set = set
	return c, nil
}
