package container_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/runtime"
)

// page is what a proxy answers in place of a registry.
var page = "unexpected status: <html>\r\n<head>\x1b[31m" + strings.Repeat("<p>\x00Service\nUnavailable</p>", 1000)

// requireLines requires that all messages of a container are one short line each.
func requireLines(t *testing.T, w *world) {
	t.Helper()
	c := w.get()
	texts := append(w.events(v1.EventMessage), c.Status.Message)
	for _, condition := range c.Status.Conditions {
		texts = append(texts, condition.Message)
	}
	for _, text := range texts {
		require.LessOrEqual(t, len(text), 500, text)
		require.Equal(t, -1, strings.IndexFunc(text, unicode.IsControl), text)
	}
}

// TestTextsFromOutsideAreLines: an error page of a registry or of an engine is one short line
// everywhere, and is recorded once.
func TestTextsFromOutsideAreLines(t *testing.T) {
	live(t, func(w *world) {
		w.engine.Outside.RefusePull("j", errors.New(page))
		w.create(func(s *v1.ContainerSpec) { s.Image = "j" })
		time.Sleep(10 * time.Minute)
		c := w.want(v1.Installing)
		require.Contains(t, c.Status.Message, "<html> <head>")
		require.Contains(t, c.Status.Message, "berth tries again until the registry answers")
		require.Len(t, w.events(v1.EventMessage), 1)
		requireLines(t, w)
	})
	for _, err := range []error{errors.New(page), errors.Join(runtime.ErrBadCommand, errors.New(page))} {
		live(t, func(w *world) {
			w.installed(nil)
			w.refuse("start", server, &runtime.CallError{Call: "start", Object: "mc", Err: err})
			w.change(on)
			time.Sleep(time.Minute)
			require.Contains(t, w.get().Status.Message, "<html> <head>")
			requireLines(t, w)
		})
	}
	live(t, func(w *world) {
		w.installed(nil)
		w.change(on)
		w.refuse("inspect", server, &runtime.CallError{Call: "inspect", Object: "mc", Err: errors.Join(runtime.ErrLost, errors.New(page))})
		time.Sleep(time.Hour)
		require.Contains(t, w.get().Status.Message, "the container may run on")
		require.Len(t, w.events(v1.EventMessage), 1)
		requireLines(t, w)
	})
}

// TestCancelledPullIsOver: a start that was cancelled while its image was being pulled leaves no
// message about the pull.
func TestCancelledPullIsOver(t *testing.T) {
	live(t, func(w *world) {
		w.installed(always)
		release := w.engine.Outside.HoldPull("i")
		defer release()
		w.change(on)
		time.Sleep(5 * time.Second)
		require.Contains(t, w.get().Status.Message, "pulling image i")
		w.change(off)
		time.Sleep(5 * time.Second)
		require.Empty(t, w.want(v1.Ready).Status.Message)
	})
}

// TestImageThatArrivedIsAvailable: also if no container can be created from it, and while an
// installation goes on that had to pull it again.
func TestImageThatArrivedIsAvailable(t *testing.T) {
	available := func(w *world) v1.Condition { return v1.FindCondition(w.get().Status.Conditions, v1.ImageAvailable) }
	live(t, func(w *world) {
		w.installed(nil)
		release := w.engine.Outside.HoldPull("j")
		w.change(func(s *v1.ContainerSpec) { s.Image = "j" })
		time.Sleep(5 * time.Second)
		require.Equal(t, v1.ReasonPulling, available(w).Reason)
		w.engine.Outside.Fail(func(op string, n runtime.Name) error {
			if op == "create" || op == "probe" {
				return errRefused
			}
			return nil
		})
		release()
		time.Sleep(time.Minute)
		require.Equal(t, v1.True, available(w).Status)
		require.Equal(t, v1.False, v1.FindCondition(w.get().Status.Conditions, v1.Reconciled).Status)
	})
	live(t, func(w *world) {
		release := w.engine.Outside.HoldPull("j")
		w.create(nil)
		w.change(func(s *v1.ContainerSpec) { s.Image = "j"; s.InstallGeneration++ })
		time.Sleep(5 * time.Second)
		require.Equal(t, v1.ReasonPulling, available(w).Reason)
		release()
		time.Sleep(time.Minute)
		require.True(t, w.engine.Outside.State(installer).Running)
		require.Equal(t, v1.True, available(w).Status)
	})
}

// TestImageOfAnotherMachine: a pull says so, and so does the exit of a run and of an installer
// that failed at once.
func TestImageOfAnotherMachine(t *testing.T) {
	const platforms = "linux/arm64, and this machine is linux/amd64"
	live(t, func(w *world) {
		w.engine.Outside.RefusePull("j", runtime.ErrOtherMachine)
		w.create(func(s *v1.ContainerSpec) { s.Image = "j" })
		time.Sleep(time.Minute)
		require.Contains(t, w.want(v1.Failed).Status.Message, "another machine")
		require.Equal(t, "ImageForOtherMachine", v1.FindCondition(w.get().Status.Conditions, v1.ImageAvailable).Reason)
	})
	live(t, func(w *world) {
		w.engine.Outside.Foreign(platforms)
		w.installed(nil)
		w.change(on)
		w.engine.Outside.Exit(server, 1)
		synctest.Wait()
		c := w.want(v1.Exit)
		require.Equal(t, "the container exited with code 1: its image is for "+platforms, c.Status.Message)
		require.Equal(t, c.Status.Message, v1.FindCondition(c.Status.Conditions, v1.Started).Message)
		require.Equal(t, []string{c.Status.Message}, w.events(v1.EventMessage))
	})
	live(t, func(w *world) { // an emulator runs it
		w.engine.Outside.Foreign(platforms)
		w.installed(nil)
		w.change(on)
		time.Sleep(time.Minute)
		w.engine.Outside.Exit(server, 1)
		require.Equal(t, "the container exited with code 1", v1.FindCondition(w.want(v1.Exit).Status.Conditions, v1.Started).Message)
	})
	live(t, func(w *world) { // a killed program did run
		w.engine.Outside.Foreign(platforms)
		w.installed(nil)
		w.change(on)
		w.engine.Outside.Exit(server, 137)
		time.Sleep(2 * time.Second)
		require.NotContains(t, v1.FindCondition(w.want(v1.Exit).Status.Conditions, v1.Started).Message, platforms)
	})
	live(t, func(w *world) {
		w.engine.Outside.Foreign(platforms)
		w.create(nil)
		w.engine.Outside.Exit(installer, 1)
		require.Contains(t, w.want(v1.Failed).Status.Message, platforms)
	})
}
