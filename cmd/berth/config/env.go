package config

import (
	"maps"
	"slices"
	"strings"

	v1 "berth/api/v1"
)

// EnvPrefix begins the name of each of berth's environment variables.
const EnvPrefix = "BERTH_"

// overlay sets the keys that the environment and the flags give.
func (l *Loader) overlay(c *v1.Config) v1.FieldErrors {
	faults := l.unknown(c)
	for key := range Keys(c) {
		source := envName(key.Name)
		text, ok := l.env[source]
		if given, isFlag := l.overrides[key.Name]; isFlag {
			text, ok, source = given, true, "--"+key.Name
		}
		if !ok {
			continue
		}
		if err := key.Set(text); err != nil {
			faults = append(faults, v1.FieldError{Key: key.Name, Message: err.Error() + " (from " + source + ")"})
		}
	}
	return faults
}

// envName returns the environment variable of a key: BERTH_SERVER_PORT for server.port.
func envName(key string) string {
	return EnvPrefix + strings.ToUpper(strings.ReplaceAll(key, ".", "_"))
}

// unknown returns an error for each environment variable that begins with the name
// of a section and is not a key: it is probably misspelt. Other variables that
// begin with BERTH_ are ignored.
func (l *Loader) unknown(c *v1.Config) v1.FieldErrors {
	known, sections := map[string]bool{}, map[string]bool{}
	for key := range Keys(c) {
		section, _, nested := strings.Cut(key.Name, ".")
		known[envName(key.Name)] = true
		if nested {
			sections[envName(section)+"_"] = true
		}
	}
	var faults v1.FieldErrors
	for _, name := range slices.Sorted(maps.Keys(l.env)) {
		begins := func(section string) bool { return strings.HasPrefix(name, section) }
		if !known[name] && slices.ContainsFunc(slices.Collect(maps.Keys(sections)), begins) {
			faults = append(faults, v1.FieldError{Message: name + " in the environment is not a key of the configuration"})
		}
	}
	return faults
}
