package kubernetes

import (
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	core1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	"berth/runtime"
)

// fakeCluster answers for one pod, and records what changes it.
type fakeCluster struct {
	pod     *core1.Pod // nil: it does not exist
	calls   []string   // those that change something
	refuse  string     // text with which a pod is refused; empty: it is accepted
	created *core1.Pod // the last one, also of a dry run
}

func (f *fakeCluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := strings.TrimPrefix(r.URL.Path, "/api/v1/namespaces/servers/")
	dry := r.URL.Query().Get("dryRun") != ""
	if r.Method != http.MethodGet && !dry {
		f.calls = append(f.calls, r.Method+" "+strings.SplitN(path, "/", 2)[0])
	}
	switch {
	case r.Method == http.MethodPost && path == "pods":
		body, _ := io.ReadAll(r.Body)
		scheme := apiruntime.NewScheme()
		_ = core1.AddToScheme(scheme)
		sent, _, _ := serializer.NewCodecFactory(scheme).UniversalDeserializer().Decode(body, nil, nil)
		f.created, _ = sent.(*core1.Pod)
		if f.refuse != "" {
			answerJSON(w, http.StatusForbidden, meta.Status{TypeMeta: meta.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: meta.StatusFailure, Reason: meta.StatusReasonForbidden, Code: http.StatusForbidden, Message: f.refuse})
			return
		}
		if !dry {
			f.created.UID = "2"
			f.pod = f.created
		}
		answerJSON(w, http.StatusCreated, f.created)
	case r.Method == http.MethodDelete:
		answerJSON(w, http.StatusOK, meta.Status{Status: meta.StatusSuccess})
	case path == "pods":
		list := core1.PodList{}
		if f.pod != nil {
			list.Items = []core1.Pod{*f.pod}
		}
		answerJSON(w, http.StatusOK, list)
	case r.Method == http.MethodPost:
		answerJSON(w, http.StatusCreated, meta.Status{Status: meta.StatusSuccess})
	case strings.HasPrefix(r.URL.Path, "/api/v1/nodes"):
		answerJSON(w, http.StatusOK, testNode("n1", core1.ConditionTrue))
	default:
		answerJSON(w, http.StatusOK, f.pod)
	}
}

// testCluster returns an engine with one pod, which has exited.
func testCluster(t *testing.T) (*Engine, *fakeCluster, runtime.Name) {
	t.Helper()
	e, spec := testEngine(), testSpec()
	e.cfg.Volumes, e.cfg.Keeper, spec.Ports = t.TempDir(), filepath.Join(t.TempDir(), "keeper"), nil
	require.NoError(t, os.WriteFile(e.cfg.Keeper, []byte("program"), 0o755))
	spec.Mounts[0].Source = filepath.Join(e.cfg.Volumes, "v1")
	require.NoError(t, os.Mkdir(spec.Mounts[0].Source, 0o755))
	folder, err := e.keeper.Folder(e.cfg.Keeper, e.cfg.Volumes)
	require.NoError(t, err)
	pod, err := e.build(spec, resolved{digest: "sha256:1", ref: "r.example/img@sha256:1", auth: runtime.Auth{Host: "r.example"}}, folder)
	require.NoError(t, err)
	pod.UID, pod.Spec.SchedulingGates, pod.Spec.NodeName = "1", nil, "n1"
	pod.Annotations[annotationStart] = begun.Format(time.RFC3339Nano)
	pod.Status.Phase = core1.PodFailed
	pod.Status.ContainerStatuses = []core1.ContainerStatus{{Name: serverContainer, State: exited(3, "Error")}}
	f := &fakeCluster{pod: pod}
	return against(t, e, f.ServeHTTP), f, spec.Name
}

// TestSuccessorIsAcceptedFirst: what the cluster refuses costs neither the pod nor its record.
func TestSuccessorIsAcceptedFirst(t *testing.T) {
	e, f, n := testCluster(t)
	for text, want := range map[string]error{
		"exceeded quota: pods": runtime.ErrNoRoom,
		"unable to create new content in namespace servers because it is being terminated": runtime.ErrUnavailable,
		"User \"berth\" cannot create resource":                                            runtime.ErrUnavailable,
		"violates PodSecurity \"restricted\"":                                              runtime.ErrInvalid,
	} {
		f.refuse, f.calls = text, nil
		require.ErrorIs(t, e.Start(t.Context(), n), want, text)
		require.Empty(t, f.calls, text)
	}
}

