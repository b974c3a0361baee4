//go:build cluster

package kubernetes

import (
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/stretchr/testify/require"
	core1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content/memory"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
	"sigs.k8s.io/yaml"

	"berth/hack/test/enginetest"
	"berth/runtime"
)

// cluster is an Engine with its own store and claim on the cluster of hack/kube. It has the
// permissions of hack/deploy/kubernetes/role.yaml.
type cluster struct {
	*Engine
	admin *core  // the client of the cluster's administrator
	host  string // address of the test that nodes reach
}

const claim = "volumes"

// newCluster returns an Engine in a namespace of its own.
func newCluster(t *testing.T) cluster {
	t.Helper()
	world := os.Getenv("KUBE_WORLD")
	require.NotEmpty(t, world, "needs a cluster: make test-kube")
	host := os.Getenv("KUBE_HOST")
	volumes, err := os.MkdirTemp(world, "volumes")
	require.NoError(t, err)
	require.NoError(t, os.Chmod(volumes, 0o755))
	keeper := filepath.Join(t.TempDir(), "keeper")
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", keeper, "berth/cmd/keeper")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	name := "test-" + strings.ToLower(rand.Text()[:10])
	config := Config{
		Kubeconfig: os.Getenv("KUBECONFIG"), Namespace: name, StoreID: name, Claim: claim, Volumes: volumes, Keeper: keeper,
		PlainHTTP: []string{host + ":5000", host + ":5001"}, RequestsShare: 0.01,
	}
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	administrator, err := New(config, nil, log)
	require.NoError(t, err)
	c := cluster{admin: administrator.core, host: host}
	c.prepare(t, name, volumes)
	config.Kubeconfig = c.permit(t, name)
	c.Engine, err = New(config, nil, log)
	require.NoError(t, err)
	return c
}

// permit creates the service account of berth in a namespace with the permissions of role.yaml,
// and returns the path of a configuration with its credentials.
func (c cluster) permit(t *testing.T, namespace string) (kubeconfig string) {
	t.Helper()
	manifest, err := os.ReadFile("../../hack/deploy/kubernetes/role.yaml")
	require.NoError(t, err)
	text := strings.ReplaceAll(string(manifest), "namespace: berth", "namespace: "+namespace)
	paths := map[string]string{
		"ServiceAccount":     "/api/v1/namespaces/" + namespace + "/serviceaccounts",
		"Role":               "/apis/rbac.authorization.k8s.io/v1/namespaces/" + namespace + "/roles",
		"RoleBinding":        "/apis/rbac.authorization.k8s.io/v1/namespaces/" + namespace + "/rolebindings",
		"ClusterRole":        "/apis/rbac.authorization.k8s.io/v1/clusterroles",
		"ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
	}
	for document := range strings.SplitSeq(text, "\n---\n") {
		var object struct{ Kind string }
		require.NoError(t, yaml.Unmarshal([]byte(document), &object))
		if strings.HasPrefix(object.Kind, "Cluster") { // several namespaces of one cluster have berths here
			document = strings.ReplaceAll(document, "name: berth\n", "name: "+namespace+"\n")
			document = strings.ReplaceAll(document, "kind: ClusterRole, name: berth", "kind: ClusterRole, name: "+namespace)
		}
		body, err := yaml.YAMLToJSON([]byte(document))
		require.NoError(t, err)
		require.NoError(t, c.admin.client.Post().AbsPath(paths[object.Kind]).Body(body).Do(t.Context()).Error(), object.Kind)
	}
	request := []byte(`{"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}`)
	answer, err := c.admin.client.Post().AbsPath(paths["ServiceAccount"] + "/berth/token").Body(request).DoRaw(t.Context())
	require.NoError(t, err)
	var token struct{ Status struct{ Token string } }
	require.NoError(t, json.Unmarshal(answer, &token))
	text = fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: k, cluster: {server: %q, certificate-authority: %q}}]
users: [{name: u, user: {token: %q}}]
contexts: [{name: c, context: {cluster: k, user: u}}]
current-context: c
`, c.admin.rest.Host, c.admin.rest.CAFile, token.Status.Token)
	kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(kubeconfig, []byte(text), 0o600))
	return kubeconfig
}

// prepare creates the namespace and the claim. All nodes of the cluster share the directory.
func (c cluster) prepare(t *testing.T, name, volumes string) {
	t.Helper()
	size := core1.ResourceList{core1.ResourceStorage: resource.MustParse("1Gi")}
	shared := []core1.PersistentVolumeAccessMode{core1.ReadWriteMany}
	none := ""
	require.NoError(t, c.admin.client.Post().Resource("namespaces").Body(&core1.Namespace{ObjectMeta: meta.ObjectMeta{Name: name}}).Do(t.Context()).Error())
	require.NoError(t, c.admin.client.Post().Resource("persistentvolumes").Body(&core1.PersistentVolume{
		ObjectMeta: meta.ObjectMeta{Name: name},
		Spec: core1.PersistentVolumeSpec{
			Capacity: size, AccessModes: shared, ClaimRef: &core1.ObjectReference{Namespace: name, Name: claim},
			PersistentVolumeSource: core1.PersistentVolumeSource{HostPath: &core1.HostPathVolumeSource{Path: volumes}},
		},
	}).Do(t.Context()).Error())
	require.NoError(t, c.admin.client.Post().Namespace(name).Resource("persistentvolumeclaims").Body(&core1.PersistentVolumeClaim{
		ObjectMeta: meta.ObjectMeta{Name: claim},
		Spec: core1.PersistentVolumeClaimSpec{AccessModes: shared, StorageClassName: &none, VolumeName: name,
			Resources: core1.VolumeResourceRequirements{Requests: size}},
	}).Do(t.Context()).Error())
	// Pods need the default service account, which the cluster creates a moment later.
	enginetest.Until(t, 20e9, "the default service account", func() bool {
		return c.admin.client.Get().Namespace(name).Resource("serviceaccounts").Name("default").Do(t.Context()).Error() == nil
	})
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
	pod, _, err := c.core.get(t.Context(), c.core.podName(n))
	require.NoError(t, err)
	return pod
}
