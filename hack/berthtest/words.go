package berthtest

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"berth/hack/enginetest"
)

// Container is the state response, as far as tests ask.
type Container struct {
	InternalID         string `json:"internal_id"`
	ContainerID        string `json:"container_id"`
	VolumeID           string `json:"volume_id"`
	Image              string
	InstallState       string `json:"install_state"`
	State, Power       string
	Message            string
	Mount              struct{ Source, Target string }
	Ports              []Binding
	Limits             struct{ Memory, CPU float64 }
	Generation         uint64
	ObservedGeneration uint64     `json:"observed_generation"`
	ResourceVersion    string     `json:"resource_version"`
	ExitCode           *int       `json:"exit_code"`
	OOMKilled          bool       `json:"oom_killed"`
	RestartCount       int        `json:"restart_count"`
	NextRetryAt        *time.Time `json:"next_retry_at"`
	StartedAt          *time.Time `json:"started_at"`
}

// Binding is a port of a container.
type Binding struct {
	IP       string `json:"ip"`
	Port     int    `json:"port"`
	Protocol string `json:"protocol"`
}

// Entry is a port of the pool.
type Entry struct {
	Binding
	InUse     bool `json:"in_use"`
	Container string
}

// Spec is the body of a creation.
type Spec map[string]any

// Volume makes a volume.
func (b *Client) Volume(t testing.TB) (id string) {
	t.Helper()
	var v struct {
		VolumeID string `json:"volume_id"`
	}
	b.Post(t, "/volumes", nil).Decode(t, &v)
	return v.VolumeID
}

// Port puts a free port of 127.0.0.1 into the pool.
func (b *Client) Port(t testing.TB) Binding {
	t.Helper()
	p := Binding{"127.0.0.1", FreePort(t), "tcp"}
	b.Post(t, "/network/ports", p)
	return p
}

// Create makes a container of busybox with a volume of its own, unless spec
// says otherwise. Its command is given to a shell.
func (b *Client) Create(t testing.TB, id string, spec Spec) {
	t.Helper()
	b.Post(t, "/containers", b.Body(t, id, spec))
}

// Body is what Create sends.
func (b *Client) Body(t testing.TB, id string, spec Spec) Spec {
	t.Helper()
	body := Spec{"internal_id": id, "startup_command": "sleep 100000"}
	for k, v := range spec {
		body[k] = v
	}
	if body["volume_id"] == nil {
		body["volume_id"] = b.Volume(t)
	}
	if body["image"] == nil {
		body["image"] = enginetest.Busybox(t)
	}
	return body
}

// Made is Create, and waits until the container is ready and stands made.
func (b *Client) Made(t testing.TB, id string, spec Spec) {
	t.Helper()
	b.Create(t, id, spec)
	if c := b.State(t, id, "ready"); c.ContainerID == "" {
		t.Fatalf("container %s is ready and not made", id)
	}
}

// Container is the state of a container.
func (b *Client) Container(t testing.TB, id string) (c Container) {
	t.Helper()
	b.Get(t, "/containers/"+id, &c)
	return c
}

// Await waits until GET shows what is wanted.
func (b *Client) Await(t testing.TB, id, what string, done func(Container) bool) (c Container) {
	t.Helper()
	if !Within(90*time.Second, func() bool { c = b.Container(t, id); return done(c) }) {
		text, _ := json.Marshal(c)
		t.Fatalf("container %s: waited in vain: %s; it is %s", id, what, text)
	}
	return c
}

// State waits until a container is in a state.
func (b *Client) State(t testing.TB, id, state string) Container {
	t.Helper()
	return b.Await(t, id, state, func(c Container) bool { return c.State == state })
}

// Verb posts an action without a body: start, stop, kill, restart.
func (b *Client) Verb(t testing.TB, id, verb string) {
	t.Helper()
	b.Post(t, "/containers/"+id+"/"+verb, nil)
}

// Started creates a container and waits until it runs.
func (b *Client) Started(t testing.TB, id string, spec Spec) Container {
	t.Helper()
	body := Spec{"power": "running"}
	for k, v := range spec {
		body[k] = v
	}
	b.Create(t, id, body)
	return b.State(t, id, "running")
}

// Delete deletes a container and waits until it is gone.
func (b *Client) Delete(t testing.TB, id string) {
	t.Helper()
	b.Must(t, "DELETE", "/containers/"+id, nil)
	b.Gone(t, id)
}

// Gone waits until a container is unknown.
func (b *Client) Gone(t testing.TB, id string) {
	t.Helper()
	Until(t, 60*time.Second, "container "+id+" is gone", func() bool {
		return b.Do(t, "GET", "/containers/"+id, nil).Status == 404
	})
}

// Pool is the port pool, by "ip:port/protocol".
func (b *Client) Pool(t testing.TB) map[string]Entry {
	t.Helper()
	var body struct{ Ports []Entry }
	b.Get(t, "/network/ports", &body)
	pool := map[string]Entry{}
	for _, p := range body.Ports {
		pool[p.String()] = p
	}
	return pool
}

// String is "ip:port/protocol".
func (p Binding) String() string { return fmt.Sprintf("%s:%d/%s", p.IP, p.Port, p.Protocol) }

// Count is how many lines a file in a container's volume has. What runs there
// counts itself with it.
func (c Container) Count(name string) int {
	text, _ := os.ReadFile(filepath.Join(c.Mount.Source, name))
	return strings.Count(string(text), "\n")
}

// With returns s and more; the fields of more replace those of s.
func (s Spec) With(more Spec) Spec {
	all := maps.Clone(s)
	maps.Copy(all, more)
	return all
}
