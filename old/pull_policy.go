package container

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	v1 "berth/api/v1"
	"berth/controller"
	"berth/runtime"
)

// neverPoll is the time between two attempts to create a container whose image is not on
// the host and must not be pulled.
const neverPoll = 30 * time.Second

// refreshDue reports whether the pull policy wants a pull before the next start. A start
// that is recorded had its pull.
func refreshDue(c v1.Container) bool {
	return c.Spec.PullPolicy == v1.PullAlways && c.Status.Phase != v1.Starting && c.Status.ImagePulled != refreshOf(c.Spec)
}

// refreshOf identifies the start for which an image is pulled: the requested run and the
// image. The record of a start removes it, so a restart by policy pulls again.
func refreshOf(s v1.ContainerSpec) string { return fmt.Sprintf("%d/%s", s.RunGeneration, s.Image) }

// refreshImage pulls the image of a server that is about to start. If its tag was moved,
// the server container is outdated. A pull that fails leaves the image on the host in use.
func refreshImage(ctx context.Context, s execution) (controller.Result, error) {
	image := s.c.Spec.Image
	p := s.r.Pulls.Refresh(s.c.Meta.ID, image, s.r.Auth(s.c.Spec.RegistryAuth))
	if !p.Done {
		return waitFor(pullPoll), recordPull(s, v1.ImageCurrent, image, p.Progress)
	}
	id, err := s.r.Engine.ImageID(ctx, image)
	if err != nil {
		return controller.Result{}, err
	}
	if p.Err == nil && id == "" {
		p.Err = errNotKept
	}
	change := func(st *v1.ContainerStatus, _ time.Time) {
		st.ImagePulled, st.Message = refreshOf(s.c.Spec), ""
		if id != "" && exists(s.o.Server) && s.o.Server.ImageID != id {
			st.OutdatedID = s.o.Server.ContainerID
		}
	}
	if p.Err == nil {
		return controller.RequeueNow(), s.record(func(st *v1.ContainerStatus, now time.Time) {
			change(st, now)
			setCondition(st, now, v1.ImageCurrent, v1.True, "Pulled", "the image is the one of the registry")
		})
	}
	text := fmt.Sprintf("the image could not be pulled, and the container starts with the one on the host: %s", p.Err)
	failed := func(st *v1.ContainerStatus, now time.Time) {
		change(st, now)
		setCondition(st, now, v1.ImageCurrent, v1.False, pullReason(p.Err), text)
	}
	if v1.FindCondition(s.c.Status.Conditions, v1.ImageCurrent).Status == v1.False {
		return controller.RequeueNow(), s.record(failed)
	}
	return controller.RequeueNow(), recordWarning(s, pullReason(p.Err), text, failed)
}

// neverPull records that an image is not on the host, and that the pull policy forbids to
// pull it. An installation fails for good; a start waits until the image is there.
func neverPull(s execution, image string) (controller.Result, error) {
	err := fmt.Errorf("%w: %s is not on the host, and pull_policy is never", runtime.ErrImageNotFound, image)
	if s.c.Status.ObservedInstall != s.c.Spec.InstallGeneration {
		return controller.RequeueNow(), s.failImage(v1.ReasonImageNotFound, err)
	}
	if s.reported(err.Error()) {
		return waitFor(neverPoll), nil
	}
	record := recordWarning(s, v1.ReasonImageNotFound, err.Error(), func(st *v1.ContainerStatus, now time.Time) {
		setCondition(st, now, v1.ImageAvailable, v1.False, v1.ReasonImageNotFound, err.Error())
	})
	return waitFor(neverPoll), record
}

// clearImageCurrent removes the condition ImageCurrent if the pull policy is not
// PullAlways, or if the condition is about a start that is no longer requested.
func clearImageCurrent(s v1.ContainerSpec, st *v1.ContainerStatus) {
	status := v1.FindCondition(st.Conditions, v1.ImageCurrent).Status
	if status == "" || s.PullPolicy == v1.PullAlways && (status != v1.Unknown || s.Power == v1.PowerOn) {
		return
	}
	st.Conditions = slices.DeleteFunc(slices.Clone(st.Conditions), func(c v1.Condition) bool { return c.Type == v1.ImageCurrent })
}

// errNotKept reports that the engine has pulled an image and does not have it.
var errNotKept = errors.New("the image was pulled and is not on the host")
