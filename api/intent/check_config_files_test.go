package intent_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"berth/api/intent"
	v1 "berth/api/v1"
)

// configs returns one configuration file with one value.
func configs(path, format, key, value string) []v1.ConfigFile {
	return []v1.ConfigFile{{Path: path, Format: format, Set: map[string]string{key: value}}}
}

func TestErrorsOfConfigFiles(t *testing.T) {
	for field, change := range map[string]func(*v1.ContainerSpec){
		"config_files":         func(s *v1.ContainerSpec) { s.ConfigFiles = make([]v1.ConfigFile, 101) },
		"config_files[0].path": func(s *v1.ContainerSpec) { s.ConfigFiles = configs("../x", "text", "a", "b") },
		"config_files[1].path": func(s *v1.ContainerSpec) {
			s.ConfigFiles = append(configs("a/./b", "text", "a", "b"), configs("a/b", "text", "a", "b")...)
		},
		"config_files[0].format": func(s *v1.ContainerSpec) { s.ConfigFiles = configs("x", "toml", "a", "b") },
		"config_files[0].set":    func(s *v1.ContainerSpec) { s.ConfigFiles = configs("x", "json", "a\nb", "b") },
		"config_files[0].set.a":  func(s *v1.ContainerSpec) { s.ConfigFiles = configs("x", "ini", "a", "b\nc") },
		"config_files[0].set.b.big": func(s *v1.ContainerSpec) {
			s.ConfigFiles = configs("x", "json", "b.big", strings.Repeat("x", 64<<10+1))
		},
		"config_files[0].set.port": func(s *v1.ContainerSpec) { // a short value, and a variable
			s.Env = map[string]string{"LONG": strings.Repeat("x", 1000)}
			s.ConfigFiles = configs("x", "text", "port", strings.Repeat("${LONG}", 66))
		},
		"config_files[0].edits[1].if": func(s *v1.ContainerSpec) {
			s.ConfigFiles = []v1.ConfigFile{{Path: "x", Format: "yaml", Edits: []v1.ConfigEdit{{Key: "a.*", Value: "b", If: "regex:^a$"}, {Key: "a", If: "regex:("}}}}
		},
		"config_files[0].edits[0].if": func(s *v1.ContainerSpec) {
			s.ConfigFiles = []v1.ConfigFile{{Path: "x", Format: "text", Edits: []v1.ConfigEdit{{Key: "", Value: "b\nc", If: "x"}}}}
		},
		"config_files[0].edits[0].key": func(s *v1.ContainerSpec) {
			s.ConfigFiles = []v1.ConfigFile{{Path: "x", Format: "ini", Edits: []v1.ConfigEdit{{Value: "b"}}}}
		},
		"config_files[0].edits[0].value": func(s *v1.ContainerSpec) {
			s.ConfigFiles = []v1.ConfigFile{{Path: "x", Format: "ini", Edits: []v1.ConfigEdit{{Key: "a", Value: "b\nc"}}}}
		},
		"config_files[0]": func(s *v1.ContainerSpec) { s.ConfigFiles = []v1.ConfigFile{{Path: "x", Format: "json"}} },
		"config_files[1]": func(s *v1.ContainerSpec) { // many of those
			s.Env = map[string]string{"LONG": strings.Repeat("x", 60_000)}
			s.ConfigFiles = append(configs("x", "text", "a", "b"), configs("y", "json", "a", "${LONG}")...)
			for i := range 9 {
				s.ConfigFiles[1].Set[strings.Repeat("k", i+1)] = "${LONG}"
			}
		},
	} {
		spec := v1.ContainerSpec{Image: "busybox", VolumeID: "x"}
		change(&spec)
		var f v1.FieldErrors
		intent.CheckContainer(&f, intent.Policy{}, "mc", &spec)
		require.ErrorContains(t, f.Err(), field+": ")
		require.NotContains(t, f.Err().Error(), "; ", "one fault only")
	}
}
