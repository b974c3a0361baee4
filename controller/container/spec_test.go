package container

import (
	"cmp"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/hack/test/fieldtest"
	"berth/runtime"
)

func TestCommand(t *testing.T) {
	shell := func(line string) []string { return []string{"/bin/sh", "-c", line} }
	compound := func(line string) []string { return shell("trap 'exit $?' HUP INT QUIT TERM USR1 USR2\n" + line) }
	for line, want := range map[string][]string{
		"":                              nil,
		" \t":                           nil,
		"java -jar 'my server.jar' a=b": {"java", "-jar", "my server.jar", "a=b"},
		`say "hello world"`:             {"say", "hello world"},
		"echo $HOME":                    compound("echo $HOME"),
		"a && b":                        compound("a && b"),
		"ls *.jar":                      shell("exec ls *.jar"),
		"echo 'no end":                  compound("echo 'no end"),
		"java -Xmx$MEM -jar x.jar":      shell("exec java -Xmx$MEM -jar x.jar"),
		"exec java -jar x.jar":          shell("exec java -jar x.jar"),
		"LANG=C java -jar x.jar":        compound("LANG=C java -jar x.jar"),
		"a\nb":                          compound("a\nb"),
		"a\r\nb\r\n":                    compound("a\nb"),
		"java -jar x.jar\r\n":           {"java", "-jar", "x.jar"},
		"java -jar x.jar\r":             {"java", "-jar", "x.jar"},
		"~/run.sh a":                    shell("exec ~/run.sh a"),
		"java -jar x.jar # the game":    shell("exec java -jar x.jar # the game"),
		"java a#b":                      {"java", "a#b"},
	} {
		require.Equal(t, want, command(line), line)
	}
}

func TestStopOf(t *testing.T) {
	for command, want := range map[string][2]string{ // with a terminal
		"stop":     {"stop", "SIGQUIT"},
		"^C":       {"\x03", "SIGINT"},
		"^c":       {"\x03", "SIGINT"},
		"^^C":      {"\x03", "SIGINT"},
		"^D":       {"\x04", "SIGQUIT"},
		"^SIGTERM": {"", "SIGTERM"},
		"^sigkill": {"", "SIGKILL"},
		"^CSTOP":   {"^CSTOP", "SIGQUIT"},
		"^":        {"^", "SIGQUIT"},
		"":         {"", "SIGQUIT"},
	} {
		input, signal := stopOf(v1.ContainerSpec{Stop: v1.Stop{Command: command}}, runtime.State{TTY: true, StopSignal: "SIGQUIT"})
		require.Equal(t, want, [2]string{input, signal}, command)
	}
	for _, command := range []string{"^C", "^^C"} {
		input, signal := stopOf(v1.ContainerSpec{Stop: v1.Stop{Command: command}}, runtime.State{})
		require.Equal(t, "SIGINT", input+signal, command)
	}
}

func TestInstallScriptCarriageReturns(t *testing.T) {
	spec := installerSpec(v1.Container{Spec: v1.ContainerSpec{Image: "i", InstallScript: new("\ufeffset -e\r\necho hi\r\n")}}, runtime.Mount{Source: "/v"})
	require.Equal(t, []string{"/bin/sh", "-c", "set -e\necho hi\n"}, spec.Command)
}

// TestInstallerOfAnEgg: the script runs under the shell that the egg names, in the
// directory that it expects, and its #! line does not count.
func TestInstallerOfAnEgg(t *testing.T) {
	s := v1.ContainerSpec{Image: "i", InstallScript: new("#!/usr/bin/python3\nid"), InstallMount: "/mnt/server", InstallEntrypoint: "bash"}
	spec := installerSpec(v1.Container{Spec: s}, runtime.Mount{Source: "/v"})
	require.Equal(t, []string{"bash", "-c", s.Script()}, spec.Command)
	require.True(t, spec.Entrypoint, "the image's own comes first")
	require.Equal(t, "/mnt/server", spec.Workdir)
	require.Equal(t, []string{"HOME=/mnt/server"}, spec.Env)
	s.Env = map[string]string{"HOME": "/root"}
	require.Equal(t, []string{"HOME=/root"}, installerSpec(v1.Container{Spec: s}, runtime.Mount{Source: "/v"}).Env)
	require.Equal(t, []runtime.Mount{{Source: "/v", Target: "/mnt/server"}}, spec.Mounts)
	require.Equal(t, []runtime.Mount{{Source: "/v", Target: v1.Home}}, serverSpec(v1.Container{Spec: s}, runtime.Mount{Source: "/v"}).Mounts)
}

// TestWorkdirOfTheImage: the directory of the image is that of its own command alone.
func TestWorkdirOfTheImage(t *testing.T) {
	for _, c := range []struct{ command, workdir, want string }{
		{"", "", ""}, {" ", "", ""}, {"", "/w", "/w"}, {"run", "", v1.Home}, {"run", "/w", "/w"},
	} {
		s := v1.ContainerSpec{Image: "i", StartupCommand: c.command, Workdir: c.workdir}
		require.Equal(t, c.want, serverSpec(v1.Container{Spec: s}, runtime.Mount{Source: "/v"}).Workdir, c)
		require.Equal(t, v1.Home, installerSpec(v1.Container{Spec: s}, runtime.Mount{Source: "/v"}).Workdir, c)
	}
}

