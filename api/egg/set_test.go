package egg_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"berth/api/egg"
	v1 "berth/api/v1"
	"berth/hack/test/eggs"
)

// game is the request of the manifest.
func game(content []byte) v1.EggRequest {
	return v1.EggRequest{Egg: string(content), InternalID: "game", VolumeID: "00000000-0000-4000-8000-000000000000", Memory: 1 << 30,
		Ports: []v1.Port{{IP: "127.0.0.1", Port: 25565, Protocol: "tcp"}, {IP: "127.0.0.1", Port: 25565, Protocol: "udp"}}}
}

// builtins are the placeholders that the daemon expands, with their values for game.
var builtins = map[string]string{"BERTH_PORT": "25565", "BERTH_IP": "127.0.0.1", "BERTH_MEMORY": "1024"}

// finalEnv returns the environment as the daemon gives it to the container.
func finalEnv(spec v1.ContainerSpec) map[string]string {
	env := map[string]string{}
	for name, value := range spec.Env {
		env[name], _ = v1.Expand(value, builtins)
	}
	return env
}

// written returns the text that config_files writes for a value.
func written(spec v1.ContainerSpec, value string) string {
	env := finalEnv(spec)
	for name, value := range builtins {
		env[name] = value
	}
	env["BERTH_GATEWAY"] = "{{config.docker.interface}}"
	text, _ := v1.Expand(value, env)
	return text
}

func TestSetIsImported(t *testing.T) {
	wild, extra := eggs.Set(t)
	require.Len(t, wild, 361)
	require.Len(t, extra, 17)
	for _, e := range append(wild, extra...) {
		t.Run(e.File, func(t *testing.T) { check(t, e) })
	}
}

func check(t *testing.T, e eggs.Egg) {
	got, err := egg.Import(game(e.Content))
	if e.Expect.Refused {
		require.ErrorIs(t, err, &v1.Error{Code: v1.InvalidRequest})
		return
	}
	require.NoError(t, err)
	again, err := egg.Import(game(e.Content))
	require.NoError(t, err)
	require.Equal(t, got, again, "the same request gives the same answer")
	x, spec := e.Expect, got.Spec
	if x.Image != "" {
		require.Equal(t, x.Image, spec.Image)
	}
	if x.Images > 0 {
		require.Len(t, got.Images, x.Images)
	}
	if x.Startup != "" {
		require.Equal(t, upper(x.Startup, got.Variables), spec.Env["STARTUP"])
	}
	if x.Install.Image != "" {
		require.Equal(t, x.Install.Image, spec.InstallImage)
		require.Equal(t, x.Install.Entrypoint, spec.InstallEntrypoint)
		require.Equal(t, "/mnt/server", spec.InstallMount)
		require.Equal(t, []string{"988:988", "root"}, []string{spec.User, spec.InstallUser})
		require.NotContains(t, spec.Script(), "\r\n")
		require.True(t, strings.HasSuffix(spec.Script(), "\nexit 0\n"))
	}
	if x.StartPattern != nil {
		require.Equal(t, *x.StartPattern, spec.StartPattern)
	}
	env := finalEnv(spec)
	for name, value := range x.Env {
		require.Equal(t, value, env[name], name)
	}
	for _, name := range []string{"SERVER_MEMORY", "SERVER_IP", "SERVER_PORT", "P_SERVER_UUID", "STARTUP"} {
		require.Contains(t, env, name)
	}
	require.Equal(t, "1024", env["SERVER_MEMORY"])
	checkStop(t, e, spec.Stop)
	checkVariables(t, e, got)
	checkFiles(t, e, spec)
}

// upper names the variables of a startup command as the environment does.
func upper(startup string, variables []v1.EggVariable) string {
	for _, v := range variables {
		startup = regexp.MustCompile(`(?i)\{\{`+v.Name+`\}\}`).ReplaceAllString(startup, "{{"+v.Name+"}}")
	}
	return startup
}

func checkStop(t *testing.T, e eggs.Egg, stop v1.Stop) {
	switch want := e.Expect.Stop; want.Kind {
	case "command":
		require.Equal(t, want.Command, stop.Command)
	case "interrupt":
		require.Equal(t, "^C", stop.Command)
	case "signal":
		require.Equal(t, v1.Stop{Signal: want.Signal, Timeout: stop.Timeout}, stop)
	case "kill":
		require.Equal(t, "SIGKILL", stop.Signal)
	case "none":
		require.Equal(t, "SIGTERM", stop.Signal)
	case "unknown":
		require.Equal(t, "^X", stop.Command)
	}
}

