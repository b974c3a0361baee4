package kubernetes

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/stretchr/testify/require"
	core1 "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth/runtime"
)

func testEngine() *Engine {
	return &Engine{cfg: Config{Namespace: "servers", StoreID: "store", Claim: "volumes", Volumes: "/volumes", RequestsShare: 0.5, TmpSize: 1 << 20}}
}

func testSpec() runtime.Spec {
	return runtime.Spec{
		Name: runtime.Name{ID: strings.Repeat("Long_", 40), Role: runtime.Server}, SpecHash: "1", Image: "img", Command: []string{"run", "$(HOME)", "$$"},
		Env: []string{"A=$(B)=c"}, Live: runtime.Live{Memory: 64 << 20, CPU: 1.0 / 3},
		Mounts: []runtime.Mount{{Source: "/volumes/v1", Target: "/home/container"}},
		Ports:  []runtime.Port{{IP: "10.0.0.1", Port: 20001, ContainerPort: 25565, Protocol: "udp"}},
		User:   "1000:1001", StopSignal: "SIGINT", StopTimeout: 1500 * time.Millisecond, SignalGroup: true, Home: "/home/container",
		Hostname: "mc.example.com", ReadOnlyRoot: true, ShmSize: 1 << 20, Labels: map[string]string{"any key": strings.Repeat("v", 200)},
	}
}

func TestBuildConfinesEveryContainer(t *testing.T) {
	for _, role := range []runtime.Role{runtime.Server, runtime.Install} {
		s := testSpec()
		s.Name.Role = role
		pod, err := testEngine().build(s, resolved{digest: "sha256:1", ref: "img@sha256:1", auth: runtime.Auth{Host: "r"}}, "keeper/1")
		require.NoError(t, err)
		server := pod.Spec.Containers[0]
		require.False(t, *pod.Spec.AutomountServiceAccountToken)
		require.False(t, *pod.Spec.EnableServiceLinks)
		require.False(t, *server.SecurityContext.AllowPrivilegeEscalation)
		require.Nil(t, server.SecurityContext.Privileged)
		require.Equal(t, []core1.Capability{"ALL"}, server.SecurityContext.Capabilities.Drop)
		require.Equal(t, core1.SeccompProfileTypeRuntimeDefault, pod.Spec.SecurityContext.SeccompProfile.Type)
		require.False(t, pod.Spec.HostNetwork || pod.Spec.HostPID || pod.Spec.HostIPC)
		require.Equal(t, core1.RestartPolicyNever, pod.Spec.RestartPolicy)
		require.Equal(t, role == runtime.Server, server.Stdin)
		for _, toleration := range pod.Spec.Tolerations {
			require.Nil(t, toleration.TolerationSeconds, "a short cut of the link ends no server")
		}
	}
}

func TestBuildCarriesTheSpec(t *testing.T) {
	pod, err := testEngine().build(testSpec(), resolved{digest: "sha256:1", ref: "img@sha256:1", auth: runtime.Auth{Host: "r"}}, "keeper/1")
	require.NoError(t, err)
	server := pod.Spec.Containers[0]
	require.Less(t, len(pod.Name), 64)
	require.Equal(t, []string{keeperPath, "run", "-stop", "SIGINT", "-group", "-home", "/home/container", "--", "run", "$$(HOME)", "$$$$"}, server.Command)
	require.Equal(t, []core1.EnvVar{{Name: "A", Value: "$$(B)=c"}}, server.Env)
	require.Equal(t, core1.VolumeMount{Name: volumesName, MountPath: keeperDir, SubPath: "keeper/1", ReadOnly: true}, server.VolumeMounts[0])
	require.Equal(t, core1.VolumeMount{Name: volumesName, MountPath: "/home/container", SubPath: "v1"}, server.VolumeMounts[1])
	require.Equal(t, core1.ContainerPort{HostIP: "10.0.0.1", HostPort: 20001, ContainerPort: 25565, Protocol: core1.ProtocolUDP}, server.Ports[0])
	require.Equal(t, int64(1000), *server.SecurityContext.RunAsUser)
	require.Equal(t, int64(1001), *server.SecurityContext.RunAsGroup)
	require.Equal(t, int64(2), *pod.Spec.TerminationGracePeriodSeconds)
	require.Equal(t, "mc", pod.Spec.Hostname)
	require.Equal(t, pod.Name, pod.Spec.ImagePullSecrets[0].Name)
	require.Equal(t, "334m", server.Resources.Limits.Cpu().String())
	require.Equal(t, int64(32<<20), server.Resources.Requests.Memory().Value())
	require.True(t, *server.SecurityContext.ReadOnlyRootFilesystem)
	require.Len(t, pod.Spec.Volumes, 4, "the claim, /dev/shm, /tmp and /run")

	r, ours := testEngine().recordOf(pod)
	require.True(t, ours)
	require.Equal(t, testSpec().Name, r.name())
	require.Equal(t, testSpec().Labels, r.Labels)
	require.Equal(t, 2*time.Second, state(pod, r).StopTimeout)
	require.InDelta(t, 0.333333333, r.Live.CPU, 1e-12)
	require.Equal(t, pod.Name, podOfID(r.ContainerID))
	other := testEngine()
	other.cfg.StoreID = "another"
	_, ours = other.recordOf(pod)
	require.False(t, ours)
}

