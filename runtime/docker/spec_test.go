package docker

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
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

// fullSpec returns a spec in which no field is empty, so that the golden files show each: a new one
// has the value of fieldtest.
func fullSpec(role runtime.Role) runtime.Spec {
	s := fieldtest.Full[runtime.Spec]()
	s.Name = runtime.Name{ID: "mc", Role: role}
	s.SpecHash, s.Revision, s.Incarnation, s.MachineID = "5f2b", 7, "5eed0001", "4f1c"
	s.Image, s.Command = "ghcr.io/example/java:21", []string{"java", "-jar", "server.jar"}
	s.Env = []string{"EULA=true", "TZ=UTC"}
	s.Mounts = []runtime.Mount{
		{Source: "/var/lib/berth/volumes/v", Target: "/home/container"},
		{Source: "/srv/maps", Target: "/maps", ReadOnly: true},
	}
	s.Ports = []runtime.Port{
		{IP: "0.0.0.0", Port: 25565, ContainerPort: 25565, Protocol: "tcp"},
		{IP: "::1", Port: 25565, ContainerPort: 25565, Protocol: "tcp"},
		{IP: "127.0.0.1", Port: 19132, ContainerPort: 19132, Protocol: "udp"},
	}
	s.Live = runtime.Live{Memory: 1 << 30, Swap: 1 << 28, CPU: 1.5, Pids: 100, Cpuset: "0-1", NoOOMKill: true}
	s.IOWeight, s.ShmSize = 500, 1<<28
	s.User, s.Workdir, s.Home, s.Hostname = "1000:1000", "/home/container", "/home/container", "mc.example.com"
	s.StopSignal, s.StopTimeout = "SIGINT", 89500*time.Millisecond
	s.Labels = map[string]string{"panel": "x", "io.berth.store": "forged", "io.berth.more": "forged"}
	return s
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
		require.NotContains(t, strings.ReplaceAll(strings.Join(host.CapAdd, " "), "SYS_CHROOT", ""), "SYS_")
		if s.Name.Role != runtime.Install {
			require.Equal(t, []string{"CHOWN", "DAC_OVERRIDE", "FOWNER", "KILL", "NET_BIND_SERVICE", "SETGID", "SETUID"}, []string(host.CapAdd))
		}
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
	"Name.ID",    // Create passes the container's name beside its configuration
	"MachineID",  // Create writes it into the container
	"Entrypoint", // Create completes the command with the image's

	// package intent or the configuration refuses them: the engine has one machine
	"Mounts.Claim",
	"Placement.NodeSelector", "Placement.PriorityClass", "Placement.RuntimeClass",
	"Placement.Tolerations.Effect", "Placement.Tolerations.Key", "Placement.Tolerations.Value",
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
