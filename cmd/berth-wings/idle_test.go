package main

import (
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/prometheus/procfs"
	"github.com/stretchr/testify/require"

	"berth/hack/test/berthtest"
	"berth/hack/test/enginetest"
	"berth/hack/test/paneltest"
)

// bridgeOf is the environment variable that has this program be the bridge of a node's file.
const bridgeOf = "WINGS_TEST_CONFIG"

func TestMain(m *testing.M) {
	if file := os.Getenv(bridgeOf); file != "" {
		os.Args = []string{"berth-wings", "--config", file}
		main()
		return
	}
	flag.Parse()
	_ = flag.Set("test.parallel", "64") // the customers of a day mostly wait
	os.Exit(m.Run())
}

// BenchmarkIdle measures the memory of a bridge whose servers do nothing, and its share of a processor.
func BenchmarkIdle(b *testing.B) {
	const servers, window = 100, time.Minute
	daemon := berthtest.Start(b, berthtest.Options{})
	daemon.Engine.Import(b, "berth-test/wings:1", enginetest.BusyboxTar(b), `CMD ["sh"]`)
	p := paneltest.Start(b)
	n := newProcess(b, p, daemon, "")
	n.start()
	for i := range servers {
		uuid := fmt.Sprintf("a1a1a1a1-1111-4111-8111-%012d", i)
		p.SetServer(b, fmt.Sprintf(`{"settings": {"uuid": %q, "meta": {"name": "s"}, "environment": {"A": "b"}, "invocation": "read x", "skip_egg_scripts": true,
"build": {"memory_limit": 64, "swap": 0, "io_weight": 500, "cpu_limit": 50, "disk_space": 16, "oom_killer": true}, "container": {"image": "~berth-test/wings:1"},
"allocations": {"default": {"ip": "127.0.0.1", "port": %d}, "mappings": {}}, "egg": {}},
"process_configuration": {"startup": {"done": ["Done"]}, "stop": {"type": "command", "value": "stop"}, "configs": []}}`, uuid, 40000+i))
		n.Want(b, 202, "POST", "/api/servers", map[string]any{"uuid": uuid})
		p.Await(b, "POST /servers/"+uuid+"/install", 1)
	}
	process, err := procfs.NewProc(n.cmd.Process.Pid)
	require.NoError(b, err)
	for b.Loop() {
		before, err := process.Stat()
		require.NoError(b, err)
		time.Sleep(window)
		after, err := process.Stat()
		require.NoError(b, err)
		b.ReportMetric(float64(after.ResidentMemory())/(1<<20), "MiB")
		b.ReportMetric(100*(after.CPUTime()-before.CPUTime())/window.Seconds(), "%core")
	}
}
