package docker

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"berth/hack/test/fieldtest"
	"berth/runtime"
)

var update = flag.Bool("update", false, "write the golden files anew")

func fullSpec(role runtime.Role) runtime.Spec {
	return runtime.Spec{
		Name:     runtime.Name{ID: "mc", Role: role},
		SpecHash: "5f2b", Revision: 7, Incarnation: "5eed0001",
		Image:   "ghcr.io/example/java:21",
		Command: []string{"java", "-jar", "server.jar"}, SignalGroup: true, MachineID: "4f1c",
		Env: []string{"EULA=true", "TZ=UTC"},
		Mounts: []runtime.Mount{
			{Source: "/var/lib/berth/volumes/v", Target: "/home/container"},
			{Source: "/srv/maps", Target: "/maps", ReadOnly: true},
		},
		Ports: []runtime.Port{
			{IP: "0.0.0.0", Port: 25565, ContainerPort: 25565, Protocol: "tcp"},
			{IP: "::1", Port: 25565, ContainerPort: 25565, Protocol: "tcp"},
			{IP: "127.0.0.1", Port: 19132, ContainerPort: 19132, Protocol: "udp"},
		},
		Live:         runtime.Live{Memory: 1 << 30, Swap: 1 << 28, CPU: 1.5, Pids: 100, Cpuset: "0-1", NoOOMKill: true},
		IOWeight:     500,
		User:         "1000:1000",
		Workdir:      "/home/container",
		Home:         "/home/container",
		Hostname:     "mc.example.com",
		ReadOnlyRoot: true,
		ShmSize:      1 << 28,
		TTY:          true,
		StopSignal:   "SIGINT", StopTimeout: 89500 * time.Millisecond,
		Labels: map[string]string{"panel": "x", "io.berth.store": "forged", "io.berth.more": "forged"},
	}
}

// TestBuildGoldenIsFull: the golden files show every field of runtime.Spec.
func TestBuildGoldenIsFull(t *testing.T) {
	for _, path := range fieldtest.Paths(reflect.TypeFor[runtime.Spec]()) {
		s := fullSpec(runtime.Server)
		fieldtest.Clear(&s, path)
		if reflect.DeepEqual(fullSpec(runtime.Server), s) {
			t.Errorf("the field %s of runtime.Spec has no value in fullSpec of this file: set one, and write the golden files anew: go test ./runtime/docker -run TestBuildGolden -update", path)
		}
	}
}

func TestBuildGolden(t *testing.T) {
	c := Config{StoreID: "store-1", NofileLimit: 16384, profile: "{}", cpus: 1}.withDefaults()
	for name, s := range map[string]runtime.Spec{
		"server":  fullSpec(runtime.Server),
		"install": fullSpec(runtime.Install),
		"least":   {Name: runtime.Name{ID: "least", Role: runtime.Server}, Image: "busybox"},
	} {
		config, host := build(c, s)
		got, err := json.MarshalIndent(map[string]any{"Name": engineName(c.StoreID, s.Name), "Config": config, "HostConfig": host}, "", "  ")
		require.NoError(t, err)
		file := filepath.Join("testdata", name+".golden.json")
		if *update {
			require.NoError(t, os.MkdirAll("testdata", 0o755))
			require.NoError(t, os.WriteFile(file, append(got, '\n'), 0o644))
		}
		want, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Empty(t, cmp.Diff(string(want), string(got)+"\n"), "%s is outdated; to write it anew: go test ./runtime/docker -run TestBuildGolden -update", file)
	}
}

func TestBuildKeepsHardening(t *testing.T) {
	for _, s := range []runtime.Spec{fullSpec(runtime.Server), fullSpec(runtime.Install), {}} {
		config, host := build(Config{StoreID: "store-1", NofileLimit: 1000}.withDefaults(), s)
		require.False(t, host.Privileged)
		require.False(t, host.NetworkMode.IsHost() || host.PidMode.IsHost() || host.IpcMode.IsHost() || host.UTSMode.IsHost() || host.CgroupnsMode.IsHost())
		require.Empty(t, host.UsernsMode)
		require.Empty(t, host.Devices)
		require.Empty(t, host.DeviceRequests)
		require.Empty(t, host.Binds)
		require.Empty(t, host.VolumesFrom)
		require.Equal(t, []string{"ALL"}, []string(host.CapDrop))
		require.NotContains(t, strings.Join(host.CapAdd, " "), "SYS_")
		require.Equal(t, []string{"no-new-privileges"}, host.SecurityOpt)
		require.Positive(t, *host.PidsLimit)
		require.Equal(t, []*container.Ulimit{{Name: "core"}, {Name: "nofile", Soft: 1000, Hard: 1000}}, host.Ulimits)
		require.True(t, host.Memory == 0 || host.MemorySwap == host.Memory+s.Live.Swap)
		require.Equal(t, "store-1", config.Labels[labelStore])
		require.NotContains(t, config.Labels, "io.berth.more")
	}
}

func TestNewRefusesHostNetwork(t *testing.T) {
	for _, network := range []string{"host", "container:abc"} {
		_, err := New(Config{StoreID: "s", Network: network}, nil, nil)
		require.Error(t, err, network)
	}
	_, err := New(Config{}, nil, nil)
	require.Error(t, err, "whose containers?")
}

func TestEngineNamesAreUnique(t *testing.T) {
	seen := map[string]bool{}
	for _, store := range []string{"a", "b"} {
		for _, n := range []runtime.Name{{ID: "x", Role: runtime.Server}, {ID: "x", Role: runtime.Install}, {ID: "install-x", Role: runtime.Server}} {
			name := engineName(store, n)
			require.False(t, seen[name], name)
			require.Regexp(t, `^[a-zA-Z0-9][a-zA-Z0-9_.-]+$`, name)
			seen[name] = true
		}
	}
}

// unusedByBuild are the fields of runtime.Spec that build alone does not use.
var unusedByBuild = []string{
	"Name.ID",   // Create passes the container's name beside its configuration
	"MachineID", // Create writes it into the container
	"Home",      // Create sets it where it is needed
}

// TestBuildUsesEveryField empties one field of runtime.Spec after the other: what the
// engine is asked for has to change.
func TestBuildUsesEveryField(t *testing.T) {
	c := Config{StoreID: "store-1"}.withDefaults()
	unused := fieldtest.Unused(func(s runtime.Spec) any {
		config, host := build(c, s)
		return []any{config, host}
	})
	for _, field := range unused {
		if !slices.Contains(unusedByBuild, field) {
			t.Errorf("the field %s of runtime.Spec changes nothing: use it in build of runtime/docker/spec.go", field)
		}
	}
}
