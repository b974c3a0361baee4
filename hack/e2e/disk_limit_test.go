package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"berth/hack/test/berthtest"
)

// condition returns the reason of a container's condition if it is True, else "".
func condition(t *testing.T, b *berthtest.Berth, id, kind string) string {
	t.Helper()
	var c struct {
		Conditions []struct{ Type, Status, Reason string }
	}
	b.Get(t, "/containers/"+id, &c)
	for _, one := range c.Conditions {
		if one.Type == kind && one.Status == "True" {
			return one.Reason
		}
	}
	return ""
}

// TestRootLimit: each container writes more than
// docker.root_limit to a place outside its volume.
func TestRootLimit(t *testing.T) {
	t.Parallel()
	const once = `[ -e /home/container/took ] || { touch /home/container/took; `
	b := berthtest.Start(t, berthtest.Options{Config: "docker: {root_limit: 8MiB}\nreconcile: {resync: 2s}\n"})
	commands := map[string]string{
		"layer":    once + "dd if=/dev/zero of=/tmp/big bs=1M count=16; }; sleep 100000",
		"hosts":    once + "dd if=/dev/zero bs=1M count=16 >> /etc/hosts; }; sleep 100000",
		"files":    once + "mkdir /f; cd /f; seq 4000 | xargs touch; }; sleep 100000",
		"unlinked": once + "exec 3> x; rm x; dd if=/dev/zero bs=1M count=16 >&3; }; sleep 100000",
	}
	for id, command := range commands {
		b.Create(t, id, berthtest.Spec{"power": "running", "startup_command": command, "stop": map[string]string{"timeout": "1s"}})
	}
	b.Started(t, "good", nil)
	for id := range commands {
		c := b.Await(t, id, "it was stopped, and started again without what it wrote", func(c berthtest.Container) bool {
			return c.State == "running" && c.RestartCount > 0
		})
		require.Empty(t, condition(t, b, id, "DiskPressure"))
		require.FileExists(t, filepath.Join(c.Mount.Source, "took"), "its volume is kept")
	}
	require.Zero(t, b.Container(t, "good").RestartCount)
	var events struct {
		Events []struct{ Container, Data string }
	}
	b.Get(t, "/events?limit=1000", &events)
	reported := map[string]bool{}
	for _, e := range events.Events {
		if e.Data == rootText {
			reported[e.Container] = true
		}
	}
	require.Len(t, reported, len(commands), "each is reported")
}

const rootText = "the container has written more than docker.root_limit outside its volume: it is stopped, and what it wrote there is removed"

// TestDiskLimitCountsInodesAndUnlinkedFiles: a disk limit counts empty files, and
// files that are unlinked but open.
func TestDiskLimitCountsInodesAndUnlinkedFiles(t *testing.T) {
	t.Parallel()
	b := berthtest.Start(t, berthtest.Options{Config: "reconcile: {resync: 2s}\n"})
	const limit = 8 << 20
	for id, command := range map[string]string{
		"empty":    "mkdir f; cd f; seq 30000 | xargs touch; sleep 100000",
		"unlinked": "exec 3> x; rm x; dd if=/dev/zero bs=1M count=12 >&3; sleep 100000",
	} {
		var v struct {
			VolumeID string `json:"volume_id"`
		}
		b.Post(t, "/volumes", map[string]any{"size_limit": limit}).Decode(t, &v)
		b.Create(t, id, berthtest.Spec{"power": "running", "startup_command": command, "volume_id": v.VolumeID})
	}
	for _, id := range []string{"empty", "unlinked"} {
		berthtest.Until(t, 2*time.Minute, id+" is under disk pressure", func() bool {
			return condition(t, b, id, "DiskPressure") == "OverLimit"
		})
	}
	// When space is freed it goes on.
	dir := b.Container(t, "empty").Mount.Source
	berthtest.Until(t, 2*time.Minute, "the folder is removed under its writer", func() bool { return os.RemoveAll(filepath.Join(dir, "f")) == nil })
	berthtest.Until(t, 2*time.Minute, "empty is within its limit", func() bool { return condition(t, b, "empty", "DiskPressure") == "" })
}

// TestRootLimitEndsWriter: a container that writes on outside its volume, and ignores the stop
// signal, is killed with the first measurement that shows it. Its space comes
// back, and others go on. BERTH_ROOT_GIB makes it write so many GiB at full speed, with a
// limit of 1 GiB.
func TestRootLimitEndsWriter(t *testing.T) {
	t.Parallel()
	limit, blocks, pause := int64(64<<20), 80, "2"
	if text := os.Getenv("BERTH_ROOT_GIB"); text != "" {
		n, err := strconv.Atoi(text)
		require.NoError(t, err)
		limit, blocks, pause = 1<<30, n*128, "0"
	}
	config := fmt.Sprintf("docker: {root_limit: %d}\n", limit)
	if pause != "0" {
		config += "reconcile: {resync: 2s}\n"
	}
	b := berthtest.Start(t, berthtest.Options{Config: config})
	good := b.Started(t, "good", berthtest.Spec{"startup_command": "while :; do echo line; sleep 0.2; done"})
	write := fmt.Sprintf("trap '' TERM; i=0; while [ $i -lt %d ]; do dd if=/dev/zero bs=8M count=1 2>/dev/null >> /big; sleep %s; i=$((i+1)); done; echo all written; sleep 100000", blocks, pause)
	writer := b.Started(t, "writer", berthtest.Spec{"startup_command": write, "restart_policy": map[string]string{"mode": "never"}})
	one, found := b.Engine.Inspect(t, writer.ContainerID)
	require.True(t, found)
	layer := one.Raw["GraphDriver"].(map[string]any)["Data"].(map[string]any)["UpperDir"].(string)
	most := int64(0)
	b.Await(t, "writer", "it is killed, and its layer is removed", func(c berthtest.Container) bool {
		if info, err := os.Stat(filepath.Join(layer, "big")); err == nil {
			most = max(most, info.Size())
		}
		return c.State == "exit" && c.ContainerID != writer.ContainerID
	})
	require.NoDirExists(t, layer)
	require.Greater(t, most, limit/2)
	require.NotContains(t, string(b.Must(t, "GET", "/containers/writer/logs", nil).Body), "all written")
	require.Contains(t, string(b.Must(t, "GET", "/events?limit=1000", nil).Body), rootText)
	now := b.Container(t, "good")
	require.Equal(t, good.ContainerID, now.ContainerID)
	require.EqualValues(t, "running", now.State)
	t.Logf("the host lost %d MiB of %d MiB; the limit is %d MiB", most>>20, blocks*8, limit>>20)
}
