package e2e_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/hack/test/berthtest"
	"berth/hack/test/enginetest"
	"berth/hack/test/kubetest"
)

// readOnly reports what a container with a read-only root file system can write.
const readOnly = `touch /x /etc/x /dev/null/x 2>/dev/null || echo root refused
for d in /tmp /run; do cp /bin/busybox $d/true && $d/true && echo $d runs; done
dd if=/dev/zero of=/tmp/big bs=1M count=20 2>/dev/null || echo tmp is full; rm -f /tmp/big
cd /run; seq 5000 | xargs touch 2>/dev/null || echo files are bounded
touch /home/container/x && echo volume accepted
mount | grep -c 'on /image-volume'
echo TZ is $TZ; echo up; sleep 100000`

// TestContainerOptions reads the options of a container from the engine and from within
// the container.
func TestContainerOptions(t *testing.T) {
	t.Parallel()
	image := ownImage(t, "1", nil, ocispec.ImageConfig{Volumes: map[string]struct{}{"/tmp": {}, "/image-volume": {}}})
	b := berthtest.Start(t, berthtest.Options{Config: "docker: {tmp_size: 16MiB, read_only_root: true}\n"})
	limits := berthtest.Spec{"memory": 64 << 20, "swap": -1, "oom_kill": false}
	spec := berthtest.Spec{"image": image, "startup_command": readOnly, "start_pattern": "^up", "power": "running", "tty": false,
		"user": "1000:1000", "timezone": "Europe/Berlin", "limits": limits,
		"install_mount": "/mnt/server", "install_entrypoint": "ash", "install_script": "#!/bin/none\r\npwd > where; touch /root-is-writable"}
	b.Create(t, "mc", spec.With(berthtest.Spec{"user": "", "read_only_root": true}))
	b.Create(t, "player", spec.With(berthtest.Spec{"install_script": "", "install_entrypoint": "", "limits": berthtest.Spec{}}))
	b.Create(t, "writable", berthtest.Spec{"power": "running", "read_only_root": false, "startup_command": "touch /x && echo up; sleep 100000", "start_pattern": "^up"})
	c := b.State(t, "mc", "running")
	logs := string(b.Must(t, "GET", "/containers/mc/logs", nil).Body)
	for _, line := range []string{"root refused", "/tmp runs", "/run runs", "tmp is full", "files are bounded", "volume accepted", "TZ is Europe/Berlin"} {
		require.Contains(t, logs, line)
	}
	where, err := os.ReadFile(c.Mount.Source + "/where")
	require.NoError(t, err)
	require.Equal(t, "/mnt/server\n", string(where))
	one, found := b.Engine.Inspect(t, c.ContainerID)
	require.True(t, found)
	host := one.Raw["HostConfig"].(map[string]any)
	require.EqualValues(t, -1, host["MemorySwap"])
	applied := v1.FindCondition(c.Conditions, v1.LimitsApplied)
	if cgroups(t, b) == "1" {
		require.Equal(t, true, host["OomKillDisable"])
		require.Empty(t, applied.Status, applied.Message)
	} else {
		require.Contains(t, b.Await(t, "mc", "the engine ignores oom_kill", func(c berthtest.Container) bool {
			return v1.FindCondition(c.Conditions, v1.LimitsApplied).Status == v1.False
		}).Conditions, "limits.oom_kill")
	}
	b.State(t, "player", "running")
	logs = string(b.Must(t, "GET", "/containers/player/logs", nil).Body)
	require.Contains(t, logs, "/run runs", "a user without privileges may write there too")
	b.State(t, "writable", "running")

	// The same specification again changes nothing; another limit replaces the container.
	require.Contains(t, string(b.Must(t, "PUT", "/containers/mc?dry_run=true", c).Body), `"changed":false`)
	c.Limits.OOMKill, c.Limits.Swap = nil, 0
	require.Contains(t, string(b.Must(t, "PUT", "/containers/mc?dry_run=true", c).Body), `"action":"recreate","reason":"limits changed"`)
	b.Must(t, "PUT", "/containers/mc", c)
	b.Await(t, "mc", "a container with the new limits", func(now berthtest.Container) bool {
		one, found := b.Engine.Inspect(t, now.ContainerID)
		return found && now.State == "running" && one.Raw["HostConfig"].(map[string]any)["MemorySwap"] == 64.0*(1<<20)
	})
}

// ownImage creates an image of busybox and further files, which the engine can have. On Docker the test
// removes it after its containers: call it before berthtest.Start.
func ownImage(t *testing.T, tag string, files map[string][]byte, config ocispec.ImageConfig) (ref string) {
	t.Helper()
	name, root := strings.ToLower(t.Name())+"-"+strings.TrimPrefix(berthtest.NewToken(), "berth_")[:8], enginetest.BusyboxTar(t, files)
	if kubetest.Running() {
		name += "-" + tag
		kubetest.Push(t, name, root, config)
		return kubetest.Host() + ":5000/" + name + ":1"
	}
	engine := enginetest.Shared(t)
	ref = "berth-test/" + name + ":" + tag
	engine.Import(t, ref, root, instructions(t, config)...)
	var made struct{ ID string }
	require.NoError(t, json.Unmarshal(engine.Must(t, "GET", "/images/"+ref+"/json", nil), &made))
	t.Cleanup(func() { engine.Do(t, "DELETE", "/images/"+made.ID+"?force=1", nil) }) // with the names that a registry gave it
	return ref
}