func TestTimezoneIsTZ(t *testing.T) {
	require.Equal(t, []string{"A=b", "TZ=Europe/Berlin"}, environment(v1.ContainerSpec{Timezone: "Europe/Berlin", Env: map[string]string{"A": "b"}}, ""))
	require.Equal(t, []string{"TZ=UTC"}, environment(v1.ContainerSpec{Timezone: "Europe/Berlin", Env: map[string]string{"TZ": "UTC"}}, ""))
	require.Empty(t, environment(v1.ContainerSpec{}, ""))
}

// appliedElsewhere are the fields of a container's spec that are not part of what the
// engine creates, with the file that applies them.
var appliedElsewhere = map[string]string{
	"start_pattern":       "observe.go StartPattern",
	"start_timeout":       "plan.go StartTimeout",
	"install_timeout":     "plan.go InstallLimit",
	"pull_policy":         "pull.go PullPolicy",
	"limits.disk":         "volume.go SmallestLimit",
	"stop.command":        "spec.go Stop.Command",
	"restart_policy.mode": "exit.go RestartPolicy.Mode",
	"registry_auth":       "pull.go RegistryAuth",
	"config_files":        "config_files.go ConfigFiles",
	"denied_files":        "../../store/index.go DeniedFiles",
	"power":               "plan.go Power",
	"run":                 "plan.go RunGeneration",
	"kill_run":            "plan.go KillGeneration",
	"requested_by":        "record.go RequestedBy",
	"deferred":            "condition.go Deferred",
	"arrived":             "../../api/v1/container.go Arrived",
}

// TestSpecFieldsAreApplied empties one field of a container's spec after the other. It
// has to change a container on the engine, or is listed with the place that reads it.
func TestSpecFieldsAreApplied(t *testing.T) {
	unused := fieldtest.Unused(func(s v1.ContainerSpec) any {
		c := v1.Container{Meta: v1.Meta{ID: "mc"}, Spec: s}
		server, installer := serverSpec(c, runtime.Mount{Source: s.VolumeID}), installerSpec(c, runtime.Mount{Source: s.VolumeID})
		server.SpecHash, installer.SpecHash = "", s.InstallHash() // the hash alone applies nothing
		return []any{server, installer, mounts(s)}
	})
	unused = slices.DeleteFunc(unused, func(path string) bool { return path == "internal_id" }) // the store has it as Meta.ID
	for _, field := range unused {
		first, _, _ := strings.Cut(field, ".")
		place := cmp.Or(appliedElsewhere[field], appliedElsewhere[first])
		file, selector, _ := strings.Cut(place, " ")
		text, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(text), "."+selector) {
			t.Errorf("the field %s of ContainerSpec changes nothing: apply it in controller/container/spec.go (serverSpec, installerSpec or "+
				"commonSpec), or name the file that reads it in appliedElsewhere of this test", field)
		}
	}
	for field := range appliedElsewhere {
		require.True(t, slices.ContainsFunc(unused, func(path string) bool { return path == field || strings.HasPrefix(path, field+".") }),
			"%s of appliedElsewhere is part of the engine's spec", field)
	}
}

// changedInPlace are the fields that a container has from its creation, with the reason
// why another value needs no other container.
var changedInPlace = map[string]string{
	"stop.timeout": "berth measures it; the engine has it for its own shutdown",
}

// TestSpecHashCoversCreation empties and changes one field of a container's spec after the
// other. If it is part of what only a creation gives to a container, the hash changes too:
// otherwise a request that changes it has no effect on a container that exists.
func TestSpecHashCoversCreation(t *testing.T) {
	created := func(s v1.ContainerSpec) any {
		spec := serverSpec(v1.Container{Meta: v1.Meta{ID: "mc"}, Spec: s}, runtime.Mount{Source: s.VolumeID})
		spec.SpecHash, spec.Live = "", runtime.Live{} // UpdateLimits changes Live
		return []any{spec, mounts(s)}
	}
	full := fieldtest.Full[v1.ContainerSpec]()
	for _, path := range fieldtest.Paths(reflect.TypeFor[v1.ContainerSpec]()) {
		for _, alter := range []func(any, string){fieldtest.Clear, fieldtest.Change} {
			s := fieldtest.Full[v1.ContainerSpec]()
			alter(&s, path)
			lost := !reflect.DeepEqual(created(full), created(s)) && full.SpecHash() == s.SpecHash()
			if lost && changedInPlace[path] == "" {
				t.Errorf("the field %s of ContainerSpec takes effect only in a new container: give it the tag recreate:\"named\", "+
					"or list it in changedInPlace of this test", path)
				break
			}
		}
	}
}
