package kubernetes

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	core1 "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth/runtime"
)

// against returns an engine whose cluster is a function.
func against(t *testing.T, e *Engine, answer http.HandlerFunc) *Engine {
	t.Helper()
	api := httptest.NewServer(answer)
	t.Cleanup(api.Close)
	e.cfg.Kubeconfig, e.requests = filepath.Join(t.TempDir(), "config"), newMetrics(nil)
	require.NoError(t, os.WriteFile(e.cfg.Kubeconfig, fmt.Appendf(nil, `apiVersion: v1
kind: Config
clusters: [{name: k, cluster: {server: %q}}]
contexts: [{name: c, context: {cluster: k}}]
current-context: c
`, api.URL), 0o600))
	require.NoError(t, e.connect())
	return e
}

func answerJSON(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value)
}

func answerFailure(w http.ResponseWriter, code int32, reason meta.StatusReason) {
	answerJSON(w, int(code), meta.Status{TypeMeta: meta.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: meta.StatusFailure, Reason: reason, Code: code})
}

func TestServiceIsAppliedUntilItHasItsAddress(t *testing.T) {
	calls := 0
	e := against(t, balanced(), func(w http.ResponseWriter, r *http.Request) {
		calls++
		require.Equal(t, "PATCH /api/v1/namespaces/servers/services/pod", r.Method+" "+r.URL.Path)
		require.Equal(t, "application/apply-patch+yaml", r.Header.Get("Content-Type"))
		require.Equal(t, "berth true", r.URL.Query().Get("fieldManager")+" "+r.URL.Query().Get("force"))
		var s core1.Service
		body, err := io.ReadAll(r.Body)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(body, &s))
		require.Equal(t, "Service", s.Kind)
		if calls > 2 {
			s.Status.LoadBalancer.Ingress = []core1.LoadBalancerIngress{{IP: "10.0.0.1"}}
		}
		answerJSON(w, http.StatusOK, s)
	})
	require.NoError(t, e.publish(t.Context(), "pod", testSpec().Ports))
	require.Equal(t, 3, calls)
	require.NoError(t, e.publish(t.Context(), "pod", nil))
	require.Equal(t, 3, calls, "a container without ports has none")
}

// TestServiceWithoutAnAddress: a load balancer that never answers costs some requests for each start.
func TestServiceWithoutAnAddress(t *testing.T) {
	calls := 0
	e := against(t, balanced(), func(w http.ResponseWriter, _ *http.Request) {
		calls++
		answerJSON(w, http.StatusOK, core1.Service{})
	})
	require.ErrorIs(t, e.publish(t.Context(), "pod", testSpec().Ports), runtime.ErrNoAddress)
	require.LessOrEqual(t, calls, 6)
}

// TestCredentialsAreReplaced: a Secret of the name that is left from before has other credentials.
func TestCredentialsAreReplaced(t *testing.T) {
	var calls []string
	e := against(t, testEngine(), func(w http.ResponseWriter, r *http.Request) {
		calls = append(calls, r.Method+" "+strings.TrimPrefix(r.URL.Path, "/api/v1/namespaces/servers/"))
		if len(calls) == 1 {
			answerFailure(w, http.StatusConflict, meta.StatusReasonAlreadyExists)
			return
		}
		answerJSON(w, http.StatusOK, meta.Status{TypeMeta: meta.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: meta.StatusSuccess})
	})
	require.NoError(t, e.keepCredentials(t.Context(), "pod", runtime.Auth{Host: "r", Username: "u", Password: "p"}))
	require.Equal(t, []string{"POST secrets", "DELETE secrets/pod", "POST secrets"}, calls)
}

// TestRemoveLeavesNothing: a Service and a Secret are removed before the pod that leads to them, and
// also if the pod is gone.
func TestRemoveLeavesNothing(t *testing.T) {
	for _, exists := range []bool{true, false} {
		var deleted []string
		gone := !exists
		e := testEngine()
		pod, err := e.build(testSpec(), resolved{digest: "sha256:1", ref: "img@sha256:1"}, "keeper/1")
		require.NoError(t, err)
		pod.UID, pod.Finalizers = "1", nil
		e = against(t, e, func(w http.ResponseWriter, r *http.Request) {
			path := strings.TrimPrefix(r.URL.Path, "/api/v1/namespaces/servers/")
			switch {
			case r.Method == http.MethodDelete:
				deleted = append(deleted, path)
				gone = gone || strings.HasPrefix(path, "pods/")
				answerFailure(w, http.StatusNotFound, meta.StatusReasonNotFound)
			case path == "pods" && gone:
				answerJSON(w, http.StatusOK, core1.PodList{})
			case gone:
				answerFailure(w, http.StatusNotFound, meta.StatusReasonNotFound)
			default:
				answerJSON(w, http.StatusOK, pod)
			}
		})
		require.NoError(t, e.Remove(t.Context(), testSpec().Name))
		want := []string{"services/" + pod.Name, "secrets/" + pod.Name}
		if exists {
			want = append(want, "pods/"+pod.Name)
		}
		require.Equal(t, want, deleted)
	}
}

