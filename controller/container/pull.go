package container

import (
	"errors"
	"fmt"
	"time"

	v1 "berth/api/v1"
	"berth/controller"
	"berth/runtime"
)

// pullLook is how often the progress of a pull is looked at.
const pullLook = time.Second

// pull begins to fetch an image, or looks how far that is.
func (s step) pull(image string) (controller.Result, error) {
	auth := s.Auth(s.c.Spec.RegistryAuth)
	p := s.Pulls.Want(s.c.Meta.ID, image, auth)
	installing := s.c.Status.Installed != s.c.Spec.Install
	switch {
	case !p.Done:
		return waitFor(pullLook), s.notePull(image, p.Progress)
	case p.Err == nil: // and yet the engine has just not found it
		p = s.Pulls.NotKept(image, auth)
	case installing && errors.Is(p.Err, runtime.ErrImageNotFound):
		return again, s.noImage(v1.ReasonImageNotFound, p.Err)
	case installing && errors.Is(p.Err, runtime.ErrDenied):
		return again, s.noImage("ImageDenied", p.Err)
	case installing && errors.Is(p.Err, runtime.ErrInvalid):
		return again, s.noImage("ImageInvalid", p.Err)
	}
	return waitFor(time.Until(p.RetryAt)), s.notePullFailure(p)
}

// notePullFailure tells why there is no image yet, and when it is tried again.
func (s step) notePullFailure(p Pull) error {
	text := fmt.Sprintf("%s; tried again at %s", p.Err, p.RetryAt.UTC().Format(time.TimeOnly))
	if s.told(text) {
		return nil
	}
	return s.note(func(st *v1.ContainerStatus, now time.Time) {
		st.Message = text
		set(st, now, v1.ImageAvailable, v1.Unknown, "PullFailed", text)
	})
}

func (s step) notePull(image string, p runtime.Progress) error {
	text := fmt.Sprintf("pulling image %s: %d of %d layers, %d of %d MiB", image, p.Done, p.Layers, p.Current>>20, p.Total>>20)
	if s.told(text) {
		return nil
	}
	return s.note(func(st *v1.ContainerStatus, now time.Time) {
		st.Message = text
		set(st, now, v1.ImageAvailable, v1.Unknown, "Pulling", "the image is being pulled")
	})
}

// noImage is a registry's definite no: an installation fails for good with it.
func (s step) noImage(reason string, err error) error {
	s.Pulls.Forget(s.c.Meta.ID)
	return s.note(func(st *v1.ContainerStatus, now time.Time) {
		set(st, now, v1.ImageAvailable, v1.False, reason, err.Error())
		s.failed(st, now, reason, err.Error())
	}, err.Error())
}
