package egg_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"berth/api/egg"
	v1 "berth/api/v1"
)

const pelican = `{"settings": {"id": 7, "uuid": "a1a1a1a1-1111-4111-8111-a1a1a1a1a1a1", "meta": {"name": "alpha", "description": ""}, "suspended": true,
"environment": {"MOTD": "hello ${BERTH_IP}", "lower": "case", "NUMBER": 5, "FLOAT": 1.5, "YES": true, "NONE": null, "SERVER_TIMEZONE": "Europe/Berlin", "TZ": "x", "bad-name": "x",
 "STARTUP": "raw", "P_SERVER_UUID": "a1a1a1a1-1111-4111-8111-a1a1a1a1a1a1", "SERVER_PORT": "1"},
"invocation": "run {{SERVER_PORT}} ${MOTD} {{UNKNOWN}} [[ {{MOTD}} ]] {{NONE}}!", "skip_egg_scripts": false,
"build": {"memory_limit": 1000, "swap": -1, "io_weight": 500, "cpu_limit": 150, "threads": "0-2,4", "disk_space": 64, "oom_killer": false},
"container": {"image": "ghcr.io/x:1"}, "allocations": {"default": {"ip": "127.0.0.1", "port": 27301}, "mappings": {"127.0.0.1": [27301, 27302], "::1": [27301], "": []}},
"egg": {"id": "x", "file_denylist": ["secret.txt", ""], "features": []}, "labels": {"a": "b"},
"mounts": [{"source": "/srv/maps/x", "target": "/mnt/maps", "read_only": true}, {"source": "/srv/mapsx", "target": "/mnt/b"}, {"source": "/srv/maps/../x", "target": "/c"}, {"source": "/srv/maps", "target": "/home/container/m"}]},
"process_configuration": {"startup": {"done": ["Done (", "regex:^READY \\d+$"]}, "stop": {"type": "signal", "value": "C"}, "configs": [
 {"parser": "yaml", "file": "{{lower}}.yml", "create_file": false, "replace": [{"match": "a.*.b", "if_value": "regex:^(x)$", "replace_with": "{{config.docker.interface}}$1"}, {"match": "a.*.b", "replace_with": "${LITERAL}"}]},
 {"parser": "toml", "file": "x.toml", "replace": [{"match": "a", "replace_with": 1}]}]}}`

func read(t *testing.T, text string) (s egg.Server) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(text), &s))
	return s
}

