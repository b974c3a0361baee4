package e2e_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/hack/test/berthtest"
	"berth/hack/test/enginetest"
)

// requestCase is a request that is in flight while the daemon is killed.
type requestCase struct {
	name    string
	spec    berthtest.Spec
	running bool                                              // the container runs before the request; else it is ready
	do      func(t *testing.T, b *berthtest.Berth, w *victim) // nil: the creation itself is the request
	state   string                                            // at the end; empty: deleted
	files   map[string]int                                    // number of lines in the container's counter files
}

// slowly is an install script that counts itself and takes 0.4 s.
const slowly = `echo >> installs; sleep 0.4; echo done`

var requestCases = []requestCase{
	{"install", berthtest.Spec{"install_script": slowly}, false, nil, "ready", map[string]int{"installs": 1}},
	{"install and run", berthtest.Spec{"install_script": slowly, "power": "running"}, false, nil, "running", map[string]int{"installs": 1, "runs": 1}},
	{"start", nil, false, verb("start"), "running", map[string]int{"runs": 1}},
	{"run on", nil, true, func(*testing.T, *berthtest.Berth, *victim) {}, "running", map[string]int{"runs": 1, "stops": 0}},
	{"stop", nil, true, verb("stop"), "exit", map[string]int{"runs": 1, "stops": 1}},
	{"kill", nil, true, verb("kill"), "exit", map[string]int{"runs": 1, "stops": 0}},
	{"restart", nil, true, verb("restart"), "running", map[string]int{"runs": 2, "stops": 1}},
	{"rebind", nil, true, rebind, "running", map[string]int{"runs": 2, "stops": 1}},
	{"reinstall", berthtest.Spec{"install_script": slowly}, true, reinstall, "ready", map[string]int{"installs": 2, "runs": 1, "stops": 1}},
	{"delete", nil, true, remove, "", nil},
	{"delete while installing", berthtest.Spec{"install_script": "sleep 100"}, false, nil, "", nil},
}

// victim is a container with its request.
type victim struct {
	requestCase
	id, volume string
	port       v1.PortRef // at the end
	old        v1.PortRef // before a rebind
	process    string     // before the request
}

func verb(v string) func(*testing.T, *berthtest.Berth, *victim) {
	return func(t *testing.T, b *berthtest.Berth, w *victim) { t.Helper(); b.Verb(t, w.id, v) }
}

func rebind(t *testing.T, b *berthtest.Berth, w *victim) {
	t.Helper()
	w.old, w.port = w.port, b.Port(t)
	b.Post(t, "/containers/"+w.id+"/rebind-network", map[string]any{"ports": []any{w.port}})
}

func reinstall(t *testing.T, b *berthtest.Berth, w *victim) {
	t.Helper()
	b.Post(t, "/containers/"+w.id+"/reinstall", map[string]any{})
}

func remove(t *testing.T, b *berthtest.Berth, w *victim) {
	t.Helper()
	b.Must(t, "DELETE", "/containers/"+w.id, nil)
}

// TestKillDuringRequests sends all requests at once, kills the daemon a moment
// later, and again during its start. Then every request was executed exactly once, and
// the containers without a request run on. The long form kills it about 100 times.
func TestKillDuringRequests(t *testing.T) {
	t.Parallel()
	b, random := berthtest.Start(t, berthtest.Options{}), dice(t)
	calm := rounds(2, many)
	for i := range calm {
		b.Create(t, fmt.Sprint("calm", i), berthtest.Spec{"power": "running"})
	}
	berthtest.Until(t, 2*wait, "all run", func() bool { return countRunning(t, b) == calm })
	undisturbed, kills := b.Processes(t), 0
	require.Len(t, undisturbed, calm)
	for round := range rounds(3, 50) {
		list := victims(t, b, round)
		for _, w := range list {
			w.begin(t, b)
		}
		for kill := range 1 + random.IntN(3) {
			after := moment(random)
			pause(after)
			t.Logf("round %d, kill %d after %s", round, kill, after)
			b.Kill9(t)
			kills++
			b.Run(t)
			b.Answers(t, "/healthz")
		}
		b.Ready(t)
		for _, w := range list {
			w.check(t, b)
		}
		for _, w := range list {
			w.clean(t, b)
		}
		require.Equal(t, undisturbed, b.Processes(t))
		onlyOrphans(t, b, slices.DeleteFunc(b.Containers(t, ""), func(c enginetest.Listed) bool { return undisturbed[c.Labels["io.berth.container"]] != "" }))
	}
	t.Logf("%d kills under %d containers", kills, calm)
}

