package berthtest

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"berth/api/client"
	v1 "berth/api/v1"
	"berth/hack/test/enginetest"
	"berth/hack/test/kubetest"
)

// Container is a container as berth reports it.
type Container struct{ v1.ContainerView }

// Spec is the body of a request that creates a container.
type Spec map[string]any

// Volume creates a volume.
func (b *Client) Volume(t testing.TB) (id string) {
	t.Helper()
	v, err := b.API.Volumes().Create(b.background(), v1.VolumeSpec{})
	check(t, err)
	return v.VolumeID
}

// Port adds a free port of 127.0.0.1, or of the cluster's first node, to the pool.
func (b *Client) Port(t testing.TB) v1.PortRef {
	t.Helper()
	ip := "127.0.0.1"
	if kubetest.Running() {
		ip = kubetest.Node
	}
	p := v1.PortRef{IP: ip, Port: FreePort(t), Protocol: "tcp"}
	check(t, b.API.Ports().Add(b.background(), p))
	return p
}

// Create creates a container of busybox with a volume of its own, unless spec has
// other values. Its command is given to a shell.
func (b *Client) Create(t testing.TB, id string, spec Spec) {
	t.Helper()
	b.Post(t, "/containers", b.Body(t, id, spec))
}

// Body returns the body that Create sends.
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
		body["image"] = Busybox(t)
	}
	return body
}

// Busybox returns the reference of an image with busybox that the engine can have.
func Busybox(t testing.TB) string {
	t.Helper()
	if kubetest.Running() {
		return kubetest.Image(t)
	}
	return enginetest.Busybox(t)
}

// Made calls Create and waits until the container is ready and the engine has it.
func (b *Client) Made(t testing.TB, id string, spec Spec) {
	t.Helper()
	b.Create(t, id, spec)
	if c := b.State(t, id, "ready"); c.ContainerID == "" {
		t.Fatalf("container %s is ready, and the engine does not have it", id)
	}
}

// Container returns a container.
func (b *Client) Container(t testing.TB, id string) Container {
	t.Helper()
	c, err := b.API.Containers().Get(b.background(), id)
	check(t, err)
	return Container{c}
}

// Await waits until a container fulfils a condition.
func (b *Client) Await(t testing.TB, id, what string, done func(Container) bool) (c Container) {
	t.Helper()
	if !Within(3*time.Minute, func() bool { c = b.Container(t, id); return done(c) }) {
		text, _ := json.Marshal(c)
		t.Fatalf("container %s: timed out: %s; it is %s", id, what, text)
	}
	return c
}

// State waits until a container is in a state.
func (b *Client) State(t testing.TB, id, state string) Container {
	t.Helper()
	return b.Await(t, id, state, func(c Container) bool { return string(c.State) == state })
}

// Verb requests an action: start, stop, kill or restart.
func (b *Client) Verb(t testing.TB, id, verb string) {
	t.Helper()
	_, err := b.API.Containers().Do(b.background(), id, client.Action(verb))
	check(t, err)
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
	_, err := b.API.Containers().Delete(b.background(), id, client.DeleteOptions{})
	check(t, err)
	b.Gone(t, id)
}

// Gone waits until a container is unknown.
func (b *Client) Gone(t testing.TB, id string) {
	t.Helper()
	Until(t, 3*time.Minute, "container "+id+" is gone", func() bool {
		return b.Do(t, "GET", "/containers/"+id, nil).Status == 404
	})
}

// Entry is a port of the pool without its firewall rule.
type Entry struct {
	v1.PortRef
	InUse     bool
	Container string
}

// Pool returns the port pool by "ip:port/protocol".
func (b *Client) Pool(t testing.TB) map[string]Entry {
	t.Helper()
	list, err := b.API.Ports().List(b.background())
	check(t, err)
	pool := map[string]Entry{}
	for _, p := range list {
		pool[p.String()] = Entry{p.PortRef, p.InUse, string(p.Container)}
	}
	return pool
}

// Bindings returns the published ports of a container.
func (c Container) Bindings() []v1.PortRef {
	list := make([]v1.PortRef, len(c.Ports))
	for i, p := range c.Ports {
		list[i] = v1.PortRef{IP: p.IP, Port: p.Port, Protocol: p.Protocol}
	}
	return list
}

// check fails the test if a call returned an error.
func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("berth: %v", err)
	}
}

// Count returns the number of lines of a file in a container's volume. The
// container's command appends a line at each start.
func (c Container) Count(name string) int {
	text, _ := os.ReadFile(filepath.Join(c.Mount.Source, name))
	return strings.Count(string(text), "\n")
}

// With returns a copy of s in which the fields of more replace those of s.
func (s Spec) With(more Spec) Spec {
	all := maps.Clone(s)
	maps.Copy(all, more)
	return all
}
