// Package kubetest has what tests need of the cluster of hack/kube: a namespace with a claim and
// with the permissions of a berth, and an image that its nodes can pull.
package kubetest

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	core1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"berth/hack/test/enginetest"
)

// Node is the address of the first node, on which ports are published.
const Node = "10.77.0.101"

// Claim is the name of the claim of a Namespace.
const Claim = "volumes"

// Running reports whether the test runs beside the cluster of hack/kube.
func Running() bool { return os.Getenv("KUBE_WORLD") != "" }

// Host returns the address of the test that nodes reach. Nodes use registries there on the ports
// 5000 and 5001 without TLS.
func Host() string { return os.Getenv("KUBE_HOST") }

// Dir creates a directory that all nodes share.
func Dir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp(os.Getenv("KUBE_WORLD"), "test")
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	require(t, err)
	return dir
}

// Namespace is a namespace of the cluster, with a claim and with the permissions of a berth, and
// no others.
type Namespace struct {
	Name       string
	Volumes    string // the directory of Claim
	Kubeconfig string // path of the credentials of berth's service account
	Keeper     string // path of the keeper

	admin  *rest.Config // of the cluster's administrator
	client *http.Client
}

// New creates a namespace whose claim is a directory that all nodes share. The test ends what
// runs in it.
func New(t testing.TB, volumes string) *Namespace {
	t.Helper()
	n := &Namespace{Name: "test-" + strings.ToLower(rand.Text()[:10]), Volumes: volumes, Keeper: Keeper(t)}
	var err error
	n.admin, err = clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	require(t, err)
	n.client, err = rest.HTTPClientFor(n.admin)
	require(t, err)
	n.post(t, "/api/v1/namespaces", fmt.Appendf(nil, `{"metadata": {"name": %q}}`, n.Name))
	n.MakeClaim(t, Claim, n.Volumes)
	// Pods need the default service account, which the cluster creates a moment later.
	enginetest.Until(t, 3*time.Minute, "the default service account", func() bool {
		status, _ := n.Call(t, http.MethodGet, "/api/v1/namespaces/"+n.Name+"/serviceaccounts/default", nil)
		return status == http.StatusOK
	})
	n.permit(t)
	t.Cleanup(func() { n.endPods(t) })
	return n
}

// Config returns the YAML with which a daemon uses the namespace.
func (n *Namespace) Config() string {
	text, _ := json.Marshal(map[string]any{ // JSON is YAML; a map of strings cannot fail
		"kubeconfig": n.Kubeconfig, "namespace": n.Name, "claim": Claim, "keeper": n.Keeper, "requests_percent": 1,
		"plain_registries": []string{Host() + ":5000", Host() + ":5001"},
	})
	return "engine: kubernetes\nkubernetes: " + string(text) + "\n"
}

// Call sends a request as the cluster's administrator. body is JSON, or nil.
func (n *Namespace) Call(t testing.TB, method, path string, body []byte) (status int, answer []byte) {
	t.Helper()
	response := n.send(t, method, path, body)
	defer response.Body.Close()
	var text bytes.Buffer
	_, err := text.ReadFrom(response.Body)
	require(t, err)
	return response.StatusCode, text.Bytes()
}

// Follow returns the output of a pod as its kubelet streams it, from now on. Each line begins with
// the time at which the node has read it.
func (n *Namespace) Follow(t testing.TB, pod string) io.ReadCloser {
	t.Helper()
	return n.send(t, http.MethodGet, "/api/v1/namespaces/"+n.Name+"/pods/"+pod+"/log?follow=true&timestamps=true&tailLines=0", nil).Body
}

func (n *Namespace) send(t testing.TB, method, path string, body []byte) *http.Response {
	t.Helper()
	request, err := http.NewRequestWithContext(context.WithoutCancel(t.Context()), method, n.admin.Host+path, bytes.NewReader(body))
	require(t, err)
	request.Header.Set("Content-Type", "application/json")
	response, err := n.client.Do(request)
	require(t, err)
	return response
}

// post creates an object.
func (n *Namespace) post(t testing.TB, path string, body []byte) (answer []byte) {
	t.Helper()
	status, answer := n.Call(t, http.MethodPost, path, body)
	if status >= 300 {
		t.Fatalf("cluster: POST %s: %d %s", path, status, answer)
	}
	return answer
}

