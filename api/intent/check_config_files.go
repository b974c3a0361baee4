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

// checkConfigFiles checks config_files. Whether a file can be parsed, and has a place
// for a key, is known only when it is read.
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
		checkConfigSet(f, at+".set", c, spec.Env)
	}
}

func checkConfigSet(f *v1.FieldErrors, at string, c v1.ConfigFile, env map[string]string) {
	if len(c.Set) == 0 || len(c.Set) > maxConfigKeys {
		f.Add(at, "must have 1 to %d keys", maxConfigKeys)
		return
	}
	size := 0
	for _, key := range slices.Sorted(maps.Keys(c.Set)) {
		value, fits := v1.Expand(c.Set[key], env)
		switch {
		case key == "" || len(key) > maxConfigKey || strings.ContainsAny(key, "\x00\r\n"):
			f.Add(at, "must have keys of 1 to %d bytes without NUL and line breaks", maxConfigKey)
		case len(c.Set[key]) > v1.MaxConfigValue || strings.ContainsRune(c.Set[key], 0):
			f.Add(at+"."+key, "must be at most %d bytes without NUL", v1.MaxConfigValue)
		case !fits:
			f.Add(at+"."+key, "must be at most %d bytes with its variables replaced", v1.MaxConfigValue)
		case (c.Format == "ini" || c.Format == "text") && strings.ContainsAny(c.Set[key], "\r\n"):
			f.Add(at+"."+key, "must be one line")
		}
		size += len(key) + len(value)
	}
	if size > v1.MaxConfigFile {
		f.Add(at, "must be at most %d bytes with its variables replaced", v1.MaxConfigFile)
	}
}
