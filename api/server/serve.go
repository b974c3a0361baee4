package server

import (
	"errors"

	"github.com/gofiber/fiber/v2"

	"berth/api/auth"
	"berth/api/server/edge"
)

// serve answers a request for a route: all of its way from package edge, which has bounded its connection and
// headers and checked its origin, to its endpoint, which decodes the body, checks it, and answers.
func (a access) serve(c *call, r route) error {
	open := a.isPublic(r)
	if !open {
		if err := a.admit(c, r); err != nil { // token, actor, pace, entry in the audit log, vendor header
			return err
		}
	}
	edge.CallOf(c.Ctx).Route = r.path
	if !open && !r.allows(c.caller) {
		return auth.ErrScope
	}
	if err := r.checkQuery(c.Ctx); err != nil {
		return err
	}
	if open {
		return r.handle(c)
	}
	if err := a.spend(c); err != nil {
		return err
	}
	// From here on the route answers, so a single-use token is used, whatever the answer.
	if caller := c.caller; caller.SingleUse {
		defer func() {
			if !c.session {
				a.forget(caller)
			}
		}()
	}
	if r.in == nil && r.out != nil { // with a body decode does it; a raw route takes no key
		if err := a.auditor.keys.begin(c, nil); err != nil {
			return err
		}
	}
	if r.method == get && (r.out != nil || r.is(filtered)) && c.caller.Tenant() != "" {
		leave, err := c.enter(a.store, "", a.reads)
		if err != nil {
			return err
		}
		defer leave()
	}
	if r.is(limitsStarts) {
		if err := a.paces.start(c.caller, c.Params("id")); err != nil {
			return err
		}
	}
	if r.is(limitsJobs) {
		if err := a.paces.job(c.caller); err != nil {
			return err
		}
	}
	return r.handle(c)
}

// handler returns the handler of the HTTP library for serve and its kind, whose error is the answer if they do not
// answer. The entry in the audit log is complete before the answer is sent.
func (a access) handler(serve func(*call) error) fiber.Handler {
	return func(ctx *fiber.Ctx) error {
		c := &call{Ctx: ctx}
		err := a.front.Recovered(ctx, func() error { return serve(c) })
		var stored replay
		switch {
		case errors.As(err, &stored):
			err = stored.send(ctx)
		case err != nil:
			err = a.front.Fail(ctx, known(err))
		}
		failed := a.auditor.end(c)
		if failed != nil && c.Response().StatusCode() < fiber.StatusInternalServerError { // the first cause is answered
			err = a.front.Fail(ctx, failed)
		}
		return err
	}
}
