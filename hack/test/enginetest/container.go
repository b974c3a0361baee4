package enginetest

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"testing"
	"time"
)

// Container holds the fields of the engine's inspect that tests use.
type Container struct {
	ID    string `json:"Id"`
	Name  string // with a leading slash
	State struct {
		Status    string
		Running   bool
		Paused    bool
		OOMKilled bool
		Pid       int
		ExitCode  int
		Error     string
		StartedAt time.Time
	}
	Config struct {
		Image  string
		Labels map[string]string
		Env    []string
		Tty    bool
	}
	HostConfig struct {
		Privileged  bool
		NetworkMode string
		Memory      int64
		MemorySwap  int64
		NanoCpus    int64
		PidsLimit   int64
	}
	Mounts []struct {
		Type, Name, Source, Destination string
		RW                              bool
	}
	NetworkSettings struct {
		Ports map[string][]struct{ HostIp, HostPort string }
	}
	Raw map[string]any `json:"-"` // everything
}

// Listed is one container in a list.
type Listed struct {
	ID     string `json:"Id"`
	Names  []string
	State  string // created, running, paused, exited…
	Labels map[string]string
	Run    string `json:"-"` // of a cluster: identifies the process; empty: none runs
}

// Inspect returns a container by its id or the engine's name; found is false if it does not exist.
func (c *Client) Inspect(t testing.TB, name string) (one Container, found bool) {
	t.Helper()
	status, answer := c.Do(t, http.MethodGet, "/containers/"+name+"/json", nil)
	if status == http.StatusNotFound {
		return one, false
	}
	if status != http.StatusOK {
		t.Fatalf("engine: inspect %s: %d %s", name, status, answer)
	}
	decode(t, answer, &one)
	decode(t, answer, &one.Raw)
	return one, true
}

// ByLabel returns the containers, running or not, that carry all labels ("key=value").
func (c *Client) ByLabel(t testing.TB, labels ...string) (all []Listed) {
	t.Helper()
	filters, err := json.Marshal(map[string][]string{"label": labels})
	if err != nil {
		t.Fatal(err)
	}
	decode(t, c.Must(t, http.MethodGet, "/containers/json?all=1&filters="+url.QueryEscape(string(filters)), nil), &all)
	return all
}

// CreateRaw creates a container from a body of the engine's API, which must
// contain Image. The name may be empty. The container is removed by force at the
// end of the test.
func (c *Client) CreateRaw(t testing.TB, name string, body map[string]any) (id string) {
	t.Helper()
	var made struct{ ID string }
	decode(t, c.Must(t, http.MethodPost, "/containers/create?name="+url.QueryEscape(name), body), &made)
	t.Cleanup(func() { c.ifAlive(func() { c.Remove(t, made.ID) }) })
	return made.ID
}

// Act posts an action to a container: start, stop, pause, unpause, restart, or
// one with parameters, such as "kill?signal=KILL" or "rename?name=other". It
// returns the HTTP status.
func (c *Client) Act(t testing.TB, name, action string) (status int) {
	t.Helper()
	status, _ = c.Do(t, http.MethodPost, "/containers/"+name+"/"+action, nil)
	return status
}

// Kill sends SIGKILL to a container. A container that does not run is no error.
func (c *Client) Kill(t testing.TB, name string) {
	t.Helper()
	if status := c.Act(t, name, "kill?signal=KILL"); status >= 500 {
		t.Fatalf("engine: kill %s: %d", name, status)
	}
}

// Remove removes a container by force. A missing container is no error.
func (c *Client) Remove(t testing.TB, name string) {
	t.Helper()
	status, answer := c.Do(t, http.MethodDelete, "/containers/"+name+"?force=1&v=1", nil)
	if status >= 500 {
		t.Errorf("engine: remove %s: %d %s", name, status, answer)
	}
}

// CleanStore removes the containers of one store now and at the end of the test.
func (c *Client) CleanStore(t testing.TB, storeID string) {
	t.Helper()
	clean := func() {
		for _, one := range c.ByLabel(t, "io.berth.store="+storeID) {
			c.Remove(t, one.ID)
		}
	}
	clean()
	t.Cleanup(func() { c.ifAlive(clean) })
}

// ifAlive calls clean unless the test has ended the engine.
func (c *Client) ifAlive(clean func()) {
	if c.Ping(context.Background()) == nil {
		clean()
	}
}

func decode(t testing.TB, answer []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(answer, into); err != nil {
		t.Fatalf("the engine's answer is not valid JSON: %v: %.200s", err, answer)
	}
}
