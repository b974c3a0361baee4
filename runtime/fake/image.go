package fake

import (
	"context"
	"fmt"

	"berth/runtime"
)

// pull is the behaviour of an image's pulls.
type pull struct {
	err  error
	auth *runtime.Auth // the credentials that its registry requires; nil: none
	gate chan struct{} // a pull waits until it is closed; nil: no pull waits
}

// ImageID returns the id of an image on the host; empty if it is not there.
func (e *Engine) ImageID(ctx context.Context, ref string) (id string, err error) {
	err = e.do(ctx, "imageid", runtime.Name{ID: ref}, func() error {
		id = e.core.images[ref]
		return nil
	})
	if err != nil {
		return "", err
	}
	return id, nil
}

// Foreign returns what World.Foreign has set.
func (e *Engine) Foreign(ctx context.Context, imageID string) (text string, err error) {
	err = e.do(ctx, "foreign", runtime.Name{ID: imageID}, func() error {
		text = e.core.otherArch
		return nil
	})
	return text, err
}

// Pull pulls an image.
func (e *Engine) Pull(ctx context.Context, ref string, auth runtime.Auth, progress func(runtime.Progress)) error {
	n := runtime.Name{ID: ref}
	if err := e.core.before(ctx, "pull", n); err != nil {
		return err
	}
	e.core.mu.Lock()
	p := e.core.pulls[ref]
	e.core.mu.Unlock()
	report(progress, runtime.Progress{Layers: 1, Total: 100})
	if err := p.wait(ctx); err != nil {
		return err
	}
	if p.err == nil && p.auth != nil {
		p.err = refuseAuth(*p.auth, auth)
	}
	if p.err != nil {
		return fmt.Errorf("pull image %s: %w", ref, p.err)
	}
	e.Outside.AddImage(ref)
	report(progress, runtime.Progress{Layers: 1, Done: 1, Current: 100, Total: 100})
	return e.core.after("pull", n)
}

// refuseAuth returns why a registry's image cannot be pulled with auth.
func refuseAuth(want, auth runtime.Auth) error {
	switch {
	case auth == want:
		return nil
	case auth != runtime.Auth{} && auth.Host != want.Host:
		return runtime.ErrInvalid
	}
	return runtime.ErrDenied
}

func (p pull) wait(ctx context.Context) error {
	if p.gate == nil {
		return nil
	}
	select {
	case <-p.gate:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func report(progress func(runtime.Progress), p runtime.Progress) {
	if progress != nil {
		progress(p)
	}
}

// AddImage adds an image to the host.
func (w *World) AddImage(ref string) {
	w.core.mu.Lock()
	defer w.core.mu.Unlock()
	w.core.images[ref] = fmt.Sprintf("%s#%d", ref, w.core.pushed[ref])
}

// PushImage moves the tag of an image in its registry to another image.
func PushImage(w *World, ref string) {
	w.core.mu.Lock()
	defer w.core.mu.Unlock()
	w.core.pushed[ref]++
}

// RemoveImage removes an image from the host.
func (w *World) RemoveImage(ref string) {
	w.core.mu.Lock()
	defer w.core.mu.Unlock()
	delete(w.core.images, ref)
}

// RefusePull makes pulls of ref fail with err; nil lets them succeed again.
func (w *World) RefusePull(ref string, err error) {
	w.core.mu.Lock()
	defer w.core.mu.Unlock()
	p := w.core.pulls[ref]
	p.err = err
	w.core.pulls[ref] = p
}

// RequireAuth makes pulls of ref fail with runtime.ErrDenied without these
// credentials, and with runtime.ErrInvalid with credentials for another host.
func (w *World) RequireAuth(ref string, auth runtime.Auth) {
	w.core.mu.Lock()
	defer w.core.mu.Unlock()
	p := w.core.pulls[ref]
	p.auth = &auth
	w.core.pulls[ref] = p
}

// HoldPull makes pulls of ref wait until release is called. Call release once.
func (w *World) HoldPull(ref string) (release func()) {
	w.core.mu.Lock()
	defer w.core.mu.Unlock()
	p := w.core.pulls[ref]
	p.gate = make(chan struct{})
	w.core.pulls[ref] = p
	return func() {
		close(p.gate)
		w.core.mu.Lock()
		defer w.core.mu.Unlock()
		now := w.core.pulls[ref]
		now.gate = nil
		w.core.pulls[ref] = now
	}
}
