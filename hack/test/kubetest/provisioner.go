package kubetest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	core1 "k8s.io/api/core/v1"
)

// Provision creates a StorageClass, which can expand claims, and does for its claims in the namespace what a class does whose volumes are
// directories of the file system of Claim: it makes a directory named after the claim, and removes it with the claim. It ends with the
// test.
func (n *Namespace) Provision(t testing.TB, class string) {
	t.Helper()
	n.post(t, "/apis/storage.k8s.io/v1/storageclasses", fmt.Appendf(nil,
		`{"metadata": {"name": %q}, "provisioner": "test.berth.io/directories",
		"allowVolumeExpansion": true, "reclaimPolicy": "Retain"}`, class))
	stop, done := make(chan struct{}), make(chan struct{})
	t.Cleanup(func() { close(stop); <-done })
	go func() {
		defer close(done)
		made := map[string]bool{}
		for {
			select {
			case <-stop:
				return
			case <-time.After(100 * time.Millisecond):
				n.provisionOnce(t, class, made)
			}
		}
	}()
}

func (n *Namespace) provisionOnce(t testing.TB, class string, made map[string]bool) {
	gone := map[string]bool{}
	for name := range made {
		gone[name] = true
	}
	for _, c := range n.Claims(t) {
		if c.Spec.StorageClassName == nil || *c.Spec.StorageClassName != class {
			continue
		}
		delete(gone, c.Name)
		if made[c.Name] {
			continue
		}
		dir := filepath.Join(n.Volumes, c.Name)
		err := os.Mkdir(dir, 0o777)
		if err == nil {
			err = os.Chmod(dir, 0o777)
		}
		if err != nil {
			t.Errorf("provisioner: %v", err)
		}
		n.Call(t, http.MethodPost, "/api/v1/persistentvolumes", fmt.Appendf(nil, `{"metadata": {"name": %q}, "spec": {"capacity": {"storage": %q},
			"accessModes": ["ReadWriteMany"], "storageClassName": %q, "persistentVolumeReclaimPolicy": "Retain",
			"claimRef": {"namespace": %q, "name": %q, "uid": %q}, "hostPath": {"path": %q}}}`, n.Name+"-"+c.Name,
			c.Spec.Resources.Requests.Storage(), class, n.Name, c.Name, c.UID, dir))
		made[c.Name] = true
	}
	for name := range gone {
		n.Call(t, http.MethodDelete, "/api/v1/persistentvolumes/"+n.Name+"-"+name, nil)
		if err := os.RemoveAll(filepath.Join(n.Volumes, name)); err != nil {
			t.Errorf("provisioner: %v", err)
		}
		delete(made, name)
	}
}

// Claims returns the claims of the namespace.
func (n *Namespace) Claims(t testing.TB) []core1.PersistentVolumeClaim {
	t.Helper()
	_, answer := n.Call(t, http.MethodGet, "/api/v1/namespaces/"+n.Name+"/persistentvolumeclaims", nil)
	var list core1.PersistentVolumeClaimList
	if err := json.Unmarshal(answer, &list); err != nil {
		t.Errorf("cluster: claims: %v", err)
	}
	return list.Items
}
