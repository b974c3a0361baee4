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
	"sync"
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
	denied, err := c.denied(t.Context())
	require.NoError(t, err)
	require.Empty(t, denied, "role.yaml grants all")
	image := push(t, open, "cluster:1")
	private := push(t, locked, "private:1")
	require.NoError(t, c.Pull(t.Context(), image, runtime.Auth{}, nil))
	require.NoError(t, c.Pull(t.Context(), private, runtime.Auth{Host: locked.Addr, Username: "me", Password: "secret"}, nil))
	for name, test := range map[string]func(*testing.T, cluster, runtime.Spec){
		"volume":                 testVolume,
		"text is not expanded":   testLiteral,
		"command missing":        testCommandMissing,
		"no room":                testNoRoom,
		"address":                testAddress,
		"address behind a NAT":   testAddressBehindANAT,
		"drained":                testDrained,
		"deleted":                testDeleted,
		"stopped in a drain":     testStoppedInADrain,
		"placed":                 testPlaced,
		"load balancer":          testLoadBalancer,
		"killed without exec":    testKilledWithoutExec,
		"taken back":             testTakenBack,
		"terminal":               testTerminal,
		"deleted by force":       testDeletedByForce,
		"limit without room":     testLimitWithoutRoom,
		"drained after its exit": testDrainedAfterItsExit,
		"quota":                  testQuota,
		"another store":          testAnotherStore,
		"debugged":               testDebugged,
		"out of memory":          testOutOfMemory,
		"private image": func(t *testing.T, c cluster, s runtime.Spec) {
			s.Image = private
			c.start(t, s)
			secret := "/api/v1/namespaces/" + c.cfg.Namespace + "/secrets/" + c.podName(s.Name)
			require.NoError(t, c.admin.api().Get().AbsPath(secret).Do(t.Context()).Error())
			require.NoError(t, c.Kill(t.Context(), s.Name))
			require.NoError(t, c.Remove(t.Context(), s.Name))
			require.True(t, apierrors.IsNotFound(c.admin.api().Get().AbsPath(secret).Do(t.Context()).Error()), "nobody needs it")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			id := strings.ToLower(strings.ReplaceAll(t.Name(), "/", "-"))
			test(t, c, runtime.Spec{Name: runtime.Name{ID: id, Role: runtime.Server}, SpecHash: "1", Image: image, Command: []string{"sleep", "100000"}})
		})
	}
}