// TestServerSpec has a server of Pelican's with one of each thing that a panel can send.
func TestServerSpec(t *testing.T) {
	s := read(t, pelican)
	require.True(t, s.Suspended)
	require.True(t, s.Pelican)
	require.Equal(t, "alpha", s.Name)
	h := egg.Host{User: "988:988", Timezone: "Asia/Tokyo", Pids: 512, CPUs: 8, RestartMode: v1.RestartAlways, AllowedMounts: []string{"/srv/maps/"}}
	spec, notes := s.Spec(h, &egg.Script{Image: "img:2", Entrypoint: "/bin/ash", Script: "echo a\r\nexit 7"})
	port := func(ip string, port int, protocol string) v1.Port {
		return v1.Port{IP: ip, Port: port, Protocol: protocol}
	}
	script := "trap 'exit 0' EXIT\necho a\nexit 7\nexit 0\n"
	require.Equal(t, v1.ContainerSpec{InternalID: s.UUID, Image: "ghcr.io/x:1", PullPolicy: v1.PullAlways, User: "988:988", Hostname: s.UUID, Cpuset: "0-2,4",
		StartPattern: `Done \(|^READY \d+$`, Stop: v1.Stop{Command: "^C", Timeout: spec.Stop.Timeout}, RestartPolicy: v1.RestartPolicy{Mode: v1.RestartAlways},
		InstallScript: &script, InstallImage: "img:2", InstallMount: "/mnt/server", InstallEntrypoint: "ash", InstallUser: "root", ReadOnlyRoot: new(true),
		Ports: []v1.Port{port("127.0.0.1", 27301, "tcp"), port("127.0.0.1", 27301, "udp"), port("127.0.0.1", 27302, "tcp"), port("127.0.0.1", 27302, "udp"),
			port("::1", 27301, "tcp"), port("::1", 27301, "udp")},
		Limits: v1.Limits{Memory: 1205862400, CPU: 1.5, Swap: v1.UnlimitedSwap, Pids: 512, Disk: 64 << 20, IOWeight: 500, OOMKill: new(false)},
		Env: map[string]string{"MOTD": "hello $${BERTH_IP}", "LOWER": "case", "NUMBER": "5.000000", "FLOAT": "1.500000", "YES": "true", "NONE": "", "SERVER_TIMEZONE": "Europe/Berlin",
			"STARTUP": "run 27301 hello $${BERTH_IP} ${UNKNOWN} [[ {{MOTD}} ]] !", "SERVER_MEMORY": "1000", "SERVER_IP": "0.0.0.0", "SERVER_PORT": "27301", "P_SERVER_UUID": s.UUID},
		Timezone: "Europe/Berlin", Labels: map[string]string{"a": "b", egg.ServerLabel: s.UUID}, DeniedFiles: []string{"secret.txt"},
		Mounts: []v1.Mount{{Source: "/srv/maps/x", Target: "/mnt/maps", ReadOnly: true}},
		ConfigFiles: []v1.ConfigFile{{Path: "case.yml", Format: "yaml", Create: new(false), Edits: []v1.ConfigEdit{
			{Key: "a.*.b", If: "regex:^(x)$", Value: "${BERTH_GATEWAY}$1"}, {Key: "a.*.b", Value: "$${LITERAL}"}}}},
	}, spec)
	all := strings.Join(notes, "\n")
	for _, want := range []string{`"/srv/mapsx" is not below`, `"/srv/x" is not below`, `"/home/container/m" is in the volume`, `the parser "toml" is not known`} {
		require.Contains(t, all, want)
	}
}

// TestServerOfPterodactyl has what that panel sends otherwise.
func TestServerOfPterodactyl(t *testing.T) {
	s := read(t, `{"settings": {"uuid": "a1a1a1a1-1111-4111-8111-a1a1a1a1a1a1", "suspended": false, "environment": {"lower": "x"}, "invocation": "run {{lower}} {{SERVER_PORT}}",
"build": {"memory_limit": 1024, "swap": 512, "io_weight": 500, "cpu_limit": 1600, "threads": null, "disk_space": 0, "oom_disabled": false},
"container": {"image": "~local:1", "oom_disabled": false}, "allocations": {"default": {"ip": "127.0.0.1", "port": 0}, "mappings": []}, "egg": {"file_denylist": null}, "mounts": []},
"process_configuration": {"startup": {"done": []}, "stop": {"type": "command", "value": "stop"}, "configs": []}}`)
	require.False(t, s.Pelican)
	spec, notes := s.Spec(egg.Host{User: "1:1", CPUs: 8, RestartMode: v1.RestartAlways}, nil)
	require.Equal(t, "local:1", spec.Image)
	require.Equal(t, v1.PullMissing, spec.PullPolicy)
	require.Equal(t, "run {{LOWER}} {{SERVER_PORT}}", spec.Env["STARTUP"])
	require.Equal(t, v1.Limits{Memory: 1177600000, Swap: 512 << 20, IOWeight: 500}, spec.Limits)
	require.Equal(t, "stop", spec.Stop.Command)
	require.Empty(t, spec.Ports)
	require.Nil(t, spec.InstallScript)
	require.Contains(t, strings.Join(notes, "\n"), "the host has 8 processors")
}

func TestServerIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		`{"settings": {"uuid": "../x"}}`: "settings.uuid", `{}`: "settings", `{"settings": {"uuid": "A1a1a1a1-1111-4111-8111-a1a1a1a1a1a1"}}`: "settings.uuid",
		`{"settings": {"a":` + strings.Repeat("[", 40) + strings.Repeat("]", 40) + `}}`: "nested", `{"x": "` + strings.Repeat("x", egg.MaxSize) + `"}`: "larger",
	} {
		var s egg.Server
		require.ErrorContains(t, json.Unmarshal([]byte(text), &s), want)
	}
}