// TestBuildOfTheImage: what a spec leaves out is the image's.
func TestBuildOfTheImage(t *testing.T) {
	c := testEngine()
	c.cfg.RootLimit = func() int64 { return 1 << 30 }
	s := testSpec()
	s.Command, s.User, s.StopSignal, s.ReadOnlyRoot, s.MachineID = nil, "", "", false, "0123456789abcdef"
	image := resolved{digest: "sha256:1", ref: "img@sha256:1"}
	_, err := c.build(s, image, "keeper/1")
	require.ErrorIs(t, err, runtime.ErrBadCommand)
	image.config = ocispec.ImageConfig{Entrypoint: []string{"java"}, Cmd: []string{"-jar"}, User: "988", StopSignal: "SIGINT"}
	pod, err := c.build(s, image, "keeper/1")
	require.NoError(t, err)
	server := pod.Spec.Containers[0]
	require.Equal(t, []string{"--", "java", "-jar"}, server.Command[len(server.Command)-3:])
	require.Nil(t, server.SecurityContext.RunAsUser)
	require.Equal(t, int64(1<<30), server.Resources.Limits.StorageEphemeral().Value())
	require.Zero(t, server.Resources.Requests.StorageEphemeral().Value())
	r, _ := c.recordOf(pod)
	require.Equal(t, "988", r.User)
	require.Equal(t, "SIGINT", r.StopSignal)
	next, err := successor(pod, r, time.Time{})
	require.NoError(t, err)
	require.Equal(t, s.MachineID, next.Annotations[annotationID], "the machine is the same in each run")
}

func TestBuildRefuses(t *testing.T) {
	for what, change := range map[string]func(*runtime.Spec){
		"a directory outside of the claim": func(s *runtime.Spec) { s.Mounts[0].Source = "/etc" },
		"the claim itself":                 func(s *runtime.Spec) { s.Mounts[0].Source = "/volumes" },
		"a way out of the claim":           func(s *runtime.Spec) { s.Mounts[0].Source = "/volumes/../etc" },
		"the name of a user":               func(s *runtime.Spec) { s.User = "player" },
		"the name of a group":              func(s *runtime.Spec) { s.User = "1000:players" },
	} {
		s := testSpec()
		change(&s)
		_, err := testEngine().build(s, resolved{}, "keeper/1")
		require.ErrorIs(t, err, runtime.ErrInvalid, what)
	}
}

// TestAnotherClaim: a container with the claim of an older configuration has no spec that is wanted.
func TestAnotherClaim(t *testing.T) {
	c := testEngine()
	pod, err := c.build(testSpec(), resolved{digest: "sha256:1", ref: "img@sha256:1"}, "keeper/1")
	require.NoError(t, err)
	r, ours := c.recordOf(pod)
	require.True(t, ours)
	require.Equal(t, testSpec().SpecHash, state(pod, r).SpecHash)
	require.NotEmpty(t, r.SpecHash)
	c.cfg.Claim = "another"
	r, ours = c.recordOf(pod)
	require.True(t, ours)
	require.Empty(t, state(pod, r).SpecHash)
}

func TestSuccessorInheritsTheRecord(t *testing.T) {
	c := testEngine()
	pod, err := c.build(testSpec(), resolved{digest: "sha256:1", ref: "img@sha256:1"}, "keeper/1")
	require.NoError(t, err)
	first := time.Date(2026, 11, 26, 12, 0, 0, 123456789, time.UTC)
	pod.Annotations[annotationStart] = first.Format(time.RFC3339Nano)
	pod.Spec.NodeName = "n1"
	end := first.Truncate(time.Second)
	pod.Status.ContainerStatuses = []core1.ContainerStatus{{Name: serverContainer, State: core1.ContainerState{
		Terminated: &core1.ContainerStateTerminated{ExitCode: 9, Reason: "OOMKilled", FinishedAt: meta.Time{Time: end}},
	}}}
	before, _ := c.recordOf(pod)
	require.Equal(t, first, state(pod, before).StartedAt)

	next, err := successor(pod, before, time.Time{})
	require.NoError(t, err)
	after, ours := c.recordOf(next)
	require.True(t, ours)
	require.True(t, gated(next))
	require.Empty(t, next.Spec.NodeName)
	require.Empty(t, next.Status.ContainerStatuses)
	got := state(next, after)
	require.Equal(t, before.ContainerID, got.ContainerID)
	require.Equal(t, first, got.StartedAt.UTC())
	require.Equal(t, end, got.FinishedAt.UTC())
	require.Equal(t, 9, got.ExitCode)
	require.True(t, got.OOMKilled)

	next, err = successor(pod, before, first.Add(time.Nanosecond))
	require.NoError(t, err)
	require.False(t, gated(next))
	require.Equal(t, first.Add(time.Nanosecond), startedAt(next))
}

