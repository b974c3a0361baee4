package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/hack/test/berthtest"
	"berth/hack/test/enginetest"
)

// Scripts that containers of tests run.
const (
	// polite counts its runs and stops, and exits on SIGTERM.
	polite = `echo >> runs; trap 'echo >> stops; exit 0' TERM; echo up; while :; do usleep 20000; done`
	// deaf ignores SIGTERM.
	deaf = `trap '' TERM; echo up; while :; do usleep 20000; done`
	// patient exits when the file go exists.
	patient = `while [ ! -e go ]; do usleep 20000; done`
	// crashes fails when the file go exists.
	crashes = patient + `; exit 3`
	// gated prints "up" when the file go exists.
	gated = `echo >> begun; while [ ! -e go ]; do usleep 20000; done; echo up; sleep 100000`
)

// transition is a sequence of actions and the states that follow.
type transition struct {
	name string
	spec berthtest.Spec
	from string   // state to act in; empty: before the creation
	act  []string // actions; see stage.act
	want string   // states that are reported afterwards
}

var transitions = []transition{
	{"created", nil, "", nil, "installing ready"},
	{"created to run", berthtest.Spec{"power": "running"}, "", nil, "installing ready starting running"},
	{"installed", berthtest.Spec{"install_script": "echo hello > there"}, "", nil, "installing ready"},
	{"badly installed", berthtest.Spec{"install_script": "exit 3", "power": "running"}, "", nil, "installing failed"},
	{"installation too slow", berthtest.Spec{"install_script": "sleep 100", "install_timeout": "1s"}, "", nil, "installing failed"},
	{"bad install image", berthtest.Spec{"install_script": "true", "install_image": "127.0.0.1:1/no:1"}, "installing", []string{"delete"}, "deleting"},
	{"started while installing", berthtest.Spec{"install_script": patient}, "installing", []string{"start", "go"}, "ready starting running"},
	{"killed while installing", berthtest.Spec{"install_script": patient, "power": "running"}, "installing", []string{"kill", "go"}, "ready"},
	{"started", nil, "ready", []string{"start"}, "starting running"},
	{"started twice", nil, "ready", []string{"start", "start"}, "starting running"},
	{"killed before its first run", nil, "ready", []string{"kill"}, ""},
	{"restarted before its first run", nil, "ready", []string{"restart"}, "starting running"},
	{"rebound before its first run", nil, "ready", []string{"rebind", "start"}, "starting running"},
	{"up when its pattern matches", berthtest.Spec{"startup_command": gated, "start_pattern": "^u[p]$"}, "ready", []string{"start", "starting", "go"}, "starting running"},
	{"colours do not matter", berthtest.Spec{"startup_command": `printf '\033[1;32mDo\033[0mne\033[K (1.5s)!\r\n'; sleep 1000`, "start_pattern": `^Done \(`}, "ready", []string{"start"}, "starting running"},
	{"killed while starting", berthtest.Spec{"startup_command": gated, "start_pattern": "up", "power": "running"}, "starting", []string{"kill"}, "exit"},
	{"stopped while starting", berthtest.Spec{"startup_command": gated, "start_pattern": "up", "power": "running"}, "starting", []string{"begun", "stop"}, "stopping exit"},
	{"stopped", berthtest.Spec{"startup_command": polite, "start_pattern": "up", "power": "running"}, "running", []string{"stop", "stop"}, "stopping exit"},
	{"stopped by a command", berthtest.Spec{"startup_command": "echo up; read line; [ \"$line\" = end ]", "start_pattern": "up", "power": "running",
		"stop": map[string]any{"command": "end", "timeout": "20s"}}, "running", []string{"stop"}, "stopping exit"},
	{"killed after its grace", berthtest.Spec{"startup_command": deaf, "start_pattern": "up", "power": "running", "stop": map[string]any{"timeout": "500ms"}}, "running", []string{"stop"}, "stopping exit"},
	{"killed while stopping", berthtest.Spec{"startup_command": deaf, "start_pattern": "up", "power": "running"}, "running", []string{"stop", "stopping", "kill"}, "stopping exit"},
	{"killed", berthtest.Spec{"power": "running"}, "running", []string{"kill"}, "exit"},
	{"killed and started", berthtest.Spec{"power": "running"}, "running", []string{"kill", "start"}, "exit starting running"},
	{"restarted", berthtest.Spec{"startup_command": polite, "start_pattern": "up", "power": "running"}, "running", []string{"restart"}, "stopping exit starting running"},
	{"restarted after its end", berthtest.Spec{"startup_command": "true", "start_pattern": "never", "power": "running"}, "exit", []string{"restart"}, "starting exit"},
	{"exited", berthtest.Spec{"startup_command": patient}, "ready", []string{"start", "running", "go"}, "starting running exit"},
	{"crashed, and never restarted", berthtest.Spec{"startup_command": crashes, "restart_policy": map[string]any{"mode": "never"}}, "ready", []string{"start", "running", "go"}, "starting running exit"},
	{"crashed, and killed for good", berthtest.Spec{"startup_command": crashes}, "ready", []string{"start", "running", "go", "exit", "kill"}, "starting running exit"},
	{"rebound", berthtest.Spec{"startup_command": polite, "start_pattern": "up", "power": "running"}, "running", []string{"rebind"}, "stopping exit starting running"},
	{"reinstalled", berthtest.Spec{"startup_command": polite, "start_pattern": "up", "power": "running"}, "running", []string{"reinstall"}, "stopping exit installing ready"},
	{"reinstalled after a failure", berthtest.Spec{"install_script": "exit 3"}, "failed", []string{"reinstall"}, "installing ready"},
	{"reinstalled from no image", nil, "ready", []string{"reinstall nothing"}, "installing failed"},
	{"applied", berthtest.Spec{"startup_command": polite, "start_pattern": "up", "power": "running"}, "running", []string{"apply"}, "stopping exit starting running"},
	{"limited live", berthtest.Spec{"power": "running", "limits": map[string]any{"memory": 64 << 20}}, "running", []string{"limit"}, ""},
	{"deleted before its first run", nil, "ready", []string{"delete"}, "deleting"},
	{"deleted while installing", berthtest.Spec{"install_script": patient}, "installing", []string{"delete"}, "deleting"},
	{"deleted while running", berthtest.Spec{"power": "running"}, "running", []string{"delete"}, "deleting"},
}

