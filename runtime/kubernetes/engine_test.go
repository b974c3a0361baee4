//go:build cluster

package kubernetes

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"berth/hack/test/enginetest"
	"berth/runtime"
)

// TestCluster checks what the suite of engines cannot: Kubernetes' own ways to interfere.
func TestCluster(t *testing.T) {
	c := newCluster(t)
	open := enginetest.StartRegistryAt(t, c.host+":5000", "", "")
	locked := enginetest.StartRegistryAt(t, c.host+":5001", "me", "secret")
	image := push(t, open, "cluster:1")
	private := push(t, locked, "private:1")
	require.NoError(t, c.Pull(t.Context(), image, runtime.Auth{}, nil))
	require.NoError(t, c.Pull(t.Context(), private, runtime.Auth{Host: locked.Addr, Username: "me", Password: "secret"}, nil))
	for name, test := range map[string]func(*testing.T, cluster, runtime.Spec){
		"volume":               testVolume,
		"text is not expanded": testLiteral,
		"command missing":      testCommandMissing,
		"no room":              testNoRoom,
		"address":              testAddress,
		"drained":              testDrained,
		"killed without exec":  testKilledWithoutExec,
		"taken back":           testTakenBack,
		"terminal":             testTerminal,
		"private image": func(t *testing.T, c cluster, s runtime.Spec) {
			s.Image = private
			c.start(t, s)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			id := strings.ToLower(strings.ReplaceAll(t.Name(), "/", "-"))
			test(t, c, runtime.Spec{Name: runtime.Name{ID: id, Role: runtime.Server}, SpecHash: "1", Image: image, Command: []string{"sleep", "100000"}})
		})
	}
}

// shell returns s with a script as its command.
func shell(s runtime.Spec, script string) runtime.Spec {
	s.Command = []string{"sh", "-c", script}
	return s
}

func (c cluster) start(t *testing.T, s runtime.Spec) {
	t.Helper()
	_, err := c.Create(t.Context(), s)
	require.NoError(t, err)
	c.begin(t, s.Name)
}

// begin starts a container that was created.
func (c cluster) begin(t *testing.T, n runtime.Name) {
	t.Helper()
	enginetest.Until(t, time.Minute, "a start", func() bool {
		err := c.Start(t.Context(), n)
		if errors.Is(err, runtime.ErrStarting) {
			return false
		}
		require.NoError(t, err)
		return true
	})
}

func (c cluster) awaitExit(t *testing.T, n runtime.Name) (s runtime.State) {
	t.Helper()
	enginetest.Until(t, time.Minute, "the exit of a run", func() bool {
		var err error
		s, err = c.Inspect(t.Context(), n)
		require.NoError(t, err)
		return !s.Running && !s.StartedAt.IsZero()
	})
	return s
}

func (c cluster) output(t *testing.T, n runtime.Name) (text string) {
	t.Helper()
	s, err := c.Inspect(t.Context(), n)
	require.NoError(t, err)
	target := runtime.Target{ContainerID: s.ContainerID, StartedAt: s.StartedAt, TTY: s.TTY, Ended: true}
	require.NoError(t, c.Logs(t.Context(), target, time.Time{}, func(l runtime.Line) error {
		text += string(l.Data) + "\n"
		return nil
	}))
	return text
}

func testVolume(t *testing.T, c cluster, s runtime.Spec) {
	volume, extra := filepath.Join(c.cfg.Volumes, "v1"), filepath.Join(c.cfg.Volumes, "v2")
	require.NoError(t, os.Mkdir(volume, 0o777))
	require.NoError(t, os.Mkdir(extra, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(extra, "f"), []byte("shared"), 0o644))
	s.Mounts = []runtime.Mount{{Source: volume, Target: "/home/container"}, {Source: extra, Target: "/mnt", ReadOnly: true}}
	s.Workdir = "/home/container"
	c.start(t, shell(s, "cat /mnt/f >copy; (echo x >/mnt/f) && exit 1; (echo x >/.berth/keeper) && exit 2; exit 0"))
	require.Zero(t, c.awaitExit(t, s.Name).ExitCode, "1: the second mount is writable; 2: the keeper is")
	text, err := os.ReadFile(filepath.Join(volume, "copy"))
	require.NoError(t, err)
	require.Equal(t, "shared", string(text))
}

func testLiteral(t *testing.T, c cluster, s runtime.Spec) {
	s.Env = []string{"A=$(B) $$ $(A", "B=b"}
	c.start(t, shell(s, `echo '$(B) $$(B) $$'; echo "$A"`))
	c.awaitExit(t, s.Name)
	require.Equal(t, "$(B) $$(B) $$\n$(B) $$ $(A\n", c.output(t, s.Name))
}

func testCommandMissing(t *testing.T, c cluster, s runtime.Spec) {
	s.Command = []string{"no-such-program"}
	_, err := c.Create(t.Context(), s)
	require.NoError(t, err)
	if err := c.Start(t.Context(), s.Name); err != nil { // it may have run for a moment
		require.ErrorIs(t, err, runtime.ErrBadCommand)
	}
	require.Equal(t, 127, c.awaitExit(t, s.Name).ExitCode)
}

func testNoRoom(t *testing.T, c cluster, s runtime.Spec) {
	s.Live = runtime.Live{Memory: 1 << 50}
	_, err := c.Create(t.Context(), s)
	require.NoError(t, err)
	require.ErrorIs(t, c.Start(t.Context(), s.Name), runtime.ErrNoRoom)
	require.True(t, gated(c.pod(t, s.Name)), "it does not start by itself later")
	require.NoError(t, c.Remove(t.Context(), s.Name))
}

