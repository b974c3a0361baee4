package console_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"berth/hack/bench/table"
	"berth/hack/test/berthtest"
)

// rounds is how often BenchmarkGame measures with and without load, each for roundTime.
const (
	rounds    = 5
	roundTime = 20 * time.Second
)

// BenchmarkGame runs a program with a tick of 50 ms, as a game has, beside a backup, an archive that
// is written, one that is extracted and a search of 100,000 files, all again and again, and alone, in
// turn: how late the work of its ticks is done. The daemon has the weight of the service.
func BenchmarkGame(b *testing.B) {
	d := berthtest.Start(b, berthtest.Options{})
	game := d.Volume(b)
	program := filepath.Join(d.Data, "volumes", game, "game")
	build := exec.Command("go", "build", "-o", program, "./testdata/game")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	require.NoError(b, err, "%s", out)
	require.NoError(b, os.Chmod(program, 0o755))
	d.Started(b, "game", berthtest.Spec{"startup_command": "./game", "volume_id": game})
	weigh(b, d.Pid())
	busy := busyVolume(b, d)
	wait(5 * time.Second)

	var quiet, loaded []period
	for b.Loop() {
		for range rounds {
			quiet = append(quiet, during(func() { wait(roundTime) }))
			end := load(b, d, busy)
			wait(2 * time.Second)
			loaded = append(loaded, during(func() { wait(roundTime) }))
			end()
			wait(2 * time.Second)
		}
	}
	wait(2 * time.Second)
	alone, beside := lateness(b, filepath.Join(filepath.Dir(program), "ticks"), quiet, loaded)
	for _, percent := range []int{50, 99} {
		table.Add(b, table.Row{Measure: fmt.Sprintf("tick of a game beside work in volumes, p%d later than alone", percent), Unit: "ms",
			Berth: []float64{quantile(b, beside, percent) - quantile(b, alone, percent)}, Goal: table.AtMost(1)})
	}
	b.Logf("p99 alone %.2f ms, beside %.2f ms; %d and %d ticks", quantile(b, alone, 99), quantile(b, beside, 99), len(alone), len(beside))
}

// serviceWeight is the CPUWeight of hack/berth.service, of 100.
const serviceWeight = 10

// weigh gives the daemon the share of the processors that systemd gives the service.
func weigh(b *testing.B, pid int) {
	const root = "/sys/fs/cgroup"
	parent, file, weight := root, "cpu.weight", serviceWeight
	if _, err := os.Stat(filepath.Join(root, "cgroup.controllers")); err != nil { // version 1
		parent, file, weight = filepath.Join(root, "cpu"), "cpu.shares", serviceWeight*1024/100
	}
	group := filepath.Join(parent, fmt.Sprintf("berth-bench-%d", pid))
	write := func(path string, n int) {
		require.NoError(b, os.WriteFile(path, []byte(fmt.Sprint(n)), 0o644))
	}
	require.NoError(b, os.Mkdir(group, 0o755))
	write(filepath.Join(group, file), weight)
	write(filepath.Join(group, "cgroup.procs"), pid)
	b.Cleanup(func() {
		write(filepath.Join(parent, "cgroup.procs"), pid)
		require.NoError(b, os.Remove(group))
	})
}

type period struct{ from, to time.Time }

func during(do func()) period {
	from := time.Now()
	do()
	return period{from, time.Now()}
}

// lateness returns how late the ticks of some periods were.
func lateness(b *testing.B, path string, quiet, loaded []period) (alone, beside []time.Duration) {
	text, err := os.ReadFile(path)
	require.NoError(b, err)
	within := func(list []period, at time.Time) bool {
		for _, p := range list {
			if at.After(p.from) && at.Before(p.to) {
				return true
			}
		}
		return false
	}
	for line := range strings.Lines(string(text)) {
		var due, late int64
		if n, _ := fmt.Sscan(line, &due, &late); n != 2 {
			continue // it is being written
		}
		switch at := time.Unix(0, due); {
		case within(quiet, at):
			alone = append(alone, time.Duration(late))
		case within(loaded, at):
			beside = append(beside, time.Duration(late))
		}
	}
	return alone, beside
}