// instructions returns the lines of a Dockerfile for a configuration.
func instructions(t *testing.T, c ocispec.ImageConfig) (lines []string) {
	t.Helper()
	for name, list := range map[string][]string{"ENTRYPOINT": c.Entrypoint, "CMD": c.Cmd, "VOLUME": slices.Sorted(maps.Keys(c.Volumes))} {
		if len(list) > 0 {
			text, err := json.Marshal(list)
			require.NoError(t, err)
			lines = append(lines, name+" "+string(text))
		}
	}
	for name, value := range map[string]string{"WORKDIR": c.WorkingDir, "USER": c.User, "ENV": strings.Join(c.Env, " ")} {
		if value != "" {
			lines = append(lines, name+" "+value)
		}
	}
	return lines
}

// cgroups returns the version of the cgroups that the engine uses.
func cgroups(t *testing.T, b *berthtest.Berth) string {
	t.Helper()
	var info struct{ CgroupVersion string }
	require.NoError(t, json.Unmarshal(b.Engine.Must(t, "GET", "/info", nil), &info))
	return info.CgroupVersion
}

// TestOOMKillFalse: a process that uses up the memory waits and is not killed, and the
// container can be killed.
func TestOOMKillFalse(t *testing.T) {
	t.Parallel()
	b := berthtest.Start(t, berthtest.Options{})
	if cgroups(t, b) != "1" {
		return // every engine with cgroup v2 kills: TestContainerOptions has its condition
	}
	const fill = "tail /dev/zero; echo tail ended with $?; sleep 100000"
	limits := berthtest.Spec{"memory": 16 << 20, "swap": 0}
	b.Started(t, "killed", berthtest.Spec{"startup_command": fill, "limits": limits})
	b.Started(t, "waits", berthtest.Spec{"startup_command": fill, "limits": limits.With(berthtest.Spec{"oom_kill": false})})
	tailEnded := func(id string) bool {
		return strings.Contains(string(b.Must(t, "GET", "/containers/"+id+"/logs", nil).Body), "tail ended")
	}
	berthtest.Until(t, wait, "the process of the other container is killed", func() bool { return tailEnded("killed") })
	berthtest.Until(t, wait, "its memory is used up", func() bool {
		var stats v1.Stats
		b.Get(t, "/containers/waits/stats", &stats)
		return stats.MemoryUsage > 12<<20
	})
	require.False(t, tailEnded("waits"))
	require.EqualValues(t, "running", b.Container(t, "waits").State)
	b.Verb(t, "waits", "kill")
	b.State(t, "waits", "exit")
}

// TestPullPolicies: with always, a tag that was moved arrives with the next start, and a
// registry that is away leaves the image on the host in use. Never pulls nothing.
func TestPullPolicies(t *testing.T) {
	t.Parallel()
	registry, engine := enginetest.StartRegistry(t), enginetest.Shared(t)
	ref := registry.Addr + "/moved:1"
	var versions []string
	for n := range 3 {
		versions = append(versions, ownImage(t, fmt.Sprint(n+1), map[string][]byte{"version": fmt.Append(nil, n+1)}, ocispec.ImageConfig{}))
	}
	// The engine pushes with another name of the registry, so that ref stays as it is there.
	push := func(n int) {
		engine.Push(t, versions[n-1], strings.Replace(registry.Addr, "127.0.0.1", "localhost", 1), "moved:1", "", "")
	}
	push(1)
	b := berthtest.Start(t, berthtest.Options{Config: "reconcile: {create_wait: 30s}\n"})
	require.JSONEq(t, wrong("Failed to create Docker container: image not found"), // it is in the registry, and not on the host
		string(b.Do(t, "POST", "/containers", b.Body(t, "never", berthtest.Spec{"image": ref, "pull_policy": "never"})).Body))
	start := berthtest.Spec{"image": ref, "startup_command": "echo version $(cat /version) up; sleep 100000", "start_pattern": "up", "power": "running"}
	b.Create(t, "always", start.With(berthtest.Spec{"pull_policy": "always"}))
	b.Create(t, "missing", start)
	run := func(id string, n int) berthtest.Container {
		t.Helper()
		c := b.State(t, id, "running")
		lines := string(b.Must(t, "GET", "/containers/"+id+"/logs?tail=1", nil).Body)
		require.Contains(t, lines, fmt.Sprintf("version %d up", n), id)
		return c
	}
	restart := func() {
		for _, id := range []string{"always", "missing"} {
			b.Verb(t, id, "kill")
			b.State(t, id, "exit")
			b.Verb(t, id, "start")
		}
	}
	require.Equal(t, v1.True, v1.FindCondition(run("always", 1).Conditions, v1.ImageCurrent).Status)
	push(2)
	restart()
	run("always", 2)
	run("missing", 1)

	push(3)
	registry.Kill(t)
	restart()
	current := v1.FindCondition(run("always", 2).Conditions, v1.ImageCurrent)
	require.Equal(t, v1.False, current.Status)
	require.Equal(t, "PullFailed", current.Reason)
	require.Empty(t, v1.FindCondition(run("missing", 1).Conditions, v1.ImageCurrent).Status)
	// The image is on the host now, which suffices for never.
	b.Create(t, "never", start.With(berthtest.Spec{"pull_policy": "never"}))
	run("never", 2)
}