// checkVariables compares the values that break their rules: those that the importer needs, and
// defaults.
func checkVariables(t *testing.T, e eggs.Egg, got v1.EggImport) {
	if e.Genre == "" {
		return
	}
	require.Len(t, got.Variables, len(e.Expect.Env))
	var needed []string
	r := game(e.Content)
	r.Variables = map[string]string{}
	for _, v := range got.Variables {
		if v.Error != "" {
			needed = append(needed, v.Name)
			require.Equal(t, "is required", v.Error)
			continue
		}
		r.Variables[v.Name] = v.Default // a default counts without a check, a value of the request does not
	}
	set, err := egg.Import(r)
	require.NoError(t, err)
	broken := map[string]string{}
	for _, v := range set.Variables {
		if v.Error != "" && !slices.Contains(needed, v.Name) {
			broken[v.Name] = v.Error
		}
	}
	require.ElementsMatch(t, e.Expect.NeedsValues, needed)
	if e.ID == "egg-008" {
		delete(broken, "BOT_OWNER") // a text for digits_between, which the manifest does not count
	}
	require.Len(t, broken, len(e.Expect.Breaks), "%v", broken)
	for name, rule := range e.Expect.Breaks {
		require.Contains(t, broken[name], "breaks the rule "+rule)
	}
	if !e.Has("placeholder_left_as_text") {
		require.NotContains(t, strings.Join(got.Notes, "\n"), "is not known")
	}
}

func checkFiles(t *testing.T, e eggs.Egg, spec v1.ContainerSpec) {
	if e.Expect.Files == nil {
		return
	}
	var want, got []string
	for _, f := range e.Expect.Files {
		for _, x := range f.Edits {
			value := ""
			if x.Value != nil {
				value = fmt.Sprint(x.Value)
			}
			key, value := berthKey(f.Parser, x.Key, strings.ReplaceAll(value, "{{config.docker.network.interface}}", "{{config.docker.interface}}"))
			want = append(want, fmt.Sprintf("%s %v %q if %q = %q", f.Path, f.Create == nil || *f.Create, key, x.If, value))
		}
	}
	for _, f := range spec.ConfigFiles {
		for _, x := range f.Edits {
			got = append(got, fmt.Sprintf("%s %v %q if %q = %q", f.Path, f.Creates(), x.Key, x.If, written(spec, x.Value)))
		}
		require.Equal(t, f.Format != "text", f.Appends())
	}
	require.Equal(t, want, got, "in their order")
}

// berthKey returns the key and the value that stand for those of an egg, by a simpler way that
// knows the keys of the set.
func berthKey(parser, key, value string) (string, string) {
	switch parser {
	case "ini":
		if section, name, is := strings.Cut(key, "]."); is && strings.HasPrefix(key, "[") {
			return strings.ReplaceAll(section[1:], ".", `\.`) + "." + strings.ReplaceAll(name, ".", `\.`), value
		}
		section, name, is := strings.Cut(key, ".")
		if !is {
			return "." + key, value
		}
		return section + "." + strings.ReplaceAll(strings.Trim(name, "[]"), ".", `\.`), value
	case "xml":
		key = "/" + strings.ReplaceAll(key, ".", "/")
		if m := regexp.MustCompile(`^\[(\w+)='(.*)'\]$`).FindStringSubmatch(value); m != nil {
			return key + "/@" + m[1], m[2]
		}
	case "json":
		key = strings.ReplaceAll(key, "~1", `\.`)
	}
	return key, value
}

func TestIsPure(t *testing.T) {
	wild, _ := eggs.Set(t)
	r := game(wild[0].Content)
	r.Variables = map[string]string{"version": "2"}
	before := slices.Clone(r.Ports)
	_, err := egg.Import(r)
	require.NoError(t, err)
	require.Equal(t, before, r.Ports)
	require.Equal(t, map[string]string{"version": "2"}, r.Variables)
}

// TestDeniedFiles: the files that an egg denies to customers are denied to limited tokens.
func TestDeniedFiles(t *testing.T) {
	text := strings.Replace(withVariables(""), `"startup":"x"`, `"startup":"x","file_denylist":["secret.key"," "]`, 1)
	made, err := egg.Import(v1.EggRequest{Egg: text})
	require.NoError(t, err)
	require.Equal(t, []string{"secret.key"}, made.Spec.DeniedFiles)
}

// TestNotesOfMistakes requires that what an author has mistyped is noted, as the panels say nothing of it.
func TestNotesOfMistakes(t *testing.T) {
	got, err := egg.Import(v1.EggRequest{InternalID: "mc", Egg: `{"meta": {"version": "PTDL_v2"}, "name": "x", "docker_images": {"a": "image:1"}, "start_up": "./game",
		"config": {"files": "{\"server.properties\": {\"parser\": \"properties\", \"find\": {\"max\": \"{{server.build.env.MAX_PLAYER}}\"}}}"},
		"variables": [{"name": "Most", "env_variable": "MAX_PLAYERS", "default_value": "lots", "rules": "integer|between:1,100"}]}`})
	require.NoError(t, err)
	require.Subset(t, got.Notes, []string{
		`startup: the egg has none: an image that expects STARTUP runs nothing`,
		`config.files: "server.properties": the server has no "{{server.build.env.MAX_PLAYER}}": it is empty, as for the panels`,
		`variable MAX_PLAYERS: its default "lots" breaks the rule integer`,
	})
	require.Empty(t, got.Variables[0].Error, "a default counts")
}