// testAnotherStore: pods of another store are named for the operator, and those of this one are not.
func testAnotherStore(t *testing.T, c cluster, s runtime.Spec) {
	c.start(t, s)
	other := runtime.Name{ID: s.Name.ID + "-other", Role: runtime.Server}
	c.foreign(t, other)
	names, err := c.foreignPods(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{c.podName(other)}, names)
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
	enginetest.Until(t, 3*time.Minute, "a start", func() bool {
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
	enginetest.Until(t, 3*time.Minute, "the exit of a run", func() bool {
		var err error
		s, err = c.Inspect(t.Context(), n)
		require.NoError(t, err)
		return !s.Running && !s.StartedAt.IsZero()
	})
	return s
}

// output returns the lines of a run so far. A kubelet removes the log of a deleted pod as soon as the run has ended.
func (c cluster) output(t *testing.T, n runtime.Name) string {
	t.Helper()
	target := c.target(t, n)
	target.Ended = true
	text, err := c.read(t, target)
	require.NoError(t, err)
	return text
}

// follow reads the lines of a run until it ends, as the console does.
func (c cluster) follow(t *testing.T, n runtime.Name) (output func() string) {
	t.Helper()
	target := c.target(t, n)
	var text string
	var err error
	var reading sync.WaitGroup
	reading.Go(func() { text, err = c.read(t, target) })
	return func() string {
		reading.Wait()
		require.NoError(t, err)
		return text
	}
}

func (c cluster) target(t *testing.T, n runtime.Name) runtime.Target {
	t.Helper()
	s, err := c.Inspect(t.Context(), n)
	require.NoError(t, err)
	return runtime.Target{ContainerID: s.ContainerID, StartedAt: s.StartedAt, TTY: s.TTY}
}

func (c cluster) read(t *testing.T, target runtime.Target) (text string, _ error) {
	err := c.Logs(t.Context(), target, time.Time{}, func(l runtime.Line) error {
		text += string(l.Data) + "\n"
		return nil
	})
	return text, err
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
	for range 2 {
		err = c.Start(t.Context(), s.Name)
		require.ErrorIs(t, err, runtime.ErrNoRoom)
		require.ErrorIs(t, err, runtime.ErrStarting, "it stays pending, so that an autoscaler adds a node")
	}
	require.NoError(t, c.Kill(t.Context(), s.Name))
	require.True(t, gated(c.pod(t, s.Name)))
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

// testAddressBehindANAT: packets to a public address arrive at a node with an address of the node.
func testAddressBehindANAT(t *testing.T, c cluster, s runtime.Spec) {
	s = shell(s, hello)
	s.Ports = []runtime.Port{{IP: "203.0.113.2", Port: 21001, ContainerPort: 25565, Protocol: "tcp"}}
	_, err := c.Create(t.Context(), s)
	require.ErrorIs(t, err, runtime.ErrNoAddress)
	annotation := []byte(`{"metadata": {"annotations": {"` + annotationPublic + `": "203.0.113.2"}}}`)
	require.NoError(t, c.admin.api().Patch(types.MergePatchType).AbsPath("/api/v1/nodes/n1").Body(annotation).Do(t.Context()).Error())
	c.start(t, s)
	for range 2 { // the successor, too
		c.begin(t, s.Name)
		require.Equal(t, "n1", c.pod(t, s.Name).Spec.NodeName)
		enginetest.Until(t, 3*time.Minute, "the answer of the node", func() bool { return greets(t, "10.77.0.101:21001") })
		require.NoError(t, c.Kill(t.Context(), s.Name))
	}
}

// testPlaced chooses nodes and classes. A class that does not exist yet is waited for, and so is a node.
func testPlaced(t *testing.T, c cluster, s runtime.Spec) {
	s.Placement = runtime.Placement{NodeSelector: map[string]string{"berth.io/test-pool": "games"}, PriorityClass: "test-placed", RuntimeClass: "test-placed",
		Tolerations: []runtime.Toleration{{Key: "dedicated", Value: "games", Effect: "NoSchedule"}}}
	_, err := c.Create(t.Context(), s)
	require.ErrorIs(t, err, errNoClass)
	require.ErrorContains(t, err, "test-placed")
	for path, body := range map[string]string{
		"/apis/scheduling.k8s.io/v1/priorityclasses": `{"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "test-placed"}, "value": 7}`,
		"/apis/node.k8s.io/v1/runtimeclasses":        `{"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "test-placed"}, "handler": "runc"}`,
	} {
		require.NoError(t, c.admin.api().Post().AbsPath(path).Body([]byte(body)).SetHeader("Content-Type", "application/json").Do(t.Context()).Error())
	}
	enginetest.Until(t, 3*time.Minute, "the classes", func() bool {
		_, err := c.Create(t.Context(), s)
		return err == nil
	})
	err = c.Start(t.Context(), s.Name)
	require.ErrorIs(t, err, runtime.ErrNoRoom)
	require.ErrorIs(t, err, runtime.ErrStarting)
	label := []byte(`{"metadata": {"labels": {"berth.io/test-pool": "games"}}}`)
	require.NoError(t, c.admin.api().Patch(types.MergePatchType).AbsPath("/api/v1/nodes/n1").Body(label).Do(t.Context()).Error())
	for range 2 { // the successor, too
		c.begin(t, s.Name)
		pod := c.pod(t, s.Name)
		require.Equal(t, "n1", pod.Spec.NodeName)
		require.EqualValues(t, 7, *pod.Spec.Priority)
		require.Equal(t, "test-placed", *pod.Spec.RuntimeClassName)
		require.NoError(t, c.Kill(t.Context(), s.Name))
	}
}

// testDrained evicts a container that runs, as the drain of a node does.
func testDrained(t *testing.T, c cluster, s runtime.Spec) {
	testInterrupted(t, c, s, func(pod string) *rest.Request {
		eviction := fmt.Appendf(nil, `{"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": %q}}`, path.Base(pod))
		return c.admin.api().Post().AbsPath(pod + "/eviction").Body(eviction)
	})
}

// testStoppedInADrain evicts a container that takes longer to save than the hook waits by itself. Its stop signal would
// end it at once.
func testStoppedInADrain(t *testing.T, c cluster, s runtime.Spec) {
	for _, s.TTY = range []bool{true, false} {
		s.StopTimeout, s.SpecHash = time.Minute, fmt.Sprint(s.TTY)
		c.start(t, shell(s, "stty -echo; echo ready; read line; echo got $line; sleep 7; echo saved; exit 5"))
		enginetest.Until(t, 3*time.Minute, "its output", func() bool { return strings.Contains(c.output(t, s.Name), "ready") })
		output, target := c.follow(t, s.Name), c.target(t, s.Name)
		name := c.podName(s.Name)
		eviction := fmt.Appendf(nil, `{"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": %q}}`, name)
		require.NoError(t, c.admin.api().Post().AbsPath("/api/v1/namespaces/"+c.cfg.Namespace+"/pods/"+name+"/eviction").Body(eviction).Do(t.Context()).Error())
		state, err := c.Inspect(t.Context(), s.Name)
		require.NoError(t, err)
		require.True(t, state.Running && state.Leaving)
		require.NoError(t, c.Input(t.Context(), state.ContainerID, []byte("stop\n")))
		exit := c.awaitExit(t, s.Name)
		require.Equal(t, 5, exit.ExitCode, "no signal has ended it")
		require.True(t, exit.Interrupted)
		require.False(t, exit.Leaving)
		require.Contains(t, output(), "saved")
		target.Ended = true
		enginetest.Until(t, 3*time.Minute, "the end of the log", func() bool {
			_, err := c.read(t, target)
			return errors.Is(err, runtime.ErrNotFound)
		})
	}
}

// testDeleted deletes the pod of a container that runs, as an operator does.
func testDeleted(t *testing.T, c cluster, s runtime.Spec) {
	testInterrupted(t, c, s, func(pod string) *rest.Request { return c.admin.api().Delete().AbsPath(pod) })
}

func testInterrupted(t *testing.T, c cluster, s runtime.Spec, end func(pod string) *rest.Request) {
	s.StopSignal = "SIGINT"
	c.start(t, shell(s, "trap 'exit 7' INT; echo ready; while true; do sleep 0.05; done"))
	enginetest.Until(t, 3*time.Minute, "its output", func() bool { return c.output(t, s.Name) == "ready\n" })
	before, err := c.Inspect(t.Context(), s.Name)
	require.NoError(t, err)
	require.NoError(t, end("/api/v1/namespaces/"+c.cfg.Namespace+"/pods/"+c.pod(t, s.Name).Name).Do(t.Context()).Error())
	enginetest.Until(t, 3*time.Minute, "the end of the deletion", func() bool { return *c.pod(t, s.Name).DeletionGracePeriodSeconds == 0 })
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
	s = shell(s, hello)
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
	request := c.admin.api().Get().Namespace(c.cfg.Namespace).Resource("services").Name(c.podName(s.Name))
	require.True(t, apierrors.IsNotFound(request.Do(t.Context()).Error()))
}

// serviceOf returns the Service of a container.
func (c cluster) serviceOf(t *testing.T, n runtime.Name) (s core1.Service) {
	t.Helper()
	request := c.admin.api().Get().Namespace(c.cfg.Namespace).Resource("services").Name(c.podName(n))
	require.NoError(t, request.Do(t.Context()).Into(&s))
	return s
}

// balance sets what a load balancer reports about the Service of a container.
func (c cluster) balance(t *testing.T, n runtime.Name, ingress string) {
	t.Helper()
	status := `{"status": {"loadBalancer": {"ingress": [` + ingress + `]}}}`
	request := c.admin.api().Patch(types.MergePatchType).Namespace(c.cfg.Namespace).Resource("services").Name(c.podName(n)).SubResource("status")
	require.NoError(t, request.Body([]byte(status)).Do(t.Context()).Error())
}

// awaitHello connects to what the Service of a container has selected, as a load balancer does,
// until the container answers.
func (c cluster) awaitHello(t *testing.T, n runtime.Name) {
	t.Helper()
	enginetest.Until(t, 3*time.Minute, "the container's answer", func() bool {
		var slices struct {
			Items []struct {
				Endpoints []struct{ Addresses []string }
				Ports     []struct{ Port int }
			}
		}
		path := "/apis/discovery.k8s.io/v1/namespaces/" + c.cfg.Namespace + "/endpointslices"
		answer, err := c.admin.api().Get().AbsPath(path).SetHeader("Accept", "application/json").Param("labelSelector", "kubernetes.io/service-name="+c.podName(n)).DoRaw(t.Context())
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(answer, &slices))
		if len(slices.Items) == 0 || len(slices.Items[0].Endpoints) == 0 {
			return false
		}
		ip := slices.Items[0].Endpoints[0].Addresses[0]
		out, err := exec.Command("ip", "route", "replace", ip, "via", kubetest.Node).CombinedOutput()
		require.NoError(t, err, "%s", out)
		return greets(t, net.JoinHostPort(ip, strconv.Itoa(slices.Items[0].Ports[0].Port)))
	})
}

// greets reports whether the program of hello answers at an address.
func greets(t *testing.T, address string) bool {
	t.Helper()
	conn, err := net.DialTimeout("tcp", address, time.Second)
	if err != nil {
		return false
	}
	defer conn.Close()
	require.NoError(t, conn.SetDeadline(time.Now().Add(5*time.Second)))
	line, _ := bufio.NewReader(conn).ReadString('\n')
	return line == "hello\n"
}

const hello = "while true; do echo hello | nc -l -p 25565; done"

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
	c.start(t, shell(s, "stty -echo; stty size; echo controls >/dev/tty; echo ready; read line; echo got $line; exit 5"))
	enginetest.Until(t, 3*time.Minute, "its output", func() bool { return strings.Contains(c.output(t, s.Name), "ready") })
	state, err := c.Inspect(t.Context(), s.Name)
	require.NoError(t, err)
	require.NoError(t, c.Input(t.Context(), state.ContainerID, []byte("hello\n")))
	require.Equal(t, 5, c.awaitExit(t, s.Name).ExitCode)
	for _, want := range []string{"40 120", "controls", "got hello"} {
		require.Contains(t, c.output(t, s.Name), want)
	}
}