// Containers returns the pods as an engine's list of containers. With an id it returns only
// those of that internal_id.
func (n *Namespace) Containers(t testing.TB, id string) (all []enginetest.Listed) {
	t.Helper()
	for _, pod := range n.Pods(t, id) {
		record := recordOf(t, pod)
		labels := map[string]string{"io.berth.container": record.ID, "io.berth.role": record.Role}
		one := enginetest.Listed{ID: string(pod.UID), Names: []string{pod.Name}, State: "exited", Labels: labels}
		switch statuses := pod.Status.ContainerStatuses; {
		case len(pod.Spec.SchedulingGates) > 0:
			one.State = "created"
		case len(statuses) > 0 && statuses[0].State.Running != nil:
			one.State, one.Run = "running", statuses[0].ContainerID
		}
		all = append(all, one)
	}
	return all
}

// record is what a test reads of the record in a pod.
type record struct{ ID, Role string }

func recordOf(t testing.TB, pod core1.Pod) (r record) {
	t.Helper()
	require(t, json.Unmarshal([]byte(pod.Annotations["berth.io/record"]), &r))
	return r
}

// Pods returns the pods. With an id it returns only those of that internal_id.
func (n *Namespace) Pods(t testing.TB, id string) (all []core1.Pod) {
	t.Helper()
	status, answer := n.Call(t, http.MethodGet, "/api/v1/namespaces/"+n.Name+"/pods", nil)
	var list core1.PodList
	require(t, json.Unmarshal(answer, &list))
	if status != http.StatusOK {
		t.Fatalf("cluster: GET pods: %d %s", status, answer)
	}
	for _, pod := range list.Items {
		if id == "" || recordOf(t, pod).ID == id {
			all = append(all, pod)
		}
	}
	return all
}

// MakeClaim creates a claim whose files are in a directory that all nodes share.
func (n *Namespace) MakeClaim(t testing.TB, claim, dir string) {
	t.Helper()
	volume := n.Name + "-" + claim
	n.post(t, "/api/v1/persistentvolumes", fmt.Appendf(nil, `{"metadata": {"name": %q}, "spec": {"capacity": {"storage": "1Gi"},
		"accessModes": ["ReadWriteMany"], "claimRef": {"namespace": %q, "name": %q}, "hostPath": {"path": %q}}}`, volume, n.Name, claim, dir))
	n.post(t, "/api/v1/namespaces/"+n.Name+"/persistentvolumeclaims", fmt.Appendf(nil, `{"metadata": {"name": %q}, "spec": {
		"accessModes": ["ReadWriteMany"], "storageClassName": "", "volumeName": %q, "resources": {"requests": {"storage": "1Gi"}}}}`,
		claim, volume))
}

// permit creates the service account of berth with the permissions of role.yaml, and a
// configuration with its credentials.
func (n *Namespace) permit(t testing.TB) {
	t.Helper()
	manifest, err := os.ReadFile(filepath.Join(module(t), "hack/deploy/kubernetes/role.yaml"))
	require(t, err)
	text := strings.ReplaceAll(string(manifest), "namespace: berth", "namespace: "+n.Name)
	paths := map[string]string{
		"ServiceAccount":     "/api/v1/namespaces/" + n.Name + "/serviceaccounts",
		"Role":               "/apis/rbac.authorization.k8s.io/v1/namespaces/" + n.Name + "/roles",
		"RoleBinding":        "/apis/rbac.authorization.k8s.io/v1/namespaces/" + n.Name + "/rolebindings",
		"ClusterRole":        "/apis/rbac.authorization.k8s.io/v1/clusterroles",
		"ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
	}
	for document := range strings.SplitSeq(text, "\n---\n") {
		var object struct{ Kind string }
		require(t, yaml.Unmarshal([]byte(document), &object))
		if strings.HasPrefix(object.Kind, "Cluster") { // several namespaces of one cluster have berths here
			document = strings.ReplaceAll(document, "name: berth\n", "name: "+n.Name+"\n")
			document = strings.ReplaceAll(document, "kind: ClusterRole, name: berth", "kind: ClusterRole, name: "+n.Name)
		}
		body, err := yaml.YAMLToJSON([]byte(document))
		require(t, err)
		n.post(t, paths[object.Kind], body)
	}
	answer := n.post(t, paths["ServiceAccount"]+"/berth/token",
		[]byte(`{"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}`))
	var token struct{ Status struct{ Token string } }
	require(t, json.Unmarshal(answer, &token))
	n.Kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	require(t, os.WriteFile(n.Kubeconfig, fmt.Appendf(nil, `apiVersion: v1
kind: Config
clusters: [{name: k, cluster: {server: %q, certificate-authority: %q}}]
users: [{name: u, user: {token: %q}}]
contexts: [{name: c, context: {cluster: k, user: u}}]
current-context: c
`, n.admin.Host, n.admin.CAFile, token.Status.Token), 0o600))
}

