package container

import (
	"errors"
	"fmt"
	"time"

	v1 "berth/api/v1"
	"berth/controller"
	"berth/runtime"
)

// pullPoll is the time between two observations of a pull's progress.
const pullPoll = time.Second

// pull requests an image and records the progress or the result.
func (s execution) pull(image string) (controller.Result, error) {
	if s.c.Spec.PullPolicy == v1.PullNever {
		return neverPull(s, image)
	}
	auth := s.r.Auth(s.c.Spec.RegistryAuth)
	p := s.r.Pulls.Request(s.c.Meta.ID, image, auth)
	installing := s.c.Status.ObservedInstall != s.c.Spec.InstallGeneration
	switch {
	case !p.Done:
		return waitFor(pullPoll), recordPull(s, v1.ImageAvailable, image, p.Progress)
	case p.Err == nil: // but the engine did not find the image
		p = s.r.Pulls.NotKept(image, auth)
	case installing && p.permanent():
		return controller.RequeueNow(), s.failImage(pullReason(p.Err), p.Err)
	}
	return waitFor(time.Until(p.RetryAt)), s.recordPullFailure(p)
}

// pullReason returns the reason of a condition after a pull that failed.
func pullReason(err error) string {
	switch {
	case errors.Is(err, runtime.ErrImageNotFound):
		return v1.ReasonImageNotFound
	case errors.Is(err, runtime.ErrDenied):
		return "ImageDenied"
	case errors.Is(err, runtime.ErrInvalid):
		return "ImageInvalid"
	}
	return v1.ReasonPullFailed
}

// recordPullFailure records why the image is missing and when the pull is retried.
func (s execution) recordPullFailure(p Pull) error {
	text := fmt.Sprintf("%s; berth tries again until the registry answers", p.Err)
	if s.reported(text) {
		return nil
	}
	change := func(st *v1.ContainerStatus, now time.Time) {
		st.Message = text
		setCondition(st, now, v1.ImageAvailable, v1.Unknown, v1.ReasonPullFailed, text)
	}
	if v1.FindCondition(s.c.Status.Conditions, v1.ImageAvailable).Reason == v1.ReasonPullFailed {
		return s.record(change)
	}
	return recordWarning(s, v1.ReasonPullFailed, text, change)
}

// recordPull records the progress of a pull in the message and the condition of a type.
func recordPull(s execution, kind, image string, p runtime.Progress) error {
	text := fmt.Sprintf("pulling image %s: %d of %d layers, %d of %d MiB", image, p.Done, p.Layers, p.Current>>20, p.Total>>20)
	if s.reported(text) {
		return nil
	}
	return s.record(func(st *v1.ContainerStatus, now time.Time) {
		st.Message = text
		last := v1.FindCondition(st.Conditions, kind)
		if p.Layers == 0 && last.Reason == v1.ReasonPullFailed || kind == v1.ImageCurrent && last.Status == v1.False {
			return // another attempt is no news until the registry answers
		}
		setCondition(st, now, kind, v1.Unknown, v1.ReasonPulling, "the image is being pulled")
	})
}

// failImage records a permanent failure of a pull: the installation fails for good.
func (s execution) failImage(reason string, err error) error {
	s.r.Pulls.Forget(s.c.Meta.ID)
	return s.record(func(st *v1.ContainerStatus, now time.Time) {
		setCondition(st, now, v1.ImageAvailable, v1.False, reason, err.Error())
		s.setFailed(st, now, reason, err.Error())
	}, err.Error())
}