// act performs one action on a container, or waits for a state.
func (s *stage) act(t *testing.T, id, what string) {
	t.Helper()
	b, path := s.b, "/containers/"+id
	switch what {
	case "start", "stop", "kill", "restart":
		b.Verb(t, id, what)
	case "starting", "running", "stopping", "exit":
		b.State(t, id, what)
	case "begun": // an engine that needs long for a start takes it back, and nothing stops
		b.Await(t, id, what, func(c berthtest.Container) bool {
			return c.Count("begun") == 1 && v1.FindCondition(c.Conditions, v1.Started).Reason == "Starting"
		})
	case "go":
		require.NoError(t, os.WriteFile(filepath.Join(b.Container(t, id).Mount.Source, "go"), nil, 0o644))
	case "rebind":
		b.Post(t, path+"/rebind-network", map[string]any{"ports": []any{b.Port(t)}})
	case "reinstall":
		b.Post(t, path+"/reinstall", map[string]any{"install_script": "echo again"})
	case "reinstall nothing":
		b.Post(t, path+"/reinstall", map[string]any{"image": s.nothing})
	case "apply":
		c := b.Container(t, id)
		b.Must(t, "PUT", path, berthtest.Spec{"image": c.Image, "volume_id": c.VolumeID, "power": "running", "startup_command": polite,
			"start_pattern": "up", "env": map[string]string{"A": "b"}})
	case "limit":
		s.limit(t, id)
	case "delete":
		b.Delete(t, id)
		require.Empty(t, b.Containers(t, id), "nothing is left on the engine")
	default:
		t.Fatal("no such act: ", what)
	}
}

// limit changes limits of a running container, which keeps its process.
func (s *stage) limit(t *testing.T, id string) {
	t.Helper()
	c := s.b.Container(t, id)
	before, _ := s.b.Engine.Inspect(t, c.ContainerID)
	s.b.Must(t, "PUT", "/containers/"+id, berthtest.Spec{"image": c.Image, "volume_id": c.VolumeID, "power": "running",
		"startup_command": "sleep 100000", "limits": map[string]any{"memory": 96 << 20}})
	berthtest.Until(t, wait, "the limit is in force", func() bool {
		now, _ := s.b.Engine.Inspect(t, c.ContainerID)
		return now.HostConfig.Memory == 96<<20 && now.State.Pid == before.State.Pid
	})
}

// stage is the daemon on which all transitions are tested.
type stage struct {
	b       *berthtest.Berth
	events  *berthtest.Socket
	nothing string // an image that its registry does not have
}

func TestStates(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	t.Run("each", func(t *testing.T) {
		for i, c := range transitions {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				s.try(t, fmt.Sprintf("c%02d", i), c)
			})
		}
	})
	checkNumbers(t, s.b, s.events)
}

// try brings a container into a state, acts, and compares the reported states.
func (s *stage) try(t *testing.T, id string, c transition) {
	t.Helper()
	s.b.Create(t, id, c.spec)
	before := 0
	if c.from != "" {
		s.b.Await(t, id, c.from, func(now berthtest.Container) bool {
			return string(now.State) == c.from && (c.from != "ready" || now.ContainerID != "")
		})
		s.events.Event(t, 0, id, c.from)
		before = len(s.events.States(id))
	}
	for _, what := range c.act {
		s.act(t, id, what)
	}
	want := strings.Fields(c.want)
	s.events.Await(t, id+" reports "+c.want, func([]berthtest.Message) bool { return len(s.events.States(id)) >= before+len(want) })
	last := c.from
	if len(want) > 0 {
		last = want[len(want)-1]
	}
	if last != "deleting" {
		s.settled(t, id, last)
	}
	require.Equal(t, want, append([]string{}, s.events.States(id)[before:]...))
}

// settled waits until a container is in a state and its generation is observed.
func (s *stage) settled(t *testing.T, id, state string) {
	t.Helper()
	s.b.Await(t, id, state+" for good", func(c berthtest.Container) bool {
		return string(c.State) == state && c.ObservedGeneration == c.Generation
	})
}

func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{b: berthtest.Start(t, berthtest.Options{}), nothing: enginetest.StartRegistry(t).Addr + "/nothing:1"}
	s.events = s.b.Listen(t, "/ws")
	return s
}