func TestStateOfAPodWithoutAProcess(t *testing.T) {
	now, zero := meta.Now(), int64(0)
	thirty := int64(30)
	for what, test := range map[string]struct {
		pod  core1.Pod
		want bool
	}{
		"created":                    {core1.Pod{}, false},
		"deleted before its start":   {core1.Pod{ObjectMeta: meta.ObjectMeta{DeletionTimestamp: &now, DeletionGracePeriodSeconds: &thirty}}, true},
		"deleted, and may still run": {core1.Pod{ObjectMeta: meta.ObjectMeta{DeletionTimestamp: &now, DeletionGracePeriodSeconds: &thirty}, Spec: core1.PodSpec{NodeName: "n1"}}, false},
		"deleted, and reported":      {core1.Pod{ObjectMeta: meta.ObjectMeta{DeletionTimestamp: &now, DeletionGracePeriodSeconds: &zero}, Spec: core1.PodSpec{NodeName: "n1"}}, true},
		"evicted":                    {core1.Pod{Status: core1.PodStatus{Phase: core1.PodFailed}}, true},
	} {
		require.Equal(t, test.want, ended(&test.pod), what)
	}
}

func TestStartErrors(t *testing.T) {
	unschedulable := func(text string) core1.PodStatus {
		return core1.PodStatus{Conditions: []core1.PodCondition{
			{Type: core1.PodScheduled, Status: core1.ConditionFalse, Reason: core1.PodReasonUnschedulable, Message: text},
		}}
	}
	container := func(s core1.ContainerState) core1.PodStatus {
		return core1.PodStatus{ContainerStatuses: []core1.ContainerStatus{{Name: serverContainer, State: s}}}
	}
	waiting := func(reason, text string) core1.PodStatus {
		return container(core1.ContainerState{Waiting: &core1.ContainerStateWaiting{Reason: reason, Message: text}})
	}
	for _, test := range []struct {
		status core1.PodStatus
		want   error
	}{
		{core1.PodStatus{}, nil},
		{unschedulable("0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod ports."), runtime.ErrPortTaken},
		{unschedulable("0/1 nodes are available: 1 Insufficient memory."), runtime.ErrNoRoom},
		{waiting("ContainerCreating", ""), nil},
		{waiting("ErrImagePull", "rpc error: code = NotFound desc = failed to pull: not found"), runtime.ErrImageNotFound},
		{waiting("ImagePullBackOff", "pull access denied, repository does not exist or may require authorization"), runtime.ErrDenied},
		{waiting("ErrImagePull", "dial tcp 10.77.0.1:5000: connect: connection refused"), runtime.ErrUnavailable},
		{waiting("CreateContainerConfigError", "failed to prepare subPath"), runtime.ErrInvalid},
		{container(core1.ContainerState{Terminated: &core1.ContainerStateTerminated{ExitCode: 127, Message: "keeper: no such program"}}), runtime.ErrBadCommand},
		{container(core1.ContainerState{Terminated: &core1.ContainerStateTerminated{ExitCode: 1}}), nil},
		{core1.PodStatus{Phase: core1.PodFailed, Reason: "OutOfmemory"}, runtime.ErrNoRoom},
		{core1.PodStatus{Phase: core1.PodFailed, Reason: "NodePorts"}, runtime.ErrPortTaken},
		{core1.PodStatus{Phase: core1.PodFailed}, nil},
	} {
		require.ErrorIs(t, startError(&core1.Pod{Status: test.status}), test.want)
	}
}

// TestRegistryWithoutTLS requires that the error of a registry without TLS names the setting.
func TestRegistryWithoutTLS(t *testing.T) {
	registry := httptest.NewServer(http.NotFoundHandler())
	defer registry.Close()
	_, err := http.Get("https://" + registry.Listener.Addr().String())
	err = registryError(err)
	require.ErrorIs(t, err, runtime.ErrUnavailable)
	require.ErrorContains(t, err, "kubernetes.plain_registries")
}
