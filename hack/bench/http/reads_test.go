package http_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/hack/bench/table"
	"berth/hack/test/berthtest"
	"berth/store"
)

// noEngine is an engine that never answers: the containers of these benchmarks are
// records only, and the daemon leaves them as they are.
const noEngine = "DOCKER_HOST=unix:///nonexistent/docker.sock"

const (
	rounds = 7
	round  = time.Second
)

// withContainers returns a daemon without an engine, with n containers that run.
func withContainers(b *testing.B, n int) *berthtest.Berth {
	b.Helper()
	d := berthtest.Prepare(b, berthtest.Options{Env: []string{noEngine}})
	fill(b, filepath.Join(d.Data, "store"), n)
	d.Run(b)
	d.Answers(b, "/healthz")
	idle(b, d.Pid())
	return d
}

// idle waits until a process uses next to no processor time: a daemon that has just
// started creates the directories of its volumes and reads everything once.
func idle(b *testing.B, pid int) {
	b.Helper()
	berthtest.Until(b, 2*time.Minute, "the daemon is idle", func() bool {
		before := processorTime(b, pid)
		time.Sleep(time.Second)
		return processorTime(b, pid)-before <= 20*time.Millisecond
	})
}

// fill stores n containers of a usual size, and a volume for each.
func fill(b *testing.B, dir string, n int) {
	b.Helper()
	s, err := store.Open(dir, store.Options{})
	require.NoError(b, err)
	for from := 0; from < n; from += 100 {
		require.NoError(b, s.Update(func(tx *store.Tx) error {
			for i := from; i < min(n, from+100); i++ {
				if err := put(tx, i); err != nil {
					return err
				}
			}
			return nil
		}))
	}
	require.NoError(b, s.Close())
}

func put(tx *store.Tx, i int) error {
	volume := fmt.Sprintf("00000000-0000-4000-8000-%012d", i)
	if err := store.Volumes.Create(tx, volume, v1.VolumeSpec{}); err != nil {
		return err
	}
	id := fmt.Sprintf("server-%05d", i)
	err := store.Containers.Create(tx, id, v1.ContainerSpec{Image: "ghcr.io/games/java:21", VolumeID: volume,
		StartupCommand: "java -Xms128M -jar server.jar", StartPattern: "^Done", InstallScript: new(strings.Repeat("y", 2000)),
		Ports:  []v1.Port{{IP: "0.0.0.0", Port: 20000 + i, Protocol: "tcp"}},
		Env:    map[string]string{"EULA": "true", "MEMORY": "2048"},
		Labels: map[string]string{"owner": fmt.Sprint("customer-", i%50)},
		Stop:   v1.Stop{Command: "stop"}, RestartPolicy: v1.RestartPolicy{Mode: v1.RestartOnFailure},
		Power: v1.PowerOn, InstallGeneration: 1, RunGeneration: 1})
	if err != nil {
		return err
	}
	return store.Containers.SetStatus(tx, id, func(st *v1.ContainerStatus) {
		now := tx.Now()
		st.Phase, st.Since, st.StartedAt, st.Seq = v1.Running, now, &now, 1
		st.ContainerID = strings.Repeat("0123456789abcdef", 4)
		st.ObservedInstall, st.ObservedRun, st.StartedInstall, st.ObservedGeneration = 1, 1, 1, 1
		st.Conditions = []v1.Condition{
			{Type: v1.ImageAvailable, Status: v1.True, Reason: "Present", Message: "the image is available", Since: now},
			{Type: v1.Installed, Status: v1.True, Reason: "Exited", Message: "the installation ended with exit code 0", Since: now},
			{Type: v1.Started, Status: v1.True, Reason: "Matched", Message: "the start pattern matched", Since: now},
		}
	})
}

// get returns the bytes of a GET.
func get(d *berthtest.Berth, path string) string {
	return "GET " + path + " HTTP/1.1\r\nHost: " + d.Addr + "\r\nAuthorization: Bearer " + d.Token +
		"\r\nAccept: application/vnd.berthv1+json\r\n\r\n"
}

// BenchmarkReads is a panel that reads again and again, against a bare Fiber handler
// with the same bytes, alternating. The goals are rates of a machine with two processors.
func BenchmarkReads(b *testing.B) {
	d := withContainers(b, 100)
	compareReads(b, d, "GET /containers with 100", "/containers", 4000)
	compareReads(b, d, "GET /containers/<id>", "/containers/server-00042", 8000)
	compareReads(b, withContainers(b, 1000), "GET /containers with 1000", "/containers", 33)
}

func compareReads(b *testing.B, d *berthtest.Berth, measure, path string, goal float64) {
	b.Helper()
	body := d.Do(b, "GET", path, nil).Body
	mine, floor := target{d.Addr, d.Pid()}, newFloor(b, body)
	row, floors, cpu := table.Row{Measure: measure, Unit: "/s", Goal: table.AtLeast(goal)}, []float64{}, []float64{}
	for range rounds {
		one, bare := mine.load(b, get(d, path), len(body), round), floor.load(b, get(d, path), len(body), round)
		row.Berth, floors, cpu = append(row.Berth, one.rate), append(floors, bare.rate), append(cpu, one.cpu)
	}
	table.Add(b, row)
	b.Logf("%s: %.3f of the bare handler, %.1f µs of a processor each", measure, table.Median(row.Berth)/table.Median(floors), table.Median(cpu))
}
