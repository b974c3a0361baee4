package container

import (
	"errors"
	"fmt"
	"time"

	v1 "berth/api/v1"
	"berth/controller"
	"berth/runtime"
)

// pullPoll is how often the progress of a pull is looked at.
const pullPoll = time.Second

// pull begins to fetch an image, or looks how far that is.
func (s step) pull(image string) (controller.Result, error) {
	auth := s.Auth(s.c.Spec.RegistryAuth)
	p := s.Pulls.Request(s.c.Meta.ID, image, auth)
	installing := s.c.Status.ObservedInstall != s.c.Spec.InstallGeneration
	switch {
	case !p.Done:
		return waitFor(pullPoll), s.recordPull(image, p.Progress)
	case p.Err == nil: // and yet the engine has just not found it
		p = s.Pulls.NotKept(image, auth)
	case installing && errors.Is(p.Err, runtime.ErrImageNotFound):
		return requeue, s.noImage(v1.ReasonImageNotFound, p.Err)
	case installing && errors.Is(p.Err, runtime.ErrDenied):
		return requeue, s.noImage("ImageDenied", p.Err)
	case installing && errors.Is(p.Err, runtime.ErrInvalid):
		return requeue, s.noImage("ImageInvalid", p.Err)
	}
	return waitFor(time.Until(p.RetryAt)), s.recordPullFailure(p)
}

// recordPullFailure tells why there is no image yet, and when it is tried again.
func (s step) recordPullFailure(p Pull) error {
	text := fmt.Sprintf("%s; tried again at %s", p.Err, p.RetryAt.UTC().Format(time.TimeOnly))
	if s.reported(text) {
		return nil
	}
	return s.record(func(st *v1.ContainerStatus, now time.Time) {
		st.Message = text
		set(st, now, v1.ImageAvailable, v1.Unknown, "PullFailed", text)
	})
}

func (s step) recordPull(image string, p runtime.Progress) error {
	text := fmt.Sprintf("pulling image %s: %d of %d layers, %d of %d MiB", image, p.Done, p.Layers, p.Current>>20, p.Total>>20)
	if s.reported(text) {
		return nil
	}
	return s.record(func(st *v1.ContainerStatus, now time.Time) {
		st.Message = text
		set(st, now, v1.ImageAvailable, v1.Unknown, "Pulling", "the image is being pulled")
	})
}

// noImage is a registry's definite no: an installation fails for good with it.
func (s step) noImage(reason string, err error) error {
	s.Pulls.Forget(s.c.Meta.ID)
	return s.record(func(st *v1.ContainerStatus, now time.Time) {
		set(st, now, v1.ImageAvailable, v1.False, reason, err.Error())
		s.failed(st, now, reason, err.Error())
	}, err.Error())
}
