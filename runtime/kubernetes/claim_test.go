package kubernetes

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	core1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"

	"berth/runtime"
)

// claimServer is the claims of a cluster in memory, and what was asked for.
type claimServer struct {
	t       *testing.T
	claims  map[string]*core1.PersistentVolumeClaim
	events  []core1.Event
	refusal string // of each change
	calls   []string
}

func (s *claimServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := strings.TrimPrefix(r.URL.Path, "/api/v1/namespaces/servers/")
	if path == "events" {
		answerJSON(w, http.StatusOK, core1.EventList{Items: s.events})
		return
	}
	name := strings.TrimPrefix(strings.TrimPrefix(path, "persistentvolumeclaims"), "/")
	if r.Method != http.MethodGet {
		s.calls = append(s.calls, r.Method+" "+name)
		if s.refusal != "" {
			answerJSON(w, http.StatusForbidden, meta.Status{TypeMeta: meta.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: meta.StatusFailure,
				Reason: meta.StatusReasonForbidden, Code: http.StatusForbidden, Message: s.refusal})
			return
		}
	}
	claim := s.claims[name]
	switch {
	case r.Method == http.MethodPost:
		claim = &core1.PersistentVolumeClaim{}
		body, err := io.ReadAll(r.Body)
		require.NoError(s.t, err)
		var envelope apiruntime.Unknown
		require.NoError(s.t, envelope.Unmarshal(body[len("k8s\x00"):]))
		require.NoError(s.t, claim.Unmarshal(envelope.Raw))
		claim.UID = "1"
		s.claims[claim.Name] = claim
	case claim == nil:
		answerFailure(w, http.StatusNotFound, meta.StatusReasonNotFound)
		return
	case r.Method == http.MethodPatch:
		require.NoError(s.t, json.NewDecoder(r.Body).Decode(claim))
	case r.Method == http.MethodDelete:
		delete(s.claims, name)
	}
	answerJSON(w, http.StatusOK, claim)
}

// TestClaimOfAVolume: from the request of a claim to its deletion.
func TestClaimOfAVolume(t *testing.T) {
	s := &claimServer{t: t, claims: map[string]*core1.PersistentVolumeClaim{}}
	e := against(t, testEngine(), s.ServeHTTP)

	s.refusal = `persistentvolumeclaims "v" is forbidden: exceeded quota: tenants, requested: requests.storage=1Gi`
	waits, err := e.EnsureClaim(t.Context(), "v", "fast", 1<<30)
	require.NoError(t, err)
	require.Contains(t, waits, "requests.storage=1Gi")

	s.refusal, s.events = "", []core1.Event{{Reason: "ProvisioningFailed", Message: `storageclass "fast" not found`}}
	waits, err = e.EnsureClaim(t.Context(), "v", "fast", 1<<30)
	require.NoError(t, err)
	require.Equal(t, `it is not bound: ProvisioningFailed: storageclass "fast" not found`, waits)
	claim := s.claims["v"]
	require.Equal(t, "fast", *claim.Spec.StorageClassName)
	require.Equal(t, []core1.PersistentVolumeAccessMode{core1.ReadWriteMany}, claim.Spec.AccessModes)
	require.Equal(t, map[string]string{labelStore: hash("store"), labelVolume: "v"}, claim.Labels)
	require.Empty(t, claim.OwnerReferences, "it stays without its pods")

	claim.Status.Phase = core1.ClaimBound
	waits, err = e.EnsureClaim(t.Context(), "v", "fast", 1<<30)
	require.NoError(t, err)
	require.Empty(t, waits)

	require.NoError(t, e.ResizeClaim(t.Context(), "v", 1<<20), "Kubernetes cannot lower it")
	require.NoError(t, e.ResizeClaim(t.Context(), "v", 2<<30))
	require.Equal(t, resource.MustParse("2Gi"), s.claims["v"].Spec.Resources.Requests[core1.ResourceStorage])
	s.refusal = "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize"
	require.ErrorIs(t, e.ResizeClaim(t.Context(), "v", 3<<30), runtime.ErrInvalid)
	s.refusal = ""
	require.NoError(t, e.RemoveClaim(t.Context(), "v"))
	require.NoError(t, e.RemoveClaim(t.Context(), "v"), "it is gone")
	require.Equal(t, []string{"POST ", "POST ", "PATCH v", "PATCH v", "DELETE v"}, s.calls)
}

// TestClaimOfAnotherStore is neither used nor removed.
func TestClaimOfAnotherStore(t *testing.T) {
	foreign := &core1.PersistentVolumeClaim{ObjectMeta: meta.ObjectMeta{Name: "v", Labels: map[string]string{labelStore: hash("other")}}}
	foreign.Status.Phase = core1.ClaimBound
	s := &claimServer{t: t, claims: map[string]*core1.PersistentVolumeClaim{"v": foreign}}
	e := against(t, testEngine(), s.ServeHTTP)
	_, err := e.EnsureClaim(t.Context(), "v", "fast", 1)
	require.ErrorIs(t, err, runtime.ErrUnmanaged)
	require.ErrorIs(t, e.ResizeClaim(t.Context(), "v", 1<<40), runtime.ErrUnmanaged)
	require.NoError(t, e.RemoveClaim(t.Context(), "v"))
	require.Empty(t, s.calls)
}

// TestPodMountsTheClaimOfItsVolume: all of it, beside the keeper of the common one, in each run.
func TestPodMountsTheClaimOfItsVolume(t *testing.T) {
	e, s := testEngine(), testSpec()
	s.Mounts[0].Claim = "v1"
	pod, err := e.build(s, resolved{digest: "sha256:1", ref: "img@sha256:1"}, "keeper/1")
	require.NoError(t, err)
	r, ours := e.recordOf(pod)
	require.True(t, ours)
	require.Equal(t, "1", r.SpecHash)
	next, err := e.successor(pod, r, time.Time{})
	require.NoError(t, err)
	for _, p := range []*core1.Pod{pod, next} {
		require.Equal(t, "volumes", claimOf(p))
		require.Equal(t, "v1", p.Spec.Volumes[1].PersistentVolumeClaim.ClaimName)
		require.Equal(t, core1.VolumeMount{Name: p.Spec.Volumes[1].Name, MountPath: "/home/container"}, serverOf(p).VolumeMounts[1])
		require.Equal(t, volumesName, serverOf(p).VolumeMounts[0].Name)
	}
}
