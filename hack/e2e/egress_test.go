package e2e_test

import (
	"context"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	v1 "berth/api/v1"
	"berth/hack/test/berthtest"
	"berth/hack/test/enginetest"
	"berth/runtime"
	"berth/runtime/docker"
	"berth/runtime/firewall"
)

// within calls f on a thread in the network namespace of an isolated engine.
// Sockets that f opens and programs that it starts belong there.
func within(t *testing.T, engine *enginetest.Isolated, f func() error) {
	t.Helper()
	result := make(chan error)
	go func() {
		goruntime.LockOSThread() // never unlocked: the thread ends with its goroutine
		space, err := os.Open("/run/netns/" + engine.Netns)
		if err == nil {
			err = unix.Setns(int(space.Fd()), unix.CLONE_NEWNET)
			_ = space.Close()
		}
		if err == nil {
			err = f()
		}
		result <- err
	}()
	require.NoError(t, <-result)
}

// probe queries Docker's own DNS and connects to addresses that a container may
// reach and to others. Each line of output is an address and the exit code.
const probe = `
nslookup -type=a $(hostname) 127.0.0.11 >/dev/null 2>&1; echo "dns $?"
for to in GATEWAY:8070 GATEWAY:22 10.123.0.1:8070 10.123.0.1:22 169.254.169.254:80 169.254.169.254:53; do
	nc -w 5 ${to%:*} ${to#*:} </dev/null >/dev/null 2>&1; echo "$to $?"
done
echo end; sleep 1000
`

// TestEgressOnRealEngine starts containers on an isolated engine. In its network
// namespace the host listens on the port of berth's API, on another port, and on
// the address of a provider's metadata service.
func TestEgressOnRealEngine(t *testing.T) {
	engine := enginetest.StartIsolated(t)
	image := engine.Busybox(t)
	within(t, engine, func() error {
		for _, address := range []string{"0.0.0.0:8070", "0.0.0.0:22", "0.0.0.0:80", "0.0.0.0:53"} {
			listener, err := net.Listen("tcp", address)
			if err != nil {
				return err
			}
			accept(t, listener)
		}
		return exec.Command("sh", "-ec", "ip addr add 10.123.0.1/32 dev lo; ip addr add 169.254.169.254/32 dev lo").Run()
	})
	for _, filtered := range []bool{false, true} {
		config := docker.Config{Host: engine.Host(), StoreID: "egress" + t.Name(), Network: "berth", Keeper: berthtest.Keeper(t), Volumes: t.TempDir()}
		var gateway netip.Addr
		config.Guard = func(ctx context.Context, b runtime.Bridge) {
			gateway = b.Gateways[0]
			if filtered {
				within(t, engine, func() error {
					_, err := firewall.NewEgress("egress00", []int{8070}, v1.ProviderNetworks(), slog.New(slog.DiscardHandler)).Block(ctx, runtime.IPv4, b)
					return err
				})
			}
		}
		refused, lines := "1", probed(t, config, image, func() string { return gateway.String() })
		if !filtered {
			refused = "0"
		}
		require.Equal(t, strings.NewReplacer("GATEWAY", gateway.String(), "REFUSED", refused).Replace(
			"dns 0,GATEWAY:8070 REFUSED,GATEWAY:22 REFUSED,10.123.0.1:8070 REFUSED,10.123.0.1:22 0,169.254.169.254:80 REFUSED,169.254.169.254:53 0"),
			strings.Join(lines, ","))
	}
}

// probed runs probe in a container of an Engine and returns its output.
func probed(t *testing.T, config docker.Config, image string, gateway func() string) (lines []string) {
	t.Helper()
	e, err := docker.New(config, nil, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	defer e.Close()
	volume, name := t.TempDir(), runtime.Name{ID: "mc", Role: runtime.Server}
	_, err = e.Create(t.Context(), runtime.Spec{Name: name, SpecHash: "1", Image: image, Command: []string{"/bin/sh", "/home/container/probe"},
		Mounts: []runtime.Mount{{Source: volume, Target: "/home/container"}}, Workdir: "/home/container"})
	require.NoError(t, err)
	script := strings.ReplaceAll(probe, "GATEWAY", gateway())
	require.NoError(t, os.WriteFile(filepath.Join(volume, "probe"), []byte(script), 0o600))
	require.NoError(t, e.Start(t.Context(), name))
	state, err := e.Inspect(t.Context(), name)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), wait)
	defer cancel()
	_ = e.Logs(ctx, runtime.Target{ID: "mc", Role: runtime.Server, ContainerID: state.ContainerID, StartedAt: state.StartedAt}, state.StartedAt.Add(-wait),
		func(l runtime.Line) error {
			if string(l.Data) == "end" {
				cancel()
				return context.Canceled
			}
			lines = append(lines, string(l.Data))
			return nil
		})
	require.NoError(t, e.Kill(t.Context(), name))
	require.NoError(t, e.Remove(t.Context(), name))
	return lines
}

// accept accepts connections until the test ends.
func accept(t *testing.T, l net.Listener) {
	done := make(chan struct{})
	t.Cleanup(func() { _ = l.Close(); <-done })
	go func() {
		defer close(done)
		for conn, err := l.Accept(); err == nil; conn, err = l.Accept() {
			_ = conn.Close()
		}
	}()
}
