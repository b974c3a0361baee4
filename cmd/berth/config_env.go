package main

import (
	"maps"
	"slices"
	"strings"

	v1 "berth/api/v1"
)

// overlay sets what the environment and the flags say.
func (l *loader) overlay(c *v1.Config) v1.FieldErrors {
	faults := l.unknown(c)
	for key := range leaves(c) {
		name := envName(key.key)
		text, ok := l.env[name]
		if given, isFlag := l.flags[key.key]; isFlag {
			text, ok, name = given, true, "--"+key.key
		}
		if !ok {
			continue
		}
		if err := key.set(text); err != nil {
			faults = append(faults, v1.FieldError{Key: key.key, Message: err.Error() + " (from " + name + ")"})
		}
	}
	return faults
}

// envName is BERTH_SERVER_PORT for server.port.
func envName(key string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(key, ".", "_"))
}

// unknown are variables that begin with a section's name and are no key: a
// misspelt one must not be lost without a word. Other BERTH_ names belong to
// whoever set them.
func (l *loader) unknown(c *v1.Config) v1.FieldErrors {
	known, sections := map[string]bool{}, map[string]bool{}
	for key := range leaves(c) {
		section, _, _ := strings.Cut(key.key, ".")
		known[envName(key.key)], sections[envName(section)+"_"] = true, true
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
