package container

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "berth/api/v1"
	"berth/controller"
	"berth/runtime"
)

const (
	pullPoll  = time.Second      // between two observations of a pull's progress
	neverPoll = 30 * time.Second // between two attempts to create a container whose image must not be pulled
)

// pull requests an image and records the progress or the result.
func (t *task) pull(image string) (controller.Result, error) {
	if t.c.Spec.PullPolicy == v1.PullNever {
		return t.neverPull(image)
	}
	p := t.Pulls.Request(t.c.Meta.ID, image, t.Auth(t.c.Spec.RegistryAuth, image))
	switch installing := t.installs(); {
	case !p.Done:
		return waitFor(pullPoll), t.recordPull(v1.ImageAvailable, image, p.Progress)
	case installing && p.Permanent():
		return controller.Result{}, t.failImage(pullReason(p.Err), p.Err)
	}
	return waitFor(time.Until(p.RetryAt)), t.recordPullFailure(p)
}

// pullReason returns the reason of a condition after a pull that failed.
func pullReason(err error) string {
	switch {
	case errors.Is(err, runtime.ErrImageNotFound):
		return v1.ReasonImageNotFound
	case errors.Is(err, runtime.ErrOtherMachine):
		return "ImageForOtherMachine"
	case errors.Is(err, runtime.ErrDenied):
		return "ImageDenied"
	case errors.Is(err, runtime.ErrInvalid):
		return "ImageInvalid"
	}
	return v1.ReasonPullFailed
}

// recordPullFailure records why the image is missing and when the pull is retried.
func (t *task) recordPullFailure(p Pull) error {
	until := "the registry answers"
	if errors.Is(p.Err, runtime.ErrNoSpace) {
		until = "there is space"
	}
	text := fmt.Sprintf("%s; berth tries again until %s", v1.ClippedText(p.Err.Error(), maxCause), until)
	if t.reported(text) {
		return nil
	}
	set := func(st *v1.ContainerStatus, now time.Time) {
		st.Message = text
		setCondition(st, now, condition(v1.ImageAvailable, v1.Unknown, v1.ReasonPullFailed, text))
	}
	if v1.FindCondition(t.c.Status.Conditions, v1.ImageAvailable).Reason == v1.ReasonPullFailed {
		return t.record(set)
	}
	return t.report(v1.ReasonPullFailed, text, set)
}

// pullingText is the begin of the message of a pull in progress.
const pullingText = "pulling image "

// recordPull records the progress of a pull in the message and the condition of a type.
func (t *task) recordPull(kind, image string, p runtime.Progress) error {
	text := fmt.Sprintf(pullingText+"%s: %d of %d layers, %d of %d MiB", image, p.Done, p.Layers, p.Current>>20, p.Total>>20)
	if t.reported(text) {
		return nil
	}
	return t.record(func(st *v1.ContainerStatus, now time.Time) {
		st.Message = text
		last := v1.FindCondition(st.Conditions, kind)
		if p.Layers == 0 && last.Reason == v1.ReasonPullFailed || kind == v1.ImageCurrent && last.Status == v1.False {
			return // another attempt changes nothing until the registry answers
		}
		setCondition(st, now, condition(kind, v1.Unknown, v1.ReasonPulling, "the image is being pulled"))
	})
}

// failImage records a permanent failure of a pull: the installation fails for good.
func (t *task) failImage(reason string, err error) error {
	t.Pulls.Forget(t.c.Meta.ID)
	return t.report("", err.Error(), func(st *v1.ContainerStatus, now time.Time) {
		setCondition(st, now, condition(v1.ImageAvailable, v1.False, reason, err.Error()))
		t.setFailed(st, now, reason, err.Error())
	})
}

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
func (t *task) refreshImage(ctx context.Context) (controller.Result, error) {
	image := t.c.Spec.Image
	p := t.Pulls.Refresh(t.c.Meta.ID, image, t.Auth(t.c.Spec.RegistryAuth, image))
	if !p.Done {
		return waitFor(pullPoll), t.recordPull(v1.ImageCurrent, image, p.Progress)
	}
	id, err := t.Engine.ImageID(ctx, image)
	if err != nil {
		return controller.Result{}, err
	}
	if p.Err == nil && id == "" {
		p.Err = errNotKept
	}
	status, reason, text := v1.True, "Pulled", "the image is the one of the registry"
	if p.Err != nil {
		status, reason = v1.False, pullReason(p.Err)
		text = fmt.Sprintf("the image could not be pulled, and the container starts with the one of before: %s", v1.ClippedText(p.Err.Error(),
			maxCause))
	}
	set := func(st *v1.ContainerStatus, now time.Time) {
		st.ImagePulled, st.Message = refreshOf(t.c.Spec), ""
		if id != "" && exists(t.o.Server) && t.o.Server.ImageID != id {
			st.OutdatedID = t.o.Server.ContainerID
		}
		setCondition(st, now, condition(v1.ImageCurrent, status, reason, text))
	}
	if p.Err == nil || v1.FindCondition(t.c.Status.Conditions, v1.ImageCurrent).Status == v1.False {
		return controller.Result{}, t.record(set)
	}
	return controller.Result{}, t.record(set, message{reason, text})
}

// resolveAgain pulls the image of a server whose machine cannot find it in the registry, which may have removed
// what the tag named when the container was created. If the tag names another image by now, the container is
// outdated. refused is the error of the start.
func (t *task) resolveAgain(ctx context.Context, refused error) (controller.Result, error) {
	image := t.c.Spec.Image
	if t.c.Spec.PullPolicy == v1.PullNever {
		return controller.Result{}, refused
	}
	p := t.Pulls.Refresh(t.c.Meta.ID, image, t.Auth(t.c.Spec.RegistryAuth, image))
	switch {
	case !p.Done:
		return waitFor(pullPoll), t.recordWait(v1.Started, refused)
	case p.Err != nil:
		return controller.Result{}, errors.Join(refused, p.Err)
	}
	id, err := t.Engine.ImageID(ctx, image)
	if err != nil || id == "" || id == t.o.Server.ImageID {
		return controller.Result{}, errors.Join(refused, err)
	}
	return controller.Result{}, t.record(func(st *v1.ContainerStatus, _ time.Time) { st.OutdatedID = t.o.Server.ContainerID })
}

// neverPull records that an image is not on the host, and that the pull policy forbids to
// pull it. An installation fails for good; a start waits until the image is there.
func (t *task) neverPull(image string) (controller.Result, error) {
	err := fmt.Errorf("%w: %s is not on the host, and pull_policy is never", runtime.ErrImageNotFound, image)
	if t.installs() {
		return controller.Result{}, t.failImage(v1.ReasonImageNotFound, err)
	}
	if t.reported(err.Error()) {
		return waitFor(neverPoll), nil
	}
	return waitFor(neverPoll), t.report(v1.ReasonImageNotFound, err.Error(), func(st *v1.ContainerStatus, now time.Time) {
		setCondition(st, now, condition(v1.ImageAvailable, v1.False, v1.ReasonImageNotFound, err.Error()))
	})
}
