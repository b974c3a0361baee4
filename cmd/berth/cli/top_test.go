package cli

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const measuredContainers = `200 {"containers":[
	{"internal_id":"idle","state":"exit","stats":null},
	{"internal_id":"busy","state":"running","stats":{"cpu_usage":151.26,"memory_usage":67108864,"memory_limit":134217728,"network_rx":1024,
		"network_tx":2048,"block_read":1,"block_write":2,"pids":7,"uptime":61,"disk_usage":1048576}},
	{"internal_id":"big","state":"running","stats":{"cpu_usage":0.5,"memory_usage":1073741824,"memory_limit":0,"disk_usage":null}}]}`

func TestTop(t *testing.T) {
	f := newFakeAPI(t, map[string]string{"GET /containers?stats=true": measuredContainers})
	out, _, err := command(t, f.env(), "top")
	require.NoError(t, err)
	rows := strings.Split(out, "\n")
	require.Equal(t, "CONTAINER  CPU %  MEMORY  LIMIT   MEM %  NET RX  NET TX  DISK  PIDS  UP", rows[0])
	require.Equal(t, "busy       151.3  64MiB   128MiB  50.0   1KiB    2KiB    1MiB  7     1m01s", rows[1])
	require.Equal(t, "big        0.5    1GiB    0B      -      0B      0B      -     0     0s", rows[2])
	require.Len(t, rows, 4)

	for args, want := range map[string]string{"--sort memory": "big busy", "--sort network": "busy big", "--sort name": "big busy", "big": "big", "idle": ""} {
		out, _, err = command(t, f.env(), append([]string{"top", "-o", "name"}, strings.Fields(args)...)...)
		require.NoError(t, err)
		require.Equal(t, want, strings.Join(strings.Fields(out), " "), args)
	}
	out, _, err = command(t, f.env(), "top", "nope", "big", "-o", "json")
	require.EqualError(t, err, "nope: Container not found")
	require.Equal(t, exitNotFound, ExitCode(err))
	var body struct{ Containers []map[string]any }
	require.NoError(t, json.Unmarshal([]byte(out), &body))
	require.Len(t, body.Containers, 1)
	require.Equal(t, "big", body.Containers[0]["internal_id"])

	_, _, err = command(t, f.env(), "top", "--sort", "luck")
	require.Equal(t, exitUsage, ExitCode(err))
	f.set("GET /containers?stats=true", `200 {"containers":[]}`)
	out, _, err = command(t, f.env(), "top")
	require.NoError(t, err)
	require.Equal(t, "No container runs.\n", out)
}

// TestTopOnTerminal is live, and prints one table with --once.
func TestTopOnTerminal(t *testing.T) {
	t.Parallel()
	f := newFakeAPI(t, map[string]string{"GET /containers?stats=true": measuredContainers})
	run := func(tty *fakeTerminal, args ...string) func(context.Context) error {
		return func(ctx context.Context) error {
			root := NewRoot(Options{Environ: f.env()})
			root.SetArgs(append([]string{"top"}, args...))
			root.SetOut(Printable(tty.File))
			return root.ExecuteContext(ctx)
		}
	}
	tty := openTerminal(t, 120, 20)
	stop := background(t, run(tty))
	tty.until(t, "\x1b[2J\x1b[HCONTAINER")
	tty.until(t, "151.3")
	f.set("GET /containers?stats=true", strings.Replace(measuredContainers, "151.26", "7", 1))
	tty.until(t, "busy       7.0 ")
	require.NoError(t, stop())
	once := openTerminal(t, 120, 20)
	require.NoError(t, run(once, "--once")(t.Context()))
	once.until(t, "big ")
	require.NotContains(t, once.shown(), "\x1b[2J")
}
