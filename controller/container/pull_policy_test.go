package container_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	. "berth/controller/container"
	"berth/runtime"
	"berth/runtime/fake"
)

var image = runtime.Name{ID: "i"}

func always(s *v1.ContainerSpec) { s.PullPolicy = v1.PullAlways }

// imageCurrent returns the status and the reason of the condition ImageCurrent.
func imageCurrent(c v1.Container) string {
	condition := v1.FindCondition(c.Status.Conditions, v1.ImageCurrent)
	return condition.Status + " " + condition.Reason
}

func TestPlanRefresh(t *testing.T) {
	next := func(s *v1.ContainerSpec) { always(s); s.RunGeneration = 2 }
	pulled := func(start string) func(*v1.ContainerStatus) {
		return func(s *v1.ContainerStatus) { s.Phase, s.ImagePulled = v1.Exit, start }
	}
	outdated := func(id string) func(*v1.ContainerStatus) {
		return func(s *v1.ContainerStatus) { pulled("2/i")(s); s.OutdatedID = id }
	}
	check(t, []row{
		{"before a start", next, is(v1.Exit), stopped, RefreshImage},
		{"before its container is created", next, is(v1.Exit), none, RefreshImage},
		{"it was pulled", next, pulled("2/i"), stopped, RecordStart},
		{"for the start before", next, pulled("1/i"), stopped, RefreshImage},
		{"with another image", next, pulled("2/j"), stopped, RefreshImage},
		{"its tag was moved", next, outdated("a"), stopped, RemoveServer},
		{"and its container was replaced", next, outdated("b"), stopped, RecordStart},
		{"not without a start", always, outdated("a"), stopped, Rest},
		{"the start is recorded", next, func(s *v1.ContainerStatus) { s.Phase, s.ObservedRun = v1.Starting, 2 }, fresh, RecordStart},
		{"it runs", always, nil, nil, Rest},
		{"before a restart by policy", always, func(s *v1.ContainerStatus) { s.Phase, s.NextRetryAt = v1.Exit, &t1 }, stopped, RefreshImage},
		{"not during its backoff", always, func(s *v1.ContainerStatus) {
			at := t2.Add(time.Hour)
			s.Phase, s.NextRetryAt = v1.Exit, &at
		}, stopped, AwaitRetry},
		{"another policy", func(s *v1.ContainerSpec) { s.RunGeneration = 2 }, is(v1.Exit), stopped, RecordStart},
	})
}

// TestMovedTagArrives: with the policy always each start has the image of the registry,
// a restart by policy too; with the default it has the one of before.
func TestMovedTagArrives(t *testing.T) {
	for policy, want := range map[v1.PullPolicy][]string{v1.PullAlways: {"i#1", "i#1", "i#2", "i#3"}, "": {"i#0", "i#0", "i#0", "i#0"}} {
		live(t, func(w *world) {
			w.installed(func(s *v1.ContainerSpec) { s.PullPolicy = policy })
			fake.PushImage(w.engine.Outside, "i")
			w.change(on)
			w.want(v1.Running)
			images := []string{w.engine.Outside.State(server).ImageID}
			for i := range 3 {
				if i > 0 {
					fake.PushImage(w.engine.Outside, "i")
				}
				before := w.engine.Outside.State(server).ContainerID
				w.engine.Outside.Exit(server, 1)
				time.Sleep(10 * time.Minute)
				w.want(v1.Running)
				now := w.engine.Outside.State(server)
				require.Equal(t, images[i] == now.ImageID, before == now.ContainerID, "another container only for another image")
				images = append(images, now.ImageID)
			}
			require.Equal(t, want, images)
			require.Equal(t, policy == v1.PullAlways, imageCurrent(w.get()) == "True Pulled")
		})
	}
}

// TestStartWithoutRegistry: a registry that does not answer delays no start, and the next
// start asks it again without a backoff.
func TestStartWithoutRegistry(t *testing.T) {
	for err, reason := range map[error]string{errors.New("no route"): "PullFailed", runtime.ErrImageNotFound: "ImageNotFound",
		runtime.ErrDenied: "ImageDenied", runtime.ErrInvalid: "ImageInvalid"} {
		live(t, func(w *world) {
			w.installed(always)
			w.engine.Outside.RefusePull("i", err)
			fake.PushImage(w.engine.Outside, "i")
			for range 2 {
				w.change(on)
				w.change(kill)
			}
			w.change(on)
			c := w.want(v1.Running)
			require.Equal(t, "False "+reason, imageCurrent(c))
			require.Equal(t, "i#0", w.engine.Outside.State(server).ImageID)
			require.Equal(t, v1.True, v1.FindCondition(c.Status.Conditions, v1.ImageAvailable).Status)
			require.Empty(t, v1.Unready(c.Spec, c.Status))
			require.Equal(t, 3, w.count("pull", image))
			require.Len(t, w.events(v1.EventMessage), 1, "reported once")
			w.engine.Outside.RefusePull("i", nil)
			w.change(kill)
			w.change(on)
			require.Equal(t, "True Pulled", imageCurrent(w.want(v1.Running)))
			require.Equal(t, "i#1", w.engine.Outside.State(server).ImageID)
			w.change(func(s *v1.ContainerSpec) { s.PullPolicy = "" })
			require.Equal(t, " ", imageCurrent(w.get()), "another policy has no such condition")
		})
	}
}