// busyVolume returns a volume with a file of 1 GiB, a folder of 64 MiB, an archive of it, and a
// folder of 100,000 files.
func busyVolume(b *testing.B, d *berthtest.Berth) string {
	volume := d.Volume(b)
	dir := filepath.Join(d.Data, "volumes", volume)
	random := func(name string, size int64) {
		f, err := os.Create(filepath.Join(dir, name))
		require.NoError(b, err)
		_, err = io.CopyN(f, rand.Reader, size)
		require.NoError(b, err)
		require.NoError(b, f.Close())
	}
	random("world", 1<<30)
	require.NoError(b, os.Mkdir(filepath.Join(dir, "part"), 0o755))
	for i := range 64 {
		random(fmt.Sprintf("part/%d", i), 1<<20)
	}
	for i := range 100 {
		folder := filepath.Join(dir, fmt.Sprintf("many/%d", i))
		require.NoError(b, os.MkdirAll(folder, 0o755))
		for j := range 1000 {
			require.NoError(b, os.WriteFile(filepath.Join(folder, fmt.Sprint(j)), nil, 0o644))
		}
	}
	d.Must(b, http.MethodPost, "/volumes/"+volume+"/compress", map[string]any{"paths": []string{"part"}, "output_name": "part", "format": "tar.gz"})
	return volume
}

// load keeps a volume busy until end.
func load(b *testing.B, d *berthtest.Berth, volume string) (end func()) {
	ctx, cancel := context.WithCancel(b.Context())
	var busy sync.WaitGroup
	at := "/volumes/" + volume
	repeat := func(do func() error) {
		busy.Go(func() {
			for ctx.Err() == nil {
				if err := do(); err != nil && ctx.Err() == nil {
					b.Error(err)
					return
				}
			}
		})
	}
	call := func(method, path string, body any) error {
		answer, err := d.Try(ctx, method, path, body)
		if err == nil && answer.Status >= 300 && answer.Status != http.StatusTooManyRequests {
			err = fmt.Errorf("%s %s: %d %s", method, path, answer.Status, answer.Body)
		}
		return err
	}
	n := 0
	repeat(func() error {
		n++
		name := fmt.Sprintf("made-%d-%d", time.Now().UnixNano(), n)
		if err := call(http.MethodPost, at+"/compress", map[string]any{"paths": []string{"part"}, "output_name": name, "format": "tar.gz"}); err != nil {
			return err
		}
		return call(http.MethodDelete, at+"/files?path="+name+".tar.gz", nil)
	})
	repeat(func() error {
		return call(http.MethodPost, at+"/decompress", map[string]any{"archive_path": "part.tar.gz", "destination": "extracted"})
	})
	repeat(func() error { return call(http.MethodGet, at+"/files/search?query=nothing*", nil) })
	repeat(func() error { return whole(ctx, d, at) })
	return func() { cancel(); busy.Wait() }
}

// whole makes a backup of a volume, waits until it has ended, and deletes it.
func whole(ctx context.Context, d *berthtest.Berth, at string) error {
	var made struct {
		ID    string `json:"backup_id"`
		State string
	}
	answer, err := d.Try(ctx, http.MethodPost, at+"/backups", nil)
	if err != nil || answer.Status >= 300 {
		wait(time.Second)
		return err
	}
	if err := json.Unmarshal(answer.Body, &made); err != nil {
		return err
	}
	for made.State != "completed" && made.State != "failed" {
		select {
		case <-ctx.Done():
		case <-time.After(200 * time.Millisecond):
		}
		answer, err := d.Try(context.WithoutCancel(ctx), http.MethodGet, "/backups/"+made.ID, nil)
		if err != nil {
			return err
		}
		if err := json.Unmarshal(answer.Body, &made); err != nil || ctx.Err() != nil {
			break
		}
	}
	_, err = d.Try(context.WithoutCancel(ctx), http.MethodDelete, "/backups/"+made.ID, nil)
	return err
}
