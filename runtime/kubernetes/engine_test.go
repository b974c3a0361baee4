//go:build cluster

package kubernetes

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	core1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"berth/hack/test/enginetest"
	"berth/hack/test/kubetest"
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
		"deleted":              testDeleted,
		"load balancer":        testLoadBalancer,
		"killed without exec":  testKilledWithoutExec,
		"taken back":           testTakenBack,
		"terminal":             testTerminal,
		"private image": func(t *testing.T, c cluster, s runtime.Spec) {
			s.Image = private
			c.start(t, s)
			secret := "/api/v1/namespaces/" + c.cfg.Namespace + "/secrets/" + c.podName(s.Name)
			require.NoError(t, c.admin.client.Get().AbsPath(secret).Do(t.Context()).Error())
			require.NoError(t, c.Kill(t.Context(), s.Name))
			require.NoError(t, c.Remove(t.Context(), s.Name))
			require.True(t, apierrors.IsNotFound(c.admin.client.Get().AbsPath(secret).Do(t.Context()).Error()), "nobody needs it")
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
	testInterrupted(t, c, s, func(pod string) *rest.Request {
		eviction := fmt.Appendf(nil, `{"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": %q}}`, path.Base(pod))
		return c.admin.client.Post().AbsPath(pod + "/eviction").Body(eviction)
	})
}

// testDeleted deletes the pod of a container that runs, as an operator does.
func testDeleted(t *testing.T, c cluster, s runtime.Spec) {
	testInterrupted(t, c, s, func(pod string) *rest.Request { return c.admin.client.Delete().AbsPath(pod) })
}

func testInterrupted(t *testing.T, c cluster, s runtime.Spec, end func(pod string) *rest.Request) {
	s.StopSignal = "SIGINT"
	c.start(t, shell(s, "trap 'exit 7' INT; echo ready; while true; do sleep 0.05; done"))
	enginetest.Until(t, time.Minute, "its output", func() bool { return c.output(t, s.Name) == "ready\n" })
	before, err := c.Inspect(t.Context(), s.Name)
	require.NoError(t, err)
	require.NoError(t, end("/api/v1/namespaces/"+c.cfg.Namespace+"/pods/"+c.pod(t, s.Name).Name).Do(t.Context()).Error())
	enginetest.Until(t, time.Minute, "the end of the deletion", func() bool { return gone(c.pod(t, s.Name)) })
	exit := c.awaitExit(t, s.Name)
	require.Equal(t, 7, exit.ExitCode, "the finalizer keeps the pod with its exit code")
	require.True(t, exit.Interrupted)
	c.begin(t, s.Name)
	after, err := c.Inspect(t.Context(), s.Name)
	require.NoError(t, err)
	require.True(t, after.Running)
	require.Equal(t, before.ContainerID, after.ContainerID)
	require.True(t, after.StartedAt.After(before.StartedAt))
}

// testLoadBalancer publishes a port by a Service. The test is the load balancer.
func testLoadBalancer(t *testing.T, c cluster, s runtime.Spec) {
	cfg := c.cfg
	cfg.Balancer = &Balancer{Class: "berth.io/test", Annotations: map[string]string{"berth.io/address": "{ip}"}}
	engine, err := New(cfg, nil, c.log)
	require.NoError(t, err)
	image, _ := c.images.get(s.Image)
	engine.images.put(s.Image, image)
	c.Engine = engine
	s = shell(s, "while true; do echo hello | nc -l -p 25565; done")
	s.Ports = []runtime.Port{{IP: c.host, Port: 21100, ContainerPort: 25565, Protocol: "tcp"}}

	_, err = c.Create(t.Context(), s)
	require.NoError(t, err)
	require.ErrorIs(t, c.Start(t.Context(), s.Name), runtime.ErrNoAddress, "the load balancer has not answered")
	require.True(t, gated(c.pod(t, s.Name)), "it does not start by itself later")
	require.Equal(t, c.host, c.serviceOf(t, s.Name).Annotations["berth.io/address"])
	c.balance(t, s.Name, `{"ip": "10.77.0.99"}`)
	require.ErrorIs(t, c.Start(t.Context(), s.Name), runtime.ErrNoAddress)
	c.balance(t, s.Name, `{"ip": "`+c.host+`", "ports": [{"port": 21100, "protocol": "TCP", "error": "Taken"}]}`)
	require.ErrorIs(t, c.Start(t.Context(), s.Name), runtime.ErrPortTaken)
	c.balance(t, s.Name, `{"ip": "`+c.host+`"}`)
	c.begin(t, s.Name)
	require.Nil(t, c.pod(t, s.Name).Spec.Affinity, "it may run on every node")
	c.awaitHello(t, s.Name)
	require.NoError(t, c.Kill(t.Context(), s.Name))
	c.begin(t, s.Name)
	c.awaitHello(t, s.Name) // from the next run, by the same Service

	require.NoError(t, c.Kill(t.Context(), s.Name))
	s.Ports[0].Port, s.SpecHash = 21101, "2"
	_, err = c.Create(t.Context(), s)
	require.NoError(t, err)
	c.begin(t, s.Name)
	ports := c.serviceOf(t, s.Name).Spec.Ports
	require.Len(t, ports, 1)
	require.EqualValues(t, 21101, ports[0].Port)
	require.NoError(t, c.Kill(t.Context(), s.Name))
	require.NoError(t, c.Remove(t.Context(), s.Name))
	request := c.admin.client.Get().Namespace(c.cfg.Namespace).Resource("services").Name(c.podName(s.Name))
	require.True(t, apierrors.IsNotFound(request.Do(t.Context()).Error()))
}

