package kubernetes

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"testing"
	"time"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/stretchr/testify/require"
	core1 "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth/hack/test/fieldtest"
	"berth/runtime"
	"berth/runtime/keeper"
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
		User:   "1000:1001", StopSignal: "SIGINT", StopTimeout: 1500 * time.Millisecond, Home: "/home/container",
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
	require.Equal(t, []string{keeper.Path, "run", "-wait", "1.5s", "-stop", "SIGINT", "-home", "/home/container", "--", "run", "$$(HOME)", "$$$$"}, server.Command)
	require.Equal(t, []core1.EnvVar{{Name: "A", Value: "$$(B)=c"}}, server.Env)
	require.Equal(t, core1.VolumeMount{Name: volumesName, MountPath: keeper.Dir, SubPath: "keeper/1", ReadOnly: true}, server.VolumeMounts[0])
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

// TestEvictionStopsFirst: the hook of a server holds its stop signal back, in each run, and an autoscaler may evict it.
// An older berth's keeper has no hook, and an installation would begin anew.
func TestEvictionStopsFirst(t *testing.T) {
	e, s := testEngine(), testSpec()
	image := resolved{digest: "sha256:1", ref: "img@sha256:1"}
	for stop, want := range map[time.Duration]string{0: "5s", 4 * time.Second: "2s", time.Minute: "5s"} {
		s.StopTimeout = stop
		pod, err := e.build(s, image, "keeper/1")
		require.NoError(t, err)
		r, _ := e.recordOf(pod)
		next, err := e.successor(pod, r, begun)
		require.NoError(t, err)
		for _, one := range []*core1.Pod{pod, next} {
			require.Equal(t, []string{keeper.Path, "hold", "-wait", want}, serverOf(one).Lifecycle.PreStop.Exec.Command)
			require.Equal(t, "true", one.Annotations[annotationEvict])
		}
		serverOf(pod).Lifecycle.PreStop.Exec.Command = []string{"injected"}
		next, err = e.successor(pod, r, begun)
		require.NoError(t, err)
		require.Nil(t, serverOf(next).Lifecycle)
	}
	s.Name.Role = runtime.Install
	pod, err := e.build(s, image, "keeper/1")
	require.NoError(t, err)
	require.Nil(t, serverOf(pod).Lifecycle)
	require.NotContains(t, pod.Annotations, annotationEvict)

	own := deleted(startedPod(t, runs))
	own.Annotations[annotationKill] = "true"
	for leaving, pod := range map[bool]*core1.Pod{true: deleted(startedPod(t, runs)), false: own} {
		r, _ := e.recordOf(pod)
		require.True(t, state(pod, r).Running)
		require.Equal(t, leaving, state(pod, r).Leaving)
	}
}

// TestPlacement: of each run, beside what berth needs itself, and whatever others have changed in a pod.
func TestPlacement(t *testing.T) {
	e, s := testEngine(), testSpec()
	s.Placement = runtime.Placement{NodeSelector: map[string]string{"pool": "games", core1.LabelOSStable: "windows"}, RuntimeClass: "gvisor", PriorityClass: "paid",
		Tolerations: []runtime.Toleration{{Key: "dedicated", Value: "games", Effect: "NoSchedule"}, {Key: "spot"}}}
	pod, err := e.build(s, resolved{digest: "sha256:1", ref: "img@sha256:1"}, "keeper/1")
	require.NoError(t, err)
	r, _ := e.recordOf(pod)
	changed := pod.DeepCopy()
	changed.Spec.NodeSelector["added"], changed.Spec.Tolerations, changed.Spec.PriorityClassName = "x", nil, "other"
	next, err := e.successor(changed, r, begun)
	require.NoError(t, err)
	for _, one := range []*core1.Pod{pod, next} {
		require.Equal(t, map[string]string{"pool": "games", core1.LabelOSStable: "linux", core1.LabelArchStable: goruntime.GOARCH}, one.Spec.NodeSelector)
		require.Equal(t, []core1.Toleration{{Key: "dedicated", Operator: core1.TolerationOpEqual, Value: "games", Effect: core1.TaintEffectNoSchedule},
			{Key: "spot", Operator: core1.TolerationOpExists}}, one.Spec.Tolerations[len(tolerations()):])
		require.Equal(t, tolerations(), one.Spec.Tolerations[:len(tolerations())])
		require.Equal(t, "gvisor", *one.Spec.RuntimeClassName)
		require.Equal(t, "paid", one.Spec.PriorityClassName)
		spread := one.Spec.TopologySpreadConstraints
		require.Len(t, spread, 1)
		require.Equal(t, core1.ScheduleAnyway, spread[0].WhenUnsatisfiable)
		require.Equal(t, one.Labels[labelStore], spread[0].LabelSelector.MatchLabels[labelStore])
	}
	pod, err = e.build(testSpec(), resolved{digest: "sha256:1", ref: "img@sha256:1"}, "keeper/1")
	require.NoError(t, err)
	require.Nil(t, pod.Spec.RuntimeClassName)
	require.NotContains(t, pod.Annotations[annotationRecord], "Placement")
}

