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
	auth := s.r.Auth(s.c.Spec.RegistryAuth)
	p := s.r.Pulls.Request(s.c.Meta.ID, image, auth)
	installing := s.c.Status.ObservedInstall != s.c.Spec.InstallGeneration
	switch {
	case !p.Done:
		return waitFor(pullPoll), s.recordPull(image, p.Progress)
	case p.Err == nil: // but the engine did not find the image
		p = s.r.Pulls.NotKept(image, auth)
	case installing && errors.Is(p.Err, runtime.ErrImageNotFound):
		return requeueNow(), s.failImage(v1.ReasonImageNotFound, p.Err)
	case installing && errors.Is(p.Err, runtime.ErrDenied):
		return requeueNow(), s.failImage("ImageDenied", p.Err)
	case installing && errors.Is(p.Err, runtime.ErrInvalid):
		return requeueNow(), s.failImage("ImageInvalid", p.Err)
	}
	return waitFor(time.Until(p.RetryAt)), s.recordPullFailure(p)
}

// recordPullFailure records why the image is missing and when the pull is retried.
func (s execution) recordPullFailure(p Pull) error {
	text := fmt.Sprintf("%s; tried again at %s", p.Err, p.RetryAt.UTC().Format(time.TimeOnly))
	if s.reported(text) {
		return nil
	}
	s.r.Log.Warn("the image of a container cannot be pulled", "container", s.c.Meta.ID, "err", p.Err, "retry_at", p.RetryAt)
	return s.record(func(st *v1.ContainerStatus, now time.Time) {
		st.Message = text
		setCondition(st, now, v1.ImageAvailable, v1.Unknown, v1.ReasonPullFailed, text)
	})
}

func (s execution) recordPull(image string, p runtime.Progress) error {
	text := fmt.Sprintf("pulling image %s: %d of %d layers, %d of %d MiB", image, p.Done, p.Layers, p.Current>>20, p.Total>>20)
	if s.reported(text) {
		return nil
	}
	return s.record(func(st *v1.ContainerStatus, now time.Time) {
		st.Message = text
		if p.Layers == 0 && v1.FindCondition(st.Conditions, v1.ImageAvailable).Reason == v1.ReasonPullFailed {
			return // another attempt is no news until the registry answers
		}
		setCondition(st, now, v1.ImageAvailable, v1.Unknown, "Pulling", "the image is being pulled")
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
