package container_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/controller/jobs"
	"berth/store"
)

// configs records the configuration files of each start.
type configs struct {
	before func()

	mu      sync.Mutex
	applied []v1.ConfigFile
	errs    map[string]error // by path
}

func (k *configs) configure(_ context.Context, volume string, files []v1.ConfigFile, env map[string]string) (errs []error) {
	if volume != "v" {
		panic("another volume")
	}
	if k.before != nil {
		k.before()
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, c := range files {
		c, err := c.Expanded(env)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		k.applied = append(k.applied, c)
		errs = append(errs, k.errs[c.Path])
	}
	return errs
}

func TestConfigFilesBeforeEachStart(t *testing.T) {
	live(t, func(w *world) {
		k := &configs{errs: map[string]error{}}
		w.rec.Volumes.Configure = k.configure
		w.installed(func(s *v1.ContainerSpec) {
			s.VolumeID = "v"
			s.Env = map[string]string{"PORT": "25565", "SELF": "${PORT}"}
			s.ConfigFiles = []v1.ConfigFile{
				{Path: "a", Format: "json", Set: map[string]string{"p": "${PORT}", "q": "$${PORT} ${SELF} ${NONE} $PORT ${PORT}${PORT}"}},
				{Path: "b", Format: "ini", Set: map[string]string{"x": "1"}},
			}
		})
		require.Empty(t, k.applied, "only before a start")
		k.before = func() { require.Zero(t, w.count("start", server)) }
		w.change(on)
		c := w.want(v1.Running)
		k.before = nil
		require.Equal(t, []v1.ConfigFile{
			{Path: "a", Format: "json", Set: map[string]string{"p": "25565", "q": "${PORT} ${PORT} ${NONE} $PORT 2556525565"}},
			{Path: "b", Format: "ini", Set: map[string]string{"x": "1"}},
		}, k.applied)
		require.Equal(t, v1.True, v1.FindCondition(c.Status.Conditions, v1.ConfigFilesApplied).Status)
		require.Equal(t, c.Meta.Generation, c.Status.ObservedGeneration)

		k.errs = map[string]error{"a": v1.Errorf(v1.InvalidRequest, "a link is in its place"), "b": errors.New("/var/lib/secret: i/o error")}
		w.change(off)
		w.want(v1.Exit)
		w.change(on)
		c = w.want(v1.Running)
		condition := v1.FindCondition(c.Status.Conditions, v1.ConfigFilesApplied)
		require.Equal(t, v1.False, condition.Status, "the start goes on")
		require.Equal(t, "config files that were not changed: a: a link is in its place; b: could not be read or written: the daemon's log has the error", condition.Message)
		require.Contains(t, w.events(v1.EventMessage), condition.Message)
		require.Len(t, k.applied, 4, "the other file is tried too")

		before := len(w.events(v1.EventMessage))
		w.change(off)
		w.want(v1.Exit)
		w.change(on)
		w.want(v1.Running)
		require.Len(t, w.events(v1.EventMessage), before, "the same failure is reported once")

		w.change(func(s *v1.ContainerSpec) { s.ConfigFiles = nil })
		require.Equal(t, 1, w.count("create", server), "config files need no other container")
		w.change(off)
		w.want(v1.Exit)
		w.change(on)
		c = w.want(v1.Running)
		require.Empty(t, v1.FindCondition(c.Status.Conditions, v1.ConfigFilesApplied).Status, "without config_files there is no condition")
	})
}

// TestStoredBombDelaysNoStart: a spec that was stored before its variables were bounded sets the
// condition only.
func TestStoredBombDelaysNoStart(t *testing.T) {
	live(t, func(w *world) {
		k := &configs{}
		w.rec.Volumes.Configure = k.configure
		w.installed(func(s *v1.ContainerSpec) {
			s.VolumeID = "v"
			s.Env = map[string]string{"A": strings.Repeat("x", 120_000)}
			s.ConfigFiles = []v1.ConfigFile{
				{Path: "bomb", Format: "text", Set: map[string]string{"k": strings.Repeat("${A}", 16_000)}},
				{Path: "b", Format: "ini", Set: map[string]string{"x": "1"}},
			}
		})
		w.change(on)
		c := w.want(v1.Running)
		condition := v1.FindCondition(c.Status.Conditions, v1.ConfigFilesApplied)
		require.Equal(t, v1.False, condition.Status)
		require.Equal(t, "config files that were not changed: bomb: k: must be at most 65536 bytes with its variables replaced", condition.Message)
		require.Len(t, k.applied, 1, "the other file is set")
	})
}

// TestConfigFilesAreBounded: a disk that hangs delays a start only for a time, and a long
// message is cut.
func TestConfigFilesAreBounded(t *testing.T) {
	live(t, func(w *world) {
		w.rec.Volumes.Configure = func(ctx context.Context, _ string, files []v1.ConfigFile, _ map[string]string) (errs []error) {
			require.Equal(t, 4, w.rec.Semaphore.Free(), "no start of another container waits for it")
			<-ctx.Done()
			for range files {
				errs = append(errs, ctx.Err())
			}
			return errs
		}
		w.installed(func(s *v1.ContainerSpec) {
			for i := range 3 {
				s.ConfigFiles = append(s.ConfigFiles, v1.ConfigFile{Path: strings.Repeat("ä", 1000) + string(rune('a'+i)), Format: "json", Set: map[string]string{"a": "b"}})
			}
		})
		w.change(on)
		w.want(v1.Starting)
		time.Sleep(11 * time.Second)
		c := w.want(v1.Running)
		message := v1.FindCondition(c.Status.Conditions, v1.ConfigFilesApplied).Message
		require.LessOrEqual(t, len(message), 500)
		require.Contains(t, message, "(3 files in all)")
	})
}

// TestJobOfADeletedContainerIsForgotten: the job ends after the record of its container is gone.
func TestJobOfADeletedContainerIsForgotten(t *testing.T) {
	live(t, func(w *world) {
		held, k := make(chan struct{}), &configs{}
		w.rec.Volumes.Configure = k.configure
		w.installed(func(s *v1.ContainerSpec) {
			s.VolumeID, s.ConfigFiles = "v", []v1.ConfigFile{{Path: "a", Format: "json", Set: map[string]string{"p": "1"}}}
		})
		k.before = func() { <-held }
		w.change(on)
		time.Sleep(time.Second)
		require.Equal(t, jobs.Running, w.rec.Preparations.Get("mc").State)
		require.NoError(t, w.store.Update(func(tx *store.Tx) error { return store.Containers.Delete(tx, "mc") }))
		time.Sleep(time.Minute)
		require.True(t, w.gone())
		close(held)
		time.Sleep(time.Minute)
		require.Equal(t, jobs.None, w.rec.Preparations.Get("mc").State)
	})
}

// TestPlaceholdersFollowThePorts: env and config files have the values of the spec, also after other
// ports; a changed limit is in force at once, and in the environment of the next start.
func TestPlaceholdersFollowThePorts(t *testing.T) {
	live(t, func(w *world) {
		var configured map[string]string
		w.rec.Volumes.Configure = func(_ context.Context, _ string, files []v1.ConfigFile, env map[string]string) []error {
			configured = env
			return make([]error, len(files))
		}
		env := func() []string { return w.engine.Outside.Spec(server).Env }
		w.installed(func(s *v1.ContainerSpec) {
			s.Env = map[string]string{"HOST": "${BERTH_GATEWAY}", "MEMORY": "${BERTH_MEMORY}", "PORT": "${BERTH_PORT}"}
			s.Ports, s.Limits.Memory = []v1.Port{{IP: "127.0.0.1", Port: 1000, Protocol: "tcp"}}, 1178<<20
			s.ConfigFiles = []v1.ConfigFile{{Path: "a", Format: "json", Set: map[string]string{"a": "${PORT}"}}}
		})
		w.change(on)
		w.want(v1.Running)
		require.Equal(t, []string{"HOST=172.18.0.1", "MEMORY=1024", "PORT=1000"}, env())
		require.Equal(t, []string{"1000", "172.18.0.1"}, []string{configured["PORT"], configured["BERTH_GATEWAY"]})
		before := w.engine.Outside.State(server)
		w.change(func(s *v1.ContainerSpec) { s.Limits.Memory = 589 << 20 })
		time.Sleep(time.Hour)
		require.Equal(t, before.StartedAt, w.engine.Outside.State(server).StartedAt)
		require.Equal(t, "MEMORY=1024", env()[1])
		w.change(on)
		time.Sleep(time.Minute)
		w.want(v1.Running)
		require.Equal(t, "MEMORY=512", env()[1])
		w.change(func(s *v1.ContainerSpec) { on(s); s.Ports = []v1.Port{{IP: "127.0.0.1", Port: 2000, Protocol: "tcp"}} })
		time.Sleep(time.Minute)
		w.want(v1.Running)
		require.Equal(t, "PORT=2000", env()[2])
		require.Equal(t, "2000", configured["PORT"])
	})
}
