//go:build cluster

package kubernetes

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/stretchr/testify/require"
	core1 "k8s.io/api/core/v1"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content/memory"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"

	"berth/hack/test/enginetest"
	"berth/hack/test/kubetest"
	"berth/runtime"
)

// cluster is an Engine with its own store and claim on the cluster of hack/kube. It has the
// permissions of hack/deploy/kubernetes/role.yaml.
type cluster struct {
	*Engine
	namespace *kubetest.Namespace
	admin     *Engine // the client of the cluster's administrator
	host      string  // address of the test that nodes reach
}

// newCluster returns an Engine in a namespace of its own.
func newCluster(t testing.TB) cluster {
	t.Helper()
	require.True(t, kubetest.Running(), "needs a cluster: make test-kube")
	volumes := kubetest.Dir(t)
	n := kubetest.New(t, volumes)
	config := Config{
		Kubeconfig: n.Kubeconfig, Namespace: n.Name, StoreID: n.Name, Claim: kubetest.Claim, Volumes: volumes, Keeper: n.Keeper,
		PlainHTTP: []string{kubetest.Host() + ":5000", kubetest.Host() + ":5001"}, RequestsShare: 0.01,
	}
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	engine, err := New(config, nil, log)
	require.NoError(t, err)
	config.Kubeconfig = os.Getenv("KUBECONFIG")
	administrator, err := New(config, nil, log)
	require.NoError(t, err)
	return cluster{Engine: engine, namespace: n, admin: administrator, host: kubetest.Host()}
}

// push pushes an image with busybox to a registry, and returns its reference.
func push(t *testing.T, r *enginetest.Registry, name string) (ref string) {
	t.Helper()
	root := enginetest.BusyboxTar(t)
	var layer bytes.Buffer
	w := gzip.NewWriter(&layer)
	_, err := w.Write(root)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	sum := sha256.Sum256(root)
	config, err := json.Marshal(map[string]any{
		"architecture": "amd64", "os": "linux", "config": map[string]any{"Env": []string{"PATH=/bin"}, "Cmd": []string{"sh"}},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{"sha256:" + hex.EncodeToString(sum[:])}},
	})
	require.NoError(t, err)
	store := memory.New()
	manifest := ocispec.Manifest{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest}
	manifest.Config, err = oras.PushBytes(t.Context(), store, ocispec.MediaTypeImageConfig, config)
	require.NoError(t, err)
	blob, err := oras.PushBytes(t.Context(), store, ocispec.MediaTypeImageLayerGzip, layer.Bytes())
	require.NoError(t, err)
	manifest.Layers = []ocispec.Descriptor{blob}
	text, err := json.Marshal(manifest)
	require.NoError(t, err)
	_, err = oras.TagBytes(t.Context(), store, ocispec.MediaTypeImageManifest, text, name)
	require.NoError(t, err)

	repository, tag, _ := strings.Cut(name, ":")
	target, err := remote.NewRepository(r.Addr + "/" + repository)
	require.NoError(t, err)
	target.PlainHTTP = true
	target.Client = &auth.Client{Credential: auth.StaticCredential(r.Addr, auth.Credential{Username: r.User, Password: r.Password})}
	_, err = oras.Copy(t.Context(), store, name, target, tag, oras.DefaultCopyOptions)
	require.NoError(t, err)
	return r.Addr + "/" + name
}

// pod returns the pod of a container.
func (c cluster) pod(t *testing.T, n runtime.Name) *core1.Pod {
	t.Helper()
	pod, _, err := c.get(t.Context(), c.podName(n))
	require.NoError(t, err)
	return pod
}