// TestSuccessorHasWhatBerthHasSet: what others add to a pod is not copied into the next one.
func TestSuccessorHasWhatBerthHasSet(t *testing.T) {
	e, f, _ := testCluster(t)
	clean := f.pod.DeepCopy()
	r, _ := e.recordOf(f.pod)
	want, err := e.successor(clean, r, begun)
	require.NoError(t, err)

	p, priority := f.pod, int32(5)
	p.Spec.Containers = append([]core1.Container{{Name: "a-sidecar", Image: "proxy"}}, p.Spec.Containers...)
	p.Spec.EphemeralContainers = []core1.EphemeralContainer{{EphemeralContainerCommon: core1.EphemeralContainerCommon{Name: "debug"}}}
	p.Spec.InitContainers = []core1.Container{{Name: "init"}}
	p.Spec.Volumes = append(p.Spec.Volumes, core1.Volume{Name: "injected"})
	p.Spec.Priority, p.Spec.PriorityClassName, p.Spec.ServiceAccountName, p.Spec.SchedulerName = &priority, "high", "default", "other"
	server := serverOf(p)
	server.VolumeMounts = append(server.VolumeMounts, core1.VolumeMount{Name: "injected", MountPath: "/x"})
	server.Env = append(server.Env, core1.EnvVar{Name: "POD", ValueFrom: &core1.EnvVarSource{}})
	p.Status.ContainerStatuses = append([]core1.ContainerStatus{{Name: "a-sidecar", State: runs}}, p.Status.ContainerStatuses...)
	require.True(t, ended(p))
	got, err := e.successor(p, r, begun)
	require.NoError(t, err)
	require.Equal(t, want, got)
	require.Equal(t, clean.Spec.Containers[0].Command, serverOf(got).Command)
	require.Equal(t, clean.Spec.ImagePullSecrets, got.Spec.ImagePullSecrets)
	require.Equal(t, clean.Spec.Containers[0].SecurityContext, serverOf(got).SecurityContext)
}

// TestLimitsOfTheNextRun: those that were changed after an exit.
func TestLimitsOfTheNextRun(t *testing.T) {
	e, f, _ := testCluster(t)
	r, _ := e.recordOf(f.pod)
	r.Live = runtime.Live{Memory: 256 << 20, CPU: 1.5}
	serverOf(f.pod).Resources.Limits[core1.ResourceEphemeralStorage] = resource.MustParse("1Gi")
	next, err := e.successor(f.pod, r, begun)
	require.NoError(t, err)
	limits := serverOf(next).Resources.Limits
	require.Equal(t, int64(256<<20), limits.Memory().Value())
	require.Equal(t, "1500m", limits.Cpu().String())
	require.Equal(t, int64(1<<30), limits.StorageEphemeral().Value(), "it stays that of the creation")
}

// TestStartRestoresWhatItNeeds: the keeper's folder is gone from the claim, and the password was changed.
func TestStartRestoresWhatItNeeds(t *testing.T) {
	e, f, n := testCluster(t)
	require.NoError(t, os.RemoveAll(filepath.Join(e.cfg.Volumes, ".keeper")))
	e.cfg.Auth = func(host string) runtime.Auth { return runtime.Auth{Host: host, Username: "u", Password: "new"} }
	r, _ := e.recordOf(f.pod)
	require.Equal(t, "r.example", r.Registry)
	require.NoError(t, e.prepare(t.Context(), f.pod, r))
	folder, err := e.keeper.Folder(e.cfg.Keeper, e.cfg.Volumes)
	require.NoError(t, err)
	require.FileExists(t, filepath.Join(e.cfg.Volumes, folder, "keeper"))
	require.Equal(t, []string{"POST secrets"}, f.calls)
	require.NoError(t, e.prepare(t.Context(), f.pod, r))
	require.Len(t, f.calls, 1, "they are stored once")
	serverOf(f.pod).VolumeMounts[0].SubPath = "keeper/older" // of an older berth, and gone
	next, err := e.successor(f.pod, r, begun)
	require.NoError(t, err)
	require.Equal(t, folder, serverOf(next).VolumeMounts[0].SubPath)
	_, err = e.Inspect(t.Context(), n)
	require.NoError(t, err)
}

