package intent

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	v1 "berth/api/v1"
)

// The limits of config_files.
const (
	maxConfigFiles = 100
	maxConfigKeys  = 500  // of one file
	maxConfigKey   = 1024 // bytes
)

// checkConfigFiles checks config_files. Whether a file can be parsed, and a key set
// in it, is known only when it is read.
func checkConfigFiles(f *v1.FieldErrors, spec *v1.ContainerSpec) {
	if len(spec.ConfigFiles) == 0 {
		spec.ConfigFiles = nil
	}
	if len(spec.ConfigFiles) > maxConfigFiles {
		f.Add("config_files", "must be at most %d", maxConfigFiles)
		return
	}
	seen := map[string]bool{}
	for i, c := range spec.ConfigFiles {
		at := fmt.Sprintf("config_files[%d]", i)
		file, err := v1.ParsePath(c.Path, v1.DotsInNames)
		switch clean := path.Clean(file); {
		case err != nil || clean == ".":
			f.Add(at+".path", "must be the path of a file in the volume, without .., such as config/server.properties")
		case seen[clean]:
			f.Add(at+".path", "is listed twice")
		default:
			seen[clean] = true
		}
		if !slices.Contains(v1.ConfigFormats(), c.Format) {
			f.Add(at+".format", "must be one of %s", strings.Join(v1.ConfigFormats(), ", "))
		}
		checkConfigSize(f, at, c, spec.Env)
	}
}

// checkConfigSize checks the keys and values of a file, and their number and size.
func checkConfigSize(f *v1.FieldErrors, at string, c v1.ConfigFile, env map[string]string) {
	if n := len(c.Set) + len(c.Edits); n == 0 && c.Format != "text" || n > maxConfigKeys {
		f.Add(at, "must have 1 to %d keys in set and edits", maxConfigKeys)
		return
	}
	size := 0
	for _, key := range slices.Sorted(maps.Keys(c.Set)) {
		size += checkConfigEdit(f, [2]string{at + ".set", at + ".set." + key}, c.Format, v1.ConfigEdit{Key: key, Value: c.Set[key]}, env)
	}
	for i, e := range c.Edits {
		field := fmt.Sprintf("%s.edits[%d]", at, i)
		size += checkConfigEdit(f, [2]string{field + ".key", field + ".value"}, c.Format, e, env)
		switch expr, is := strings.CutPrefix(e.If, v1.ConditionExpression); {
		case e.If != "" && c.Format == "text":
			f.Add(field+".if", "has no meaning for text: name the beginning of the line as key")
		case is:
			checkPattern(f, field+".if", expr)
		case len(e.If) > v1.MaxConfigValue:
			f.Add(field+".if", "must be at most %d bytes", v1.MaxConfigValue)
		}
	}
	if size > v1.MaxConfigFile {
		f.Add(at, "must have at most %d bytes of keys and values, with their variables replaced", v1.MaxConfigFile)
	}
}

// checkConfigEdit checks a key and its value, which are in the fields at, and returns their bytes.
func checkConfigEdit(f *v1.FieldErrors, at [2]string, format string, e v1.ConfigEdit, env map[string]string) (size int) {
	value, fits := e.Expanded(env)
	switch {
	case e.Key == "" && format != "text" || len(e.Key) > maxConfigKey || strings.ContainsAny(e.Key, "\x00\r\n"):
		f.Add(at[0], "must be a key of 1 to %d bytes without NUL and line breaks", maxConfigKey)
	case len(e.Value) > v1.MaxConfigValue || strings.ContainsRune(e.Value, 0):
		f.Add(at[1], "must be at most %d bytes without NUL", v1.MaxConfigValue)
	case !fits:
		f.Add(at[1], "must be at most %d bytes with its variables replaced", v1.MaxConfigValue)
	case format == "ini" && strings.ContainsAny(e.Value, "\r\n"):
		f.Add(at[1], "must be one line")
	}
	return len(e.Key) + len(value) + len(e.If)
}
