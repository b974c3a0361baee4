package kubetest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	core1 "k8s.io/api/core/v1"

	"berth/hack/test/enginetest"
)

// PowerOff ends all processes of a node and its link at once.
func PowerOff(t testing.TB, node string) { t.Helper(); kube(t, "power", "off", node) }

// PowerOn boots a node.
func PowerOn(t testing.TB, node string) { t.Helper(); kube(t, "power", "on", node) }

// CutLink cuts the link of a node. Its processes run on.
func CutLink(t testing.TB, node string) { t.Helper(); kube(t, "link", "down", node) }

// HealLink heals the link of a node.
func HealLink(t testing.TB, node string) { t.Helper(); kube(t, "link", "up", node) }

// kube has hack/kube do something to a node.
func kube(t testing.TB, what, how, node string) {
	t.Helper()
	out, err := exec.Command(filepath.Join(module(t), "hack/kube/kube.sh"), what, how, strings.TrimPrefix(node, "n")).CombinedOutput()
	if err != nil {
		t.Fatalf("kube.sh %s %s: %v\n%s", what, how, err, out)
	}
}

// Fence adds the taint of a node that is off, or removes it.
func (n *Namespace) Fence(t testing.TB, node string, off bool) {
	t.Helper()
	enginetest.Until(t, 3*time.Minute, "the taint of a node", func() bool {
		object := n.node(t, node)
		object.Spec.Taints = slices.DeleteFunc(object.Spec.Taints, func(t core1.Taint) bool { return t.Key == core1.TaintNodeOutOfService })
		if off {
			object.Spec.Taints = append(object.Spec.Taints,
				core1.Taint{Key: core1.TaintNodeOutOfService, Value: "off", Effect: core1.TaintEffectNoExecute})
		}
		body, err := json.Marshal(object)
		require(t, err)
		status, _ := n.Call(t, http.MethodPut, "/api/v1/nodes/"+node, body) // a conflict with the kubelet's own change
		return status == http.StatusOK
	})
}

// RemoveNode deletes the object of a node.
func (n *Namespace) RemoveNode(t testing.TB, node string) {
	t.Helper()
	if status, answer := n.Call(t, http.MethodDelete, "/api/v1/nodes/"+node, nil); status != http.StatusOK {
		t.Fatalf("cluster: DELETE node %s: %d %s", node, status, answer)
	}
}

// AwaitNode waits until a node is ready for pods.
func (n *Namespace) AwaitNode(t testing.TB, node string) {
	t.Helper()
	enginetest.Until(t, 2*time.Minute, "node "+node, func() bool {
		object := n.node(t, node)
		return object != nil && slices.ContainsFunc(object.Status.Conditions, func(c core1.NodeCondition) bool {
			return c.Type == core1.NodeReady && c.Status == core1.ConditionTrue
		}) && !slices.ContainsFunc(object.Spec.Taints, func(t core1.Taint) bool { return t.Effect == core1.TaintEffectNoSchedule })
	})
}

// node returns a node, or nil.
func (n *Namespace) node(t testing.TB, name string) *core1.Node {
	t.Helper()
	status, answer := n.Call(t, http.MethodGet, "/api/v1/nodes/"+name, nil)
	if status != http.StatusOK {
		return nil
	}
	node := &core1.Node{}
	require(t, json.Unmarshal(answer, node))
	return node
}

// Writers is what a test receives from containers that run Writer.
type Writers struct {
	Addr string // to which they report

	mu      sync.Mutex     // guards reports
	reports map[string]int // the last stamp that was reported, by the run
}

// Writer returns a program with the arguments FILE and Addr. It appends a stamp to the file each
// 10 ms, and reports each one that the disk has.
func Writer(t testing.TB) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "writer")
	build := exec.Command("go", "build", "-trimpath", "-o", path, "berth/hack/test/kubetest/testdata/writer")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	program, err := os.ReadFile(path)
	require(t, err)
	return program
}

// ListenToWriters records what writers report until the test ends.
func ListenToWriters(t testing.TB) *Writers {
	t.Helper()
	from, err := net.ListenPacket("udp", Host()+":0")
	require(t, err)
	t.Cleanup(func() { _ = from.Close() })
	w := &Writers{Addr: from.LocalAddr().String(), reports: map[string]int{}}
	go func() {
		stamp := make([]byte, 100)
		for {
			size, _, err := from.ReadFrom(stamp)
			if err != nil {
				return
			}
			run, number, _ := strings.Cut(string(stamp[:size]), " ")
			last, _ := strconv.Atoi(number)
			w.mu.Lock()
			w.reports[run] = max(w.reports[run], last)
			w.mu.Unlock()
		}
	}()
	return w
}

// Check requires that each stamp that was reported is in one of the files, and that each file
// has some that were reported.
func (w *Writers) Check(t testing.TB, files ...string) {
	t.Helper()
	w.mu.Lock()
	reported := maps.Clone(w.reports)
	w.mu.Unlock()
	for _, file := range files {
		runs, last := Runs(t, file)
		known := 0
		for _, run := range runs {
			if last[run] < reported[run] {
				t.Fatalf("%s: run %s reported the stamp %d; the last one is %d", file, run, reported[run], last[run])
			}
			if reported[run] > 0 {
				known++
			}
			delete(reported, run)
		}
		if known == 0 {
			t.Fatalf("%s: no run has reported", file)
		}
	}
	if len(reported) > 0 {
		t.Fatalf("whole runs are lost: %v", reported)
	}
}

// Runs returns the runs that wrote to a file, in order, with their last stamps. It requires that
// no run wrote after the next one began, and that none left a stamp out.
func Runs(t testing.TB, file string) (runs []string, last map[string]int) {
	t.Helper()
	text, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	require(t, err)
	last = map[string]int{}
	text = text[:bytes.LastIndexByte(text, '\n')+1] // one is being written
	for line := range strings.Lines(string(text)) {
		run, number, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		stamp, err := strconv.Atoi(number)
		require(t, err)
		if len(runs) == 0 || runs[len(runs)-1] != run {
			if last[run] > 0 {
				t.Fatalf("%s: two writers: %s wrote on", file, run)
			}
			runs = append(runs, run)
		}
		if stamp != last[run]+1 {
			t.Fatalf("%s: run %s has the stamp %d after %d", file, run, stamp, last[run])
		}
		last[run] = stamp
	}
	return runs, last
}

// LastRun returns the run that wrote to a file last; empty: none.
func LastRun(t testing.TB, file string) string {
	t.Helper()
	f, err := os.Open(file)
	if errors.Is(err, os.ErrNotExist) {
		return ""
	}
	require(t, err)
	defer f.Close()
	info, err := f.Stat()
	require(t, err)
	end := make([]byte, 200) // a few lines
	size, err := f.ReadAt(end, max(0, info.Size()-int64(len(end))))
	if err != nil && !errors.Is(err, io.EOF) {
		require(t, err)
	}
	lines := strings.Split(string(end[:size]), "\n")
	if len(lines) < 2 {
		return ""
	}
	run, _, _ := strings.Cut(lines[len(lines)-2], " ")
	return run
}

// AwaitAnotherRun waits until another run than before writes to a file.
func AwaitAnotherRun(t testing.TB, file, before string) {
	t.Helper()
	enginetest.Until(t, 2*time.Minute, "another run writes to "+file, func() bool { return LastRun(t, file) != before })
}
