//go:build cluster

package e2e_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"berth/hack/test/berthtest"
	"berth/hack/test/kubetest"
)

// TestStorm does at random moments to servers that write all the time what administrators, schedulers and autoscalers of
// a cluster do every week. There are never two writers, no stamp is lost, and each server runs in the end without a
// hand, although its policy is never. It is alone on the cluster, which has two nodes: it is not parallel.
func TestStorm(t *testing.T) {
	b := berthtest.Start(t, berthtest.Options{Env: []string{"BERTH_RECONCILE_BACKOFF_MAX=2s", "BERTH_KUBERNETES_REQUESTS_PERCENT=50"}})
	s := &storm{Berth: b, reports: kubetest.ListenToWriters(t), dice: dice(t)}
	program := kubetest.Writer(t)
	for i := range rounds(4, 10) {
		id := fmt.Sprint("s", i)
		b.Made(t, id, berthtest.Spec{"startup_command": "exec ./writer stamps " + s.reports.Addr, "restart_policy": map[string]any{"mode": "never"},
			"limits": map[string]any{"cpu": 0.4}, "stop": map[string]any{"timeout": "5s"}})
		home := b.Container(t, id).Mount.Source
		require.NoError(t, os.WriteFile(filepath.Join(home, "writer"), program, 0o755))
		s.ids, s.files = append(s.ids, id), append(s.files, filepath.Join(home, "stamps"))
		b.Verb(t, id, "start")
	}
	s.post(t, "/apis/scheduling.k8s.io/v1/priorityclasses",
		`{"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "`+b.Cluster.Name+`"}, "value": 1000}`)
	s.calm(t)
	s.selector = "berth.io/store=" + s.Cluster.Pods(t, "")[0].Labels["berth.io/store"]
	acts := []struct {
		name string
		do   func(*testing.T)
	}{{"delete --force", s.deleteByForce}, {"delete", s.delete}, {"evict", s.evict}, {"cordon", s.cordon}, {"drain", s.drain}, {"quota", s.quota},
		{"preempt", s.preempt}, {"restart", s.restart}}
	order, done := []int{}, map[string]int{}
	for round := range rounds(len(acts), 200) {
		if len(order) == 0 { // each once, in any order
			order = s.dice.Perm(len(acts))
		}
		act := acts[order[0]]
		order = order[1:]
		act.do(t)
		done[act.name]++
		pause(s.upTo(1500 * time.Millisecond))
		if (round+1)%20 == 0 {
			s.calm(t)
		}
	}
	s.calm(t)
	runs := 0
	for _, file := range s.files {
		list, _ := kubetest.Runs(t, file)
		runs += len(list)
	}
	t.Logf("%d runs of %d servers, after %v: one writer at a time, no stamp lost", runs, len(s.ids), done)
}

// storm is a daemon, and its servers.
type storm struct {
	*berthtest.Berth
	ids, files []string
	reports    *kubetest.Writers
	dice       *rand.Rand
	selector   string // of the pods of its store: a test before may have left others, which nobody stops
}

func (s *storm) upTo(d time.Duration) time.Duration { return time.Duration(s.dice.Int64N(int64(d))) }

// calm waits until each server runs and writes, and checks what all have written.
func (s *storm) calm(t *testing.T) {
	t.Helper()
	for i, id := range s.ids {
		s.State(t, id, "running")
		before := ""
		berthtest.Until(t, wait, id+" writes", func() bool {
			text, _ := os.ReadFile(s.files[i])
			was := before
			before = string(text[max(0, len(text)-200):])
			return was != "" && was != before
		})
	}
	s.reports.Check(t, s.files...)
}

func (s *storm) post(t *testing.T, path, body string) {
	t.Helper()
	if status, answer := s.Cluster.Call(t, http.MethodPost, path, []byte(body)); status >= 300 {
		t.Fatalf("POST %s: %d %s", path, status, answer)
	}
}

// pods returns the path of the pods, and that of a server's.
func (s *storm) pod(t *testing.T) (pods, one, name string) {
	t.Helper()
	pods = "/api/v1/namespaces/" + s.Cluster.Name + "/pods"
	list := s.Cluster.Pods(t, s.ids[s.dice.IntN(len(s.ids))])
	if len(list) == 0 { // it is being replaced
		return pods, pods + "/none", "none"
	}
	return pods, pods + "/" + list[0].Name, list[0].Name
}

func (s *storm) node() string { return fmt.Sprint("n", 1+s.dice.IntN(2)) }

func (s *storm) deleteByForce(t *testing.T) {
	_, pod, _ := s.pod(t)
	s.Cluster.Call(t, http.MethodDelete, pod+"?gracePeriodSeconds=0", nil)
}

func (s *storm) delete(t *testing.T) {
	_, pod, _ := s.pod(t)
	s.Cluster.Call(t, http.MethodDelete, pod, nil)
}

func (s *storm) evict(t *testing.T) {
	_, pod, name := s.pod(t)
	s.Cluster.Call(t, http.MethodPost, pod+"/eviction", fmt.Appendf(nil, `{"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": %q}}`, name))
}

func (s *storm) restart(t *testing.T) {
	id := s.ids[s.dice.IntN(len(s.ids))]
	s.Do(t, "POST", "/containers/"+id+"/restart", nil) // refused while the engine cannot be asked
}

func (s *storm) cordon(t *testing.T) {
	node := s.node()
	kubectl(t, "cordon", node)
	s.deleteByForce(t)
	pause(s.upTo(3 * time.Second))
	kubectl(t, "uncordon", node)
}

func (s *storm) drain(t *testing.T) {
	node := s.node()
	kubectl(t, "drain", node, "--force", "--ignore-daemonsets", "--timeout=60s", "--pod-selector="+s.selector)
	pause(s.upTo(time.Second))
	kubectl(t, "uncordon", node)
}

func (s *storm) quota(t *testing.T) {
	quotas := "/api/v1/namespaces/" + s.Cluster.Name + "/resourcequotas"
	s.post(t, quotas, `{"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {"hard": {"pods": "0"}}}`)
	s.evict(t)
	pause(s.upTo(4 * time.Second))
	s.Cluster.Call(t, http.MethodDelete, quotas+"/q", nil)
}

// preempt has a pod of a higher priority take the room of servers for a while.
func (s *storm) preempt(t *testing.T) {
	pods, _, _ := s.pod(t)
	s.post(t, pods, `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "urgent", "annotations": {"berth.io/record": "{}"}}, "spec": {
		"priorityClassName": "`+s.Cluster.Name+`", "terminationGracePeriodSeconds": 0, "containers": [{"name": "c", "image": "localhost/pause:1",
		"resources": {"requests": {"cpu": "1900m"}}}]}}`)
	pause(2*time.Second + s.upTo(4*time.Second))
	s.Cluster.Call(t, http.MethodDelete, pods+"/urgent?gracePeriodSeconds=0", nil)
	berthtest.Until(t, wait, "the urgent pod is gone", func() bool {
		status, _ := s.Cluster.Call(t, http.MethodGet, pods+"/urgent", nil)
		return status == http.StatusNotFound
	})
}

func kubectl(t *testing.T, args ...string) {
	t.Helper()
	out, err := exec.Command("kubectl", args...).CombinedOutput()
	require.NoError(t, err, "kubectl %v: %s", args, out)
}