func testAddress(t *testing.T, c cluster, s runtime.Spec) {
	port := runtime.Port{IP: "203.0.113.1", Port: 21000, ContainerPort: 25565, Protocol: "tcp"}
	s.Ports = []runtime.Port{port}
	_, err := c.Create(t.Context(), s)
	require.ErrorIs(t, err, runtime.ErrNoAddress)
	s.Ports[0].IP = "10.77.0.101"
	c.start(t, s)
	require.Equal(t, "n1", c.pod(t, s.Name).Spec.NodeName)
	s.Ports[0].Port, s.SpecHash = kubeletPort, "2"
	_, err = c.Create(t.Context(), s)
	require.ErrorIs(t, err, runtime.ErrInvalid, "the kubelet would lose its port")
}

// testDrained evicts a container that runs, as the drain of a node does.
func testDrained(t *testing.T, c cluster, s runtime.Spec) {
	s.StopSignal = "SIGINT"
	c.start(t, shell(s, "trap 'exit 7' INT; echo ready; while true; do sleep 0.05; done"))
	enginetest.Until(t, time.Minute, "its output", func() bool { return c.output(t, s.Name) == "ready\n" })
	before, err := c.Inspect(t.Context(), s.Name)
	require.NoError(t, err)
	name := c.pod(t, s.Name).Name
	eviction := fmt.Appendf(nil, `{"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": %q}}`, name)
	request := c.admin.client.Post().Namespace(c.cfg.Namespace).Resource("pods").Name(name).SubResource("eviction")
	require.NoError(t, request.Body(eviction).Do(t.Context()).Error())
	enginetest.Until(t, time.Minute, "the end of the deletion", func() bool { return gone(c.pod(t, s.Name)) })
	end := c.awaitExit(t, s.Name)
	require.Equal(t, 7, end.ExitCode, "the finalizer keeps the pod with its exit code")
	require.True(t, end.Interrupted)
	c.begin(t, s.Name)
	after, err := c.Inspect(t.Context(), s.Name)
	require.NoError(t, err)
	require.True(t, after.Running)
	require.Equal(t, before.ContainerID, after.ContainerID)
	require.True(t, after.StartedAt.After(before.StartedAt))
}

// testKilledWithoutExec kills a container in which no further process can be started.
func testKilledWithoutExec(t *testing.T, c cluster, s runtime.Spec) {
	s.StopSignal = "SIGCONT" // the deletion of the pod must not depend on TERM
	program, err := os.ReadFile(c.cfg.Keeper)
	require.NoError(t, err)
	folder := filepath.Join(c.cfg.Volumes, "keeper", "own")
	require.NoError(t, os.MkdirAll(folder, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "keeper"), program, 0o755))
	pod, err := c.podOf(t.Context(), s)
	require.NoError(t, err)
	pod.Spec.Containers[0].VolumeMounts[0].SubPath = "keeper/own"
	require.NoError(t, c.post(t.Context(), pod))
	c.begin(t, s.Name)
	require.NoError(t, os.Chmod(filepath.Join(folder, "keeper"), 0o644)) // so that an exec of it fails
	require.NoError(t, c.Kill(t.Context(), s.Name))
	require.Equal(t, killed, c.awaitExit(t, s.Name).ExitCode)
	require.NoError(t, c.Remove(t.Context(), s.Name))
}

// testTakenBack kills a container whose image cannot be pulled.
func testTakenBack(t *testing.T, c cluster, s runtime.Spec) {
	image, _ := c.images.get(s.Image)
	image.ref = image.ref[:len(image.ref)-4] + "0000"
	c.images.put("gone", image)
	s.Image = "gone"
	_, err := c.Create(t.Context(), s)
	require.NoError(t, err)
	require.ErrorIs(t, c.Start(t.Context(), s.Name), runtime.ErrImageNotFound)
	require.True(t, gated(c.pod(t, s.Name)))
	state, err := c.Inspect(t.Context(), s.Name)
	require.NoError(t, err)
	require.False(t, state.Running)
	require.True(t, state.StartedAt.IsZero(), "it never ran")

	// A start in progress is taken back by a kill.
	require.NoError(t, c.patch(t.Context(), c.pod(t, s.Name), "", operation{Op: "remove", Path: "/spec/schedulingGates"}))
	state, err = c.Inspect(t.Context(), s.Name)
	require.NoError(t, err)
	require.True(t, state.Starting)
	require.NoError(t, c.Kill(t.Context(), s.Name))
	require.True(t, gated(c.pod(t, s.Name)))

	// So it is by a removal.
	require.NoError(t, c.patch(t.Context(), c.pod(t, s.Name), "", operation{Op: "remove", Path: "/spec/schedulingGates"}))
	require.NoError(t, c.Remove(t.Context(), s.Name))
}

func testTerminal(t *testing.T, c cluster, s runtime.Spec) {
	s.TTY = true
	c.start(t, shell(s, "stty -echo; echo ready; read line; echo got $line; exit 5"))
	enginetest.Until(t, time.Minute, "its output", func() bool { return strings.Contains(c.output(t, s.Name), "ready") })
	state, err := c.Inspect(t.Context(), s.Name)
	require.NoError(t, err)
	require.NoError(t, c.Input(t.Context(), state.ContainerID, []byte("hello\n")))
	require.Equal(t, 5, c.awaitExit(t, s.Name).ExitCode)
	require.Contains(t, c.output(t, s.Name), "got hello")
}
