package console_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"berth/hack/test/berthtest"
	"berth/hack/test/enginetest"
)

// BenchmarkHundred runs a hundred containers: with nobody listening, with one
// client at all of them, without berth, and with a hundred of Docker's own stats streams
// instead. The figures are percent of a core, of berth and of the engine.
func BenchmarkHundred(b *testing.B) {
	own := enginetest.StartIsolated(b) // others do not disturb it
	b.Setenv("DOCKER_HOST", own.Host())
	d := berthtest.Start(b, berthtest.Options{})
	engine := family(b, own.Pid())
	for i := range b.N {
		var ids []string
		for j := range 100 {
			id := fmt.Sprintf("h%d-%d", i, j)
			d.Create(b, id, berthtest.Spec{"power": "running"})
			ids = append(ids, id)
		}
		var engineIDs []string
		for _, id := range ids {
			engineIDs = append(engineIDs, d.State(b, id, "running").ContainerID)
		}
		wait(20 * time.Second)
		use(b, d, engine, "idle-")
		b.ReportMetric(rss(b, d.Pid()), "MiB-idle")
		d.Term(b)
		began, used := time.Now(), sum(b, engine)
		wait(window)
		b.ReportMetric((sum(b, engine)-used).Seconds()/time.Since(began).Seconds()*100, "alone-engine-%")
		d.Run(b)
		d.Ready(b)
		all := dial(b, d, "")
		go func() { _, _ = io.Copy(io.Discard, all.NetConn()) }()
		use(b, d, engine, "watched-")
		_ = all.Close()
		end := dockerStats(b, engineIDs)
		use(b, d, engine, "docker-stats-")
		end()
	}
}

// window is how long each measurement takes: one resync falls into it.
const window = time.Minute

// use measures what berth and the engine use.
func use(b *testing.B, d *berthtest.Berth, engine []int, name string) {
	b.Helper()
	wait(3 * time.Second)
	began, berth, others := time.Now(), cpu(b, d.Pid()), sum(b, engine)
	wait(window)
	percent := func(used time.Duration) float64 { return used.Seconds() / time.Since(began).Seconds() * 100 }
	b.ReportMetric(percent(cpu(b, d.Pid())-berth), name+"berth-%")
	b.ReportMetric(percent(sum(b, engine)-others), name+"engine-%")
}

func sum(b *testing.B, pids []int) (total time.Duration) {
	for _, pid := range pids {
		total += cpu(b, pid)
	}
	return total
}

// family is a process and its children: dockerd and its containerd.
func family(b *testing.B, parent int) []int {
	b.Helper()
	pids := []int{parent}
	dirs, err := os.ReadDir("/proc")
	require.NoError(b, err)
	for _, dir := range dirs {
		text, _ := os.ReadFile("/proc/" + dir.Name() + "/stat")
		var pid, of int
		var state string
		_, err := fmt.Sscan(dir.Name(), &pid)
		if i := bytes.LastIndexByte(text, ')'); err == nil && i > 0 {
			if _, err := fmt.Sscan(string(text[i+2:]), &state, &of); err == nil && of == parent {
				pids = append(pids, pid)
			}
		}
	}
	require.Greater(b, len(pids), 1)
	return pids
}

// dockerStats follows the engine's own stats of containers.
func dockerStats(b *testing.B, ids []string) (end func()) {
	b.Helper()
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", enginetest.Socket())
	}}}
	ctx, cancel := context.WithCancel(b.Context())
	var all sync.WaitGroup
	for _, id := range ids {
		all.Go(func() {
			request, _ := http.NewRequestWithContext(ctx, http.MethodGet, "http://engine/containers/"+id+"/stats?stream=1", nil)
			answer, err := client.Do(request)
			if err != nil {
				return
			}
			defer answer.Body.Close()
			_, _ = io.Copy(io.Discard, answer.Body)
		})
	}
	return func() { cancel(); all.Wait() }
}