// endPods ends the processes of the namespace's pods. Their finalizers keep the objects, which
// end with the cluster.
func (n *Namespace) endPods(t testing.TB) {
	t.Helper()
	status, answer := n.Call(t, http.MethodDelete, "/api/v1/namespaces/"+n.Name+"/pods?gracePeriodSeconds=1", nil)
	if status >= 300 {
		t.Errorf("cluster: delete pods: %d %s", status, answer)
	}
}

// Keeper returns the path of the keeper, which each test process builds once.
func Keeper(t testing.TB) string {
	t.Helper()
	path, err := buildKeeper()
	require(t, err)
	return path
}

var buildKeeper = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp(os.Getenv("KUBE_WORLD"), "keeper")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "berth-keeper")
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", path, "berth/cmd/keeper")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return path, nil
})

// module returns the directory of the module.
func module(t testing.TB) string {
	t.Helper()
	out, err := exec.Command("go", "env", "GOMOD").Output()
	require(t, err)
	return filepath.Dir(strings.TrimSpace(string(out)))
}

// The test process serves images, each under its name.
var (
	images         sync.Map
	busybox, serve sync.Once
)

// Image returns the reference of an image with busybox.
func Image(t testing.TB) (ref string) {
	t.Helper()
	busybox.Do(func() {
		Push(t, "busybox", enginetest.BusyboxTar(t), ocispec.ImageConfig{Env: []string{"PATH=/bin"}, Cmd: []string{"sh"}})
	})
	return Host() + ":5000/busybox:1"
}

// Push makes an image with a tar as its root, which nodes find on port 5000 of Host under its name and
// any tag. The test process serves it, with what a registry needs to answer for a pull.
func Push(t testing.TB, name string, root []byte, config ocispec.ImageConfig) {
	t.Helper()
	images.Store(name, build(t, root, config))
	serve.Do(func() {
		l, err := net.Listen("tcp", Host()+":5000")
		require(t, err)
		server := &http.Server{Handler: http.HandlerFunc(answer), ReadHeaderTimeout: 10 * time.Second}
		go func() { _ = server.Serve(l) }() // until the process ends
	})
}

// image is an image under any tag.
type image struct {
	manifest []byte
	blobs    map[string][]byte // by digest
}

// answer answers as a registry.
func answer(w http.ResponseWriter, request *http.Request) {
	if request.URL.Path == "/v2/" {
		return
	}
	name, rest, _ := strings.Cut(strings.TrimPrefix(request.URL.Path, "/v2/"), "/")
	found, _ := images.Load(name)
	one, _ := found.(image)
	blob := one.blobs[path.Base(rest)]
	switch {
	case strings.HasPrefix(rest, "blobs/") && blob != nil:
		http.ServeContent(w, request, "", time.Time{}, bytes.NewReader(blob))
	case strings.HasPrefix(rest, "manifests/") && one.manifest != nil:
		w.Header().Set("Content-Type", ocispec.MediaTypeImageManifest)
		w.Header().Set("Docker-Content-Digest", digest.FromBytes(one.manifest).String())
		http.ServeContent(w, request, "", time.Time{}, bytes.NewReader(one.manifest))
	default:
		http.NotFound(w, request)
	}
}

// build returns the image of a root.
func build(t testing.TB, root []byte, c ocispec.ImageConfig) (one image) {
	t.Helper()
	var layer bytes.Buffer
	w := gzip.NewWriter(&layer)
	_, err := w.Write(root)
	require(t, err)
	require(t, w.Close())
	config, err := json.Marshal(ocispec.Image{
		Platform: ocispec.Platform{OS: "linux", Architecture: goruntime.GOARCH},
		Config:   c,
		RootFS:   ocispec.RootFS{Type: "layers", DiffIDs: []digest.Digest{digest.FromBytes(root)}},
	})
	require(t, err)
	one.blobs = map[string][]byte{}
	part := func(mediaType string, content []byte) ocispec.Descriptor {
		d := ocispec.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(content), Size: int64(len(content))}
		one.blobs[d.Digest.String()] = content
		return d
	}
	one.manifest, err = json.Marshal(ocispec.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest,
		Config: part(ocispec.MediaTypeImageConfig, config), Layers: []ocispec.Descriptor{part(ocispec.MediaTypeImageLayerGzip, layer.Bytes())},
	})
	require(t, err)
	return one
}

// require ends a test with an error.
func require(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("cluster: %v", err)
	}
}