// TestDeletedAfterItsExit: a pod that has exited and that others delete is replaced by one on no node, once
// its output had its time to be read.
func TestDeletedAfterItsExit(t *testing.T) {
	e, f, n := testCluster(t)
	before, err := e.Inspect(t.Context(), n)
	require.NoError(t, err)
	deleted(f.pod)
	p := newPlacement([]ourPod{newOurPod(f.pod, record{ID: n.ID, Role: string(n.Role)})}, nil)
	require.Equal(t, []runtime.Name{n}, p.leaving(), "Watch names it again")
	_, err = e.Inspect(t.Context(), n)
	require.NoError(t, err)
	require.Empty(t, f.calls)

	e.log = slog.New(slog.DiscardHandler)
	due := func() { e.exits.Store(f.pod.Name, exit{f.pod.UID, time.Now().Add(-outputTime)}) }
	for _, text := range []string{"exceeded quota: q, requested: pods=1", "violates PodSecurity"} {
		due()
		f.refuse = text
		same, err := e.Inspect(t.Context(), n)
		require.NoError(t, err, text)
		require.Equal(t, before.ExitCode, same.ExitCode)
		require.Empty(t, f.calls, "the record is kept")
	}
	f.refuse = ""
	_, err = e.Inspect(t.Context(), n)
	require.NoError(t, err)
	require.Empty(t, f.calls, "it is tried again later")

	due()
	after, err := e.Inspect(t.Context(), n)
	require.NoError(t, err)
	require.Equal(t, []string{"DELETE pods", "PATCH pods", "POST pods"}, f.calls)
	require.True(t, gated(f.pod))
	require.Empty(t, f.pod.Spec.NodeName)
	after.Interrupted = before.Interrupted // by the deletion
	require.Equal(t, before.FinishedAt.Unix(), after.FinishedAt.Unix())
	require.Equal(t, before.ContainerID+before.StartedAt.UTC().String(), after.ContainerID+after.StartedAt.UTC().String())
	require.Equal(t, before.ExitCode, after.ExitCode)
}

// TestNoRoomStaysPending: a pod without room is left to the scheduler and the autoscaler. One for which
// others are preempted is waited for.
func TestNoRoomStaysPending(t *testing.T) {
	e, f, n := testCluster(t)
	f.pod.Status = core1.PodStatus{Conditions: []core1.PodCondition{
		{Type: core1.PodScheduled, Status: core1.ConditionFalse, Reason: core1.PodReasonUnschedulable, Message: "0/2 nodes are available: 2 Insufficient memory."},
	}}
	f.pod.Spec.NodeName = ""
	err := e.Start(t.Context(), n)
	require.ErrorIs(t, err, runtime.ErrStarting)
	require.ErrorIs(t, err, runtime.ErrNoRoom)
	require.Empty(t, f.calls)
	f.pod.Status.Conditions[0].Message = "0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims."
	err = e.Start(t.Context(), n)
	require.ErrorIs(t, err, runtime.ErrStarting)
	require.NotErrorIs(t, err, runtime.ErrNoRoom)
	require.ErrorContains(t, err, "StorageClass")
	f.pod.Status.NominatedNodeName = "n2"
	err = e.Start(t.Context(), n)
	require.ErrorIs(t, err, runtime.ErrStarting)
	require.NotErrorIs(t, err, runtime.ErrNoRoom)
	require.ErrorContains(t, err, "n2")
}

func TestForbidden(t *testing.T) {
	for text, want := range map[string]error{
		`pod rejected: RuntimeClass "gvisor" not found`:           errNoClass,
		"no PriorityClass with name paid was found":               errNoClass,
		"exceeded quota: q, requested: pods=1":                    runtime.ErrNoRoom,
		"failed quota: q: must specify limits.memory for: server": runtime.ErrInvalid,
		"admission webhook \"kyverno\" denied the request: no":    runtime.ErrInvalid,
		"cannot create resource \"pods\"":                         runtime.ErrUnavailable,
	} {
		err := apierrors.NewForbidden(core1.Resource("pods"), "p", errors.New(text))
		require.ErrorIs(t, classify(err), want, text)
	}
}

// TestFencedPodIsDeleted: also if berth could only record the end of its run at first. Its node must not start it again.
func TestFencedPodIsDeleted(t *testing.T) {
	e, f, n := testCluster(t)
	f.pod.Status.Phase, f.pod.Status.ContainerStatuses[0].State = core1.PodRunning, runs
	f.pod.Annotations[annotationEnd] = begun.Add(time.Minute).Format(time.RFC3339Nano)
	s, err := e.Inspect(t.Context(), n)
	require.NoError(t, err)
	require.True(t, !s.Running && s.Interrupted)
	require.Equal(t, []string{"DELETE pods"}, f.calls)
	deleted(f.pod)
	_, err = e.Inspect(t.Context(), n)
	require.NoError(t, err)
	require.Len(t, f.calls, 1, "once")
}
