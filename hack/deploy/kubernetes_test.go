//go:build cluster

package deploy_test

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/stretchr/testify/require"

	"berth/hack/test/berthtest"
	"berth/hack/test/enginetest"
	"berth/hack/test/kubetest"
)

// overlay is what an operator of one node without a shared file system writes. The cluster of
// hack/kube has no network of Services: berth gets the API server's address.
const overlay = `resources: [%[1]s, volumes.yaml]
images: [{name: registry.example/berth, newName: "%[2]s:5000/berth"}]
patches:
  - target: {kind: PersistentVolumeClaim}
    patch: '[{"op": "add", "path": "/spec/storageClassName", "value": ""}]'
  - target: {kind: StatefulSet}
    patch: |
      - {op: add, path: /spec/template/spec/containers/0/env/-, value: {name: BERTH_KUBERNETES_PLAIN_REGISTRIES, value: "%[2]s:5000"}}
      - {op: add, path: /spec/template/spec/containers/0/env/-, value: {name: KUBERNETES_SERVICE_HOST, value: "%[2]s"}}
      - {op: add, path: /spec/template/spec/containers/0/env/-, value: {name: KUBERNETES_SERVICE_PORT, value: "6443"}}
`

const localVolume = `---
apiVersion: v1
kind: PersistentVolume
metadata: {name: berth-%[1]s}
spec:
  claimRef: {namespace: berth, name: berth-%[1]s}
  capacity: {storage: 100Gi}
  accessModes: [%[2]s]
  local: {path: %[3]s}
  nodeAffinity:
    required: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [n1]}]}]}
`

const server = `{"internal_id": "survival", "image": %q, "volume_id": %q, "ports": [{"ip": %q, "port": 25565, "protocol": "tcp"}],
	"startup_command": "i=0; while true; do i=$((i+1)); echo line $i; sleep 0.2; done", "power": "running"}`

// TestKubernetes installs berth as hack/docs/kubernetes.md describes it, runs a server, replaces
// berth's pod under it, and removes all. The cluster does not enforce the NetworkPolicy.
func TestKubernetes(t *testing.T) {
	dir := install(t)
	berth := func(input string, args ...string) string {
		t.Helper()
		return kubectl(t, input, append([]string{"-n", "berth", "exec", "-i", "berth-0", "--", "berth"}, args...)...)
	}
	require.NotContains(t, berth("", "doctor"), "FAIL")
	berth("", "ports", "add", kubetest.Node, "25565", "tcp")
	volume := regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`).FindString(berth("", "volumes", "create"))
	berth(fmt.Sprintf(server, kubetest.Image(t), volume, kubetest.Node), "apply", "--wait", "-f", "-")
	runs := func() string {
		return kubectl(t, "", "-n", "berth", "get", "pods", "-l", "berth.io/store", "-o", "jsonpath={.items[*].status.containerStatuses[*].containerID}")
	}
	before, seen := runs(), lines(t, berth("", "logs", "survival"))
	require.NotEmpty(t, before)

	kubectl(t, "", "-n", "berth", "delete", "pod", "berth-0")
	enginetest.Until(t, 2*time.Minute, "berth is back", func() bool {
		return exec.Command("kubectl", "-n", "berth", "wait", "--for=condition=Ready", "--timeout=5s", "pod/berth-0").Run() == nil
	})
	require.Contains(t, berth("", "containers", "survival"), "running")
	enginetest.Until(t, 3*time.Minute, "the console goes on", func() bool { return lines(t, berth("", "logs", "-n", "10000", "survival")) > seen+20 })
	require.Equal(t, before, runs(), "the same run")

	berth("", "delete", "--wait", "survival")
	require.Empty(t, runs())
	kubectl(t, "", "delete", "-k", dir)
}

// install returns the directory of the overlay that it applies.
func install(t *testing.T) (dir string) {
	t.Helper()
	dir = kubetest.Dir(t)
	manifests, err := filepath.Abs("kubernetes")
	require.NoError(t, err)
	manifests, err = filepath.Rel(dir, manifests) // an overlay must not name an absolute path
	require.NoError(t, err)
	var volumes string
	for name, mode := range map[string]string{"store": "ReadWriteOncePod", "volumes": "ReadWriteMany"} {
		path := filepath.Join(dir, name)
		require.NoError(t, os.Mkdir(path, 0o755))
		volumes += fmt.Sprintf(localVolume, name, mode, path)
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "volumes.yaml"), []byte(volumes), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "kustomization.yaml"), fmt.Appendf(nil, overlay, manifests, kubetest.Host()), 0o644))
	kubetest.Push(t, "berth", root(t), ocispec.ImageConfig{Env: []string{"PATH=/usr/bin"}, Entrypoint: []string{"berth"}})
	kubectl(t, "", "apply", "-k", dir)
	kubectl(t, "", "-n", "berth", "create", "secret", "generic", "berth", "--from-literal=token="+berthtest.NewToken())
	kubectl(t, "", "-n", "berth", "rollout", "status", "--timeout=3m", "statefulset/berth")
	return dir
}

// root returns the root of the image that the Dockerfile describes.
func root(t *testing.T) []byte {
	t.Helper()
	var text bytes.Buffer
	w := tar.NewWriter(&text)
	for name, path := range map[string]string{
		"usr/bin/berth": berthtest.Binary(t), "usr/bin/berth-keeper": kubetest.Keeper(t), "etc/ssl/certs/ca-certificates.crt": "/etc/ssl/certs/ca-certificates.crt",
	} {
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		require.NoError(t, w.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(content))}))
		_, err = w.Write(content)
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	return text.Bytes()
}

// lines returns the number of the last line of a console that lacks none.
func lines(t *testing.T, console string) (last int) {
	t.Helper()
	for line := range strings.Lines(console) {
		var number int
		if _, err := fmt.Sscanf(line, "line %d\n", &number); err != nil {
			continue
		}
		require.True(t, last == 0 || number == last+1, "line %d follows line %d", number, last)
		last = number
	}
	return last
}

func kubectl(t *testing.T, input string, args ...string) (output string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute) // kubectl and berth wait for ever
	defer cancel()
	command := exec.CommandContext(ctx, "kubectl", args...)
	command.Stdin = strings.NewReader(input)
	out, err := command.CombinedOutput()
	require.NoError(t, err, "kubectl %s: %s", strings.Join(args, " "), out)
	return string(out)
}