// serviceOf returns the Service of a container.
func (c cluster) serviceOf(t *testing.T, n runtime.Name) (s core1.Service) {
	t.Helper()
	request := c.admin.client.Get().Namespace(c.cfg.Namespace).Resource("services").Name(c.podName(n))
	require.NoError(t, request.Do(t.Context()).Into(&s))
	return s
}

// balance sets what a load balancer reports about the Service of a container.
func (c cluster) balance(t *testing.T, n runtime.Name, ingress string) {
	t.Helper()
	status := `{"status": {"loadBalancer": {"ingress": [` + ingress + `]}}}`
	request := c.admin.client.Patch(types.MergePatchType).Namespace(c.cfg.Namespace).Resource("services").Name(c.podName(n)).SubResource("status")
	require.NoError(t, request.Body([]byte(status)).Do(t.Context()).Error())
}

// awaitHello connects to what the Service of a container has selected, as a load balancer does,
// until the container answers.
func (c cluster) awaitHello(t *testing.T, n runtime.Name) {
	t.Helper()
	enginetest.Until(t, time.Minute, "the container's answer", func() bool {
		var slices struct {
			Items []struct {
				Endpoints []struct{ Addresses []string }
				Ports     []struct{ Port int }
			}
		}
		path := "/apis/discovery.k8s.io/v1/namespaces/" + c.cfg.Namespace + "/endpointslices"
		answer, err := c.admin.client.Get().AbsPath(path).SetHeader("Accept", "application/json").Param("labelSelector", "kubernetes.io/service-name="+c.podName(n)).DoRaw(t.Context())
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(answer, &slices))
		if len(slices.Items) == 0 || len(slices.Items[0].Endpoints) == 0 {
			return false
		}
		ip := slices.Items[0].Endpoints[0].Addresses[0]
		out, err := exec.Command("ip", "route", "replace", ip, "via", kubetest.Node).CombinedOutput()
		require.NoError(t, err, "%s", out)
		conn, err := net.DialTimeout("tcp", net.JoinHostPort(ip, strconv.Itoa(slices.Items[0].Ports[0].Port)), time.Second)
		if err != nil {
			return false
		}
		defer conn.Close()
		require.NoError(t, conn.SetDeadline(time.Now().Add(5*time.Second)))
		line, _ := bufio.NewReader(conn).ReadString('\n')
		return line == "hello\n"
	})
}

// testKilledWithoutExec kills a container in which no further process can be started.
func testKilledWithoutExec(t *testing.T, c cluster, s runtime.Spec) {
	s.StopSignal = "SIGCONT" // the deletion of the pod must not depend on TERM
	program, err := os.ReadFile(c.cfg.Keeper)
	require.NoError(t, err)
	folder := filepath.Join(c.cfg.Volumes, "keeper", "own")
	require.NoError(t, os.MkdirAll(folder, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "keeper"), program, 0o755))
	pod, _, err := c.podOf(t.Context(), s)
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