// TestStartWaitsForPull: nothing starts before the pull is done, and a start that was
// taken back meanwhile does not happen. The next one pulls again.
func TestStartWaitsForPull(t *testing.T) {
	live(t, func(w *world) {
		w.installed(always)
		release := w.engine.Outside.HoldPull("i")
		w.change(on)
		time.Sleep(time.Hour)
		c := w.want(v1.Ready)
		require.Equal(t, "Unknown Pulling", imageCurrent(c))
		require.Contains(t, c.Status.Message, "pulling image i")
		require.Equal(t, v1.ReasonPulling, v1.Unready(c.Spec, c.Status))
		w.change(kill)
		require.Equal(t, " ", imageCurrent(w.want(v1.Ready)))
		fake.PushImage(w.engine.Outside, "i")
		release()
		time.Sleep(time.Hour)
		require.Zero(t, w.count("start", server))
		fake.PushImage(w.engine.Outside, "i")
		w.change(on)
		w.want(v1.Running)
		require.Equal(t, "i#2", w.engine.Outside.State(server).ImageID)
		require.Equal(t, 2, w.count("pull", image))
	})
}

// TestStartDuringPullOfAnother: a pull that another container began before the request to
// start may have read the tag before it was moved.
func TestStartDuringPullOfAnother(t *testing.T) {
	live(t, func(w *world) {
		w.installed(always)
		release := w.engine.Outside.HoldPull("i")
		w.rec.Pulls.Request("other", "i", runtime.Auth{})
		time.Sleep(time.Second)
		w.change(on)
		time.Sleep(time.Second)
		release()
		time.Sleep(time.Minute)
		w.want(v1.Running)
		require.Equal(t, 2, w.count("pull", image))
	})
}

func TestNeverPull(t *testing.T) {
	never := func(s *v1.ContainerSpec) { s.PullPolicy = v1.PullNever }
	live(t, func(w *world) {
		w.create(func(s *v1.ContainerSpec) { never(s); s.Image = "far" })
		c := w.want(v1.Failed)
		require.Equal(t, v1.ReasonImageNotFound, v1.FindCondition(c.Status.Conditions, v1.ImageAvailable).Reason)
		require.Equal(t, v1.False, v1.FindCondition(c.Status.Conditions, v1.ImageAvailable).Status)
		require.Contains(t, c.Status.Message, "far is not on the host, and pull_policy is never")
		require.Zero(t, w.count("pull", runtime.Name{ID: "far"}))
	})
	live(t, func(w *world) {
		w.installed(never)
		w.engine.Outside.RemoveImage("i")
		w.engine.Outside.Vanish(server)
		w.change(on)
		w.want(v1.Ready)
		reported := w.events(v1.EventMessage)
		require.NotEmpty(t, reported)
		time.Sleep(time.Hour)
		c := w.want(v1.Ready)
		require.Equal(t, v1.ReasonImageNotFound, v1.Unready(c.Spec, c.Status))
		require.Equal(t, reported, w.events(v1.EventMessage), "reported once for each request")
		w.engine.Outside.AddImage("i")
		time.Sleep(2 * time.Minute)
		c = w.want(v1.Running)
		require.Equal(t, v1.True, v1.FindCondition(c.Status.Conditions, v1.ImageAvailable).Status)
		require.Zero(t, w.count("pull", image))
	})
}

// TestOOMKillIgnored: an engine that does not apply limits.oom_kill gets one attempt, and
// the container a condition.
func TestOOMKillIgnored(t *testing.T) {
	without := func(s *v1.ContainerSpec) { s.Limits = v1.Limits{Memory: 64 << 20, OOMKill: new(bool)} }
	live(t, func(w *world) {
		w.installed(without)
		require.True(t, w.engine.Outside.State(server).Live.NoOOMKill)
		fake.KeepOOMKill(w.engine.Outside)
		w.change(func(s *v1.ContainerSpec) { on(s); s.Workdir = "/x" }) // another container
		time.Sleep(time.Hour)
		c := w.want(v1.Running)
		applied := v1.FindCondition(c.Status.Conditions, v1.LimitsApplied)
		require.Equal(t, v1.False, applied.Status)
		require.Contains(t, applied.Message, "did not apply limits.oom_kill")
		require.Equal(t, 1, w.count("update", server))
		w.change(func(s *v1.ContainerSpec) { s.Limits.OOMKill = nil; s.RunGeneration++ })
		time.Sleep(time.Minute)
		require.Equal(t, v1.True, v1.FindCondition(w.want(v1.Running).Status.Conditions, v1.LimitsApplied).Status)
	})
}