func TestListHasPages(t *testing.T) {
	e := testEngine()
	var pods []core1.Pod
	for i := range 3 {
		s := testSpec()
		s.Name.ID = fmt.Sprint("c", i)
		pod, err := e.build(s, resolved{digest: "sha256:1", ref: "img@sha256:1"}, "keeper/1")
		require.NoError(t, err)
		pods = append(pods, *pod)
	}
	e = against(t, e, func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		require.NotEmpty(t, q.Get("limit"))
		page, at := core1.PodList{}, len(q.Get("continue"))
		page.Items = pods[at : at+1]
		if at < 2 {
			page.Continue = strings.Repeat("x", at+1)
		}
		page.ResourceVersion = "7"
		answerJSON(w, http.StatusOK, page)
	})
	all, version, err := e.pods(t.Context())
	require.NoError(t, err)
	require.Equal(t, "7", version)
	var names []string
	for _, c := range found(all) {
		names = append(names, c.Name.ID)
		require.Equal(t, []string{"/volumes/v1"}, c.Mounts)
	}
	require.Equal(t, []string{"c0", "c1", "c2"}, names)
}

// TestShortRunStartsOnce: a run that ended after Inspect saw its start, and before Start, is not
// started again. One whose end was seen is.
func TestShortRunStartsOnce(t *testing.T) {
	c, spec := testEngine(), testSpec()
	spec.Mounts, spec.Ports, c.cfg.Volumes, c.cfg.Keeper = nil, nil, t.TempDir(), filepath.Join(t.TempDir(), "keeper")
	require.NoError(t, os.WriteFile(c.cfg.Keeper, nil, 0o600))
	pod, err := c.build(spec, resolved{digest: "sha256:1", ref: "img@sha256:1"}, "keeper/1")
	require.NoError(t, err)
	pod.UID, pod.Spec.SchedulingGates = "1", nil
	var calls []string
	e := against(t, c, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			answerJSON(w, http.StatusOK, pod)
			return
		}
		calls = append(calls, r.Method)
		answerFailure(w, http.StatusForbidden, meta.StatusReasonForbidden)
	})
	s, err := e.Inspect(t.Context(), spec.Name)
	require.NoError(t, err)
	require.True(t, s.Starting)
	pod.Status.ContainerStatuses = []core1.ContainerStatus{{Name: serverContainer, State: core1.ContainerState{Terminated: &core1.ContainerStateTerminated{}}}}
	require.NoError(t, e.Start(t.Context(), spec.Name))
	require.Empty(t, calls)
	_, err = e.Inspect(t.Context(), spec.Name)
	require.NoError(t, err)
	require.Error(t, e.Start(t.Context(), spec.Name))
	require.Equal(t, []string{http.MethodPost}, calls, "the dry run of the next one")
}

// TestKillAwaitsTheReport: a kubelet that refuses an exec because the program has exited reports that
// exit later, and the pod is not calls.
func TestKillAwaitsTheReport(t *testing.T) {
	c, spec := testEngine(), testSpec()
	c.log, spec.Mounts = slog.New(slog.DiscardHandler), nil
	pod, err := c.build(spec, resolved{digest: "sha256:1", ref: "img@sha256:1"}, "keeper/1")
	require.NoError(t, err)
	pod.UID, pod.Spec.SchedulingGates = "1", nil
	report := func(s core1.ContainerState) {
		pod.Status.ContainerStatuses = []core1.ContainerStatus{{Name: serverContainer, State: s}}
	}
	report(core1.ContainerState{Running: &core1.ContainerStateRunning{}})
	var calls []string
	e := against(t, c, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/exec"):
			calls = append(calls, "exec")
			report(core1.ContainerState{Terminated: &core1.ContainerStateTerminated{}})
			http.Error(w, `container not found ("server")`, http.StatusInternalServerError)
		case strings.HasSuffix(r.URL.Path, "/pods"):
			answerJSON(w, http.StatusOK, core1.PodList{Items: []core1.Pod{*pod}})
		case r.Method == http.MethodGet:
			answerJSON(w, http.StatusOK, pod)
		default:
			calls = append(calls, r.Method)
			answerFailure(w, http.StatusForbidden, meta.StatusReasonForbidden)
		}
	})
	require.NoError(t, e.Kill(t.Context(), spec.Name))
	require.Equal(t, []string{"exec"}, calls)
}