// TestLabelsNameTheContainer: people and their tools see whose a pod is, and none of it selects another's.
func TestLabelsNameTheContainer(t *testing.T) {
	s := testSpec()
	s.Name.ID = "mc"
	s.Labels = map[string]string{"owner": "jo", "berth.io/store": "x", "two words": "y", "plan": "not a value", "long": strings.Repeat("x", 64), "empty": ""}
	pod, err := testEngine().build(s, resolved{digest: "sha256:1", ref: "img@sha256:1"}, "keeper/1")
	require.NoError(t, err)
	require.Equal(t, map[string]string{labelStore: hash("store"), labelContainer: pod.Name, labelRole: "server", labelID: "mc",
		"labels.berth.io/owner": "jo", "labels.berth.io/empty": ""}, pod.Labels)

	s.Name.ID = "a name with spaces"
	pod, err = testEngine().build(s, resolved{digest: "sha256:1", ref: "img@sha256:1"}, "keeper/1")
	require.NoError(t, err)
	require.NotContains(t, pod.Labels, labelID)
}

// TestBuildOfTheImage: what a spec leaves out is the image's.
func TestBuildOfTheImage(t *testing.T) {
	c := testEngine()
	c.cfg.RootLimit = func() int64 { return 1 << 30 }
	s := testSpec()
	s.Command, s.User, s.StopSignal, s.ReadOnlyRoot, s.MachineID, s.Workdir = nil, "", "", false, "0123456789abcdef", ""
	image := resolved{digest: "sha256:1", ref: "img@sha256:1"}
	_, err := c.build(s, image, "keeper/1")
	require.ErrorIs(t, err, runtime.ErrBadCommand)
	image.config = ocispec.ImageConfig{Entrypoint: []string{"java"}, Cmd: []string{"-jar"}, User: "988", StopSignal: "SIGINT", WorkingDir: "/proc/self/fd/8"}
	_, err = c.build(s, image, "keeper/1")
	require.ErrorIs(t, err, runtime.ErrInvalid)
	image.config.WorkingDir = "/opt/game"
	pod, err := c.build(s, image, "keeper/1")
	require.NoError(t, err)
	server := pod.Spec.Containers[0]
	require.Equal(t, []string{"--", "java", "-jar"}, server.Command[len(server.Command)-3:])
	require.Equal(t, "/opt/game", server.WorkingDir)
	require.Nil(t, server.SecurityContext.RunAsUser)
	require.Equal(t, int64(1<<30), server.Resources.Limits.StorageEphemeral().Value())
	require.Zero(t, server.Resources.Requests.StorageEphemeral().Value())
	r, _ := c.recordOf(pod)
	require.Equal(t, "988", r.User)
	require.Equal(t, "SIGINT", r.StopSignal)
	next, err := c.successor(pod, r, time.Time{})
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

// TestStorage: a pod mounts one claim, that of its volume, with the keeper in it.
func TestStorage(t *testing.T) {
	c, s := testEngine(), testSpec()
	c.cfg.Claims = map[string]string{"/claims/fast": "fast"}
	s.Mounts = []runtime.Mount{{Source: "/claims/fast/v1", Target: "/home/container"}}
	pod, err := c.build(s, resolved{digest: "sha256:1", ref: "img@sha256:1"}, "keeper/1")
	require.NoError(t, err)
	r, ours := c.recordOf(pod)
	require.True(t, ours)
	require.NotEmpty(t, r.SpecHash)
	next, err := c.successor(pod, r, time.Time{})
	require.NoError(t, err)
	for _, one := range []*core1.Pod{pod, next} {
		require.Equal(t, "fast", claimOf(one))
		mounts := one.Spec.Containers[0].VolumeMounts
		require.Equal(t, core1.VolumeMount{Name: volumesName, MountPath: keeper.Dir, SubPath: "keeper/1", ReadOnly: true}, mounts[0])
		require.Equal(t, core1.VolumeMount{Name: volumesName, MountPath: "/home/container", SubPath: "v1"}, mounts[1])
	}
	s.Mounts = append(s.Mounts, runtime.Mount{Source: "/volumes/v2", Target: "/other"})
	_, err = c.build(s, resolved{}, "keeper/1")
	require.ErrorIs(t, err, runtime.ErrInvalid, "two claims")
	c.cfg.Claims = nil
	r, _ = c.recordOf(pod)
	require.Empty(t, r.SpecHash, "the claim is not configured any more")
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
	require.Equal(t, "n1", state(pod, before).Machine)

	next, err := c.successor(pod, before, time.Time{})
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

	next, err = c.successor(pod, before, first.Add(time.Nanosecond))
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
		"deleted by force":           {core1.Pod{ObjectMeta: meta.ObjectMeta{DeletionTimestamp: &now, DeletionGracePeriodSeconds: &zero}, Spec: core1.PodSpec{NodeName: "n1"}}, false},
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
		{unschedulable("0/1 nodes are available: 1 Insufficient memory."), nil}, // it waits for room
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

// lackedFields are the fields of runtime.Spec for which the engine has no place: it refuses them.
var lackedFields = map[string]func(*runtime.Spec){
	"Live.Swap":      func(s *runtime.Spec) { s.Live.Swap = 1 },
	"Live.Pids":      func(s *runtime.Spec) { s.Live.Pids = 1 },
	"Live.Cpuset":    func(s *runtime.Spec) { s.Live.Cpuset = "0" },
	"Live.NoOOMKill": func(s *runtime.Spec) { s.Live.NoOOMKill = true },
	"IOWeight":       func(s *runtime.Spec) { s.IOWeight = 1 },
}

// TestBuildUsesEveryField empties one field of runtime.Spec after the other: the pod has to change. What
// changes nothing must be refused.
func TestBuildUsesEveryField(t *testing.T) {
	unused := fieldtest.Unused(func(s runtime.Spec) any {
		s.Live.Swap, s.Live.Pids, s.Live.Cpuset, s.Live.NoOOMKill = 0, 0, "", false // the record has them all
		if s.User != "" {
			s.User = "1000:1001"
		}
		s.Command = append(s.Command, "end") // the image has none
		writable := s                        // only its root can have a machine-id
		writable.ReadOnlyRoot = false
		for i := range s.Mounts {
			s.Mounts[i].Source = filepath.Join("/volumes", hash(s.Mounts[i].Source))
		}
		var pods []*core1.Pod
		for _, s := range []runtime.Spec{s, writable} {
			pod, err := testEngine().build(s, resolved{digest: "sha256:1", ref: s.Image + "@sha256:1", config: ocispec.ImageConfig{Entrypoint: []string{"java"}}}, "keeper/1")
			require.NoError(t, err)
			r, _ := testEngine().recordOf(pod)
			r.ContainerID = "" // it is random
			pod.Annotations[annotationRecord], err = r.text()
			require.NoError(t, err)
			pods = append(pods, pod)
		}
		return pods
	})
	for _, field := range unused {
		set := lackedFields[field]
		if set == nil {
			t.Errorf("the field %s of runtime.Spec changes nothing: use it in build of runtime/kubernetes/pod.go, or refuse it in requireAble", field)
			continue
		}
		s := runtime.Spec{}
		set(&s)
		require.ErrorIs(t, requireAble(s), runtime.ErrInvalid, field)
	}
	for field := range lackedFields {
		require.Contains(t, unused, field)
	}
}

func TestHostnameIsInLowerCase(t *testing.T) {
	s := testSpec()
	s.Hostname = "My-Server.example"
	pod, err := testEngine().build(s, resolved{digest: "sha256:1", ref: "img@sha256:1"}, "keeper/1")
	require.NoError(t, err)
	require.Equal(t, "my-server", pod.Spec.Hostname, "a cluster refuses capitals, which name the same host")
}

// TestEventOf: the cluster shows an event with its pod, and refuses one that is too long.
func TestEventOf(t *testing.T) {
	pod := &core1.Pod{ObjectMeta: meta.ObjectMeta{Name: "p", Namespace: "servers", UID: "1"}}
	one := eventOf(pod, Change{Reason: strings.Repeat("R", 200), Text: strings.Repeat("ä", 2000), Warning: true})
	require.Equal(t, core1.ObjectReference{Kind: "Pod", APIVersion: "v1", Namespace: "servers", Name: "p", UID: "1"}, one.InvolvedObject)
	require.Equal(t, core1.EventTypeWarning, one.Type)
	require.Len(t, one.Reason, maxReason)
	require.Equal(t, strings.Repeat("ä", maxText/2), one.Message)
	require.Equal(t, strings.Repeat("€", maxText/3), eventOf(pod, Change{Text: strings.Repeat("€", 2000)}).Message)
}