// moment returns a random delay while requests are in flight; half are short.
func moment(random *rand.Rand) time.Duration {
	if random.IntN(2) == 0 {
		return time.Duration(random.IntN(60)) * time.Millisecond
	}
	return time.Duration(random.IntN(1500)) * time.Millisecond
}

// victims creates a container for each request, in the state that it starts from.
func victims(t *testing.T, b *berthtest.Berth, round int) (list []*victim) {
	t.Helper()
	for i, w := range requestCases {
		v := &victim{requestCase: w, id: fmt.Sprintf("r%d-%d", round, i), volume: b.Volume(t), port: b.Port(t)}
		list = append(list, v)
		if w.do == nil {
			continue
		}
		body := v.body()
		if w.running {
			body["power"] = "running"
		}
		b.Create(t, v.id, body)
	}
	for _, v := range list {
		if v.do == nil {
			continue
		}
		b.Await(t, v.id, "its request can be sent", func(c berthtest.Container) bool {
			return c.ContainerID != "" && (c.State == "running" || !v.running && c.State == "ready")
		})
	}
	runs := b.Processes(t)
	for _, v := range list {
		v.process = runs[v.id]
	}
	return list
}

func (w *victim) body() berthtest.Spec {
	body := berthtest.Spec{"volume_id": w.volume, "ports": []any{w.port}, "startup_command": polite, "start_pattern": "up"}
	for k, v := range w.spec {
		body[k] = v
	}
	return body
}

func (w *victim) begin(t *testing.T, b *berthtest.Berth) {
	t.Helper()
	if w.do != nil {
		w.do(t, b, w)
		return
	}
	b.Create(t, w.id, w.body())
	if w.state == "" {
		remove(t, b, w)
	}
}

func (w *victim) check(t *testing.T, b *berthtest.Berth) {
	t.Helper()
	if w.state == "" {
		b.Gone(t, w.id)
		onlyOrphans(t, b, b.Containers(t, w.id))
		require.NoDirExists(t, filepath.Join(b.Data, "console", w.id), w.name)
		require.Equal(t, berthtest.Entry{PortRef: w.port}, b.Pool(t)[w.port.String()], w.name)
		return
	}
	c := b.Await(t, w.id, w.name+" is complete", func(c berthtest.Container) bool {
		return string(c.State) == w.state && c.ObservedGeneration == c.Generation && onlyServer(t, b, w.id)
	})
	for file, times := range w.files {
		require.Equal(t, times, c.Count(file), "%s: %s of %s", w.name, file, w.id)
	}
	require.Equal(t, []v1.PortRef{w.port}, c.Bindings(), w.name)
	require.Equal(t, berthtest.Entry{PortRef: w.port, InUse: true, Container: w.id}, b.Pool(t)[w.port.String()], w.name)
	if w.old.Port != 0 {
		require.Equal(t, berthtest.Entry{PortRef: w.old}, b.Pool(t)[w.old.String()], w.name)
	}
	if w.name == "run on" {
		require.NotEmpty(t, w.process)
		require.Equal(t, w.process, b.Processes(t)[w.id], "the same process")
	}
}

// onlyServer reports whether the engine has exactly one container of id, the
// server. It fails the test if the engine has two of a role.
func onlyServer(t *testing.T, b *berthtest.Berth, id string) bool {
	t.Helper()
	roles := map[string]int{}
	for _, c := range b.Containers(t, id) {
		role := c.Labels["io.berth.role"]
		roles[role]++
		require.Equal(t, 1, roles[role], "%s containers of %s", role, id)
	}
	return len(roles) == 1 && roles["server"] == 1
}

// clean deletes the container, its volume and its port.
func (w *victim) clean(t *testing.T, b *berthtest.Berth) {
	t.Helper()
	if w.state != "" {
		b.Must(t, "DELETE", "/containers/"+w.id+"?volume=true", nil)
		b.Gone(t, w.id)
		berthtest.Until(t, wait, "its volume is gone", func() bool {
			_, err := os.Stat(filepath.Join(b.Data, "volumes", w.volume))
			return os.IsNotExist(err)
		})
	}
	b.Must(t, "DELETE", fmt.Sprintf("/network/ports/%s/%d", w.port.IP, w.port.Port), nil)
}
