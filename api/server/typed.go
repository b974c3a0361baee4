package server

import (
	"context"
	"reflect"
	"time"

	"github.com/gofiber/fiber/v2"

	"berth/api/auth"
	"berth/api/limit"
	"berth/api/server/edge"
	v1 "berth/api/v1"
	"berth/store"
)

// call is a request, from handler until its answer is complete. See edge.Call. It has no principal
// until admit.
type call struct {
	*fiber.Ctx
	caller      auth.Principal
	recheck     func(tx *store.Tx) error // see access.bind
	uid         string                   // of the container in its path
	request     *store.Request           // what it changes, with its entry in the audit log; nil: it has none
	session     bool                     // it has a session, which ends later than the handler
	fieldErrors v1.FieldErrors           // of its body
	created     bool                     // it is answered with 201
}

// endpoint is the handler of a route, with the types of the JSON that it takes and answers.
type endpoint struct {
	handle  func(*call) error
	in, out reflect.Type // nil: none, or no JSON
}

// raw returns an endpoint that reads and answers by itself.
func raw(handle func(*call) error) endpoint {
	return endpoint{handle: handle}
}

// answers returns an endpoint without a body, which answers with what get returns.
func answers[Out any](get func(*call) (Out, error)) endpoint {
	return endpoint{out: reflect.TypeFor[Out](), handle: func(c *call) error {
		out, err := get(c)
		return c.answer(out, err)
	}}
}

// takes returns an endpoint that decodes a body, and answers with what do returns. A client
// receives every error of a body at once: those of its JSON, and those that check adds to
// call.fieldErrors. An error that check returns precedes them. check may set defaults, or be nil.
func takes[In, Out any](d decoder, check func(*call, *In) error, do func(*call, In) (Out, error)) endpoint {
	return endpoint{in: reflect.TypeFor[In](), out: reflect.TypeFor[Out](), handle: func(c *call) error {
		var in In
		if err := d.decode(c, &in); err != nil {
			return err
		}
		if check != nil {
			if err := check(c, &in); err != nil {
				return err
			}
		}
		if err := c.fieldErrors.Err(); err != nil {
			return err
		}
		out, err := do(c, in)
		return c.answer(out, err)
	}}
}

// checkIn returns the check of a request that has waited.
func (c *call) checkIn(db *store.Store) func() error {
	return func() error { return c.recheck(db.Read()) }
}

// bounded returns the context of a request, which also ends after a time. See edge.Context.
func (c *call) bounded(d time.Duration) (ctx context.Context, end func()) {
	ctx, leave := edge.Context(c.Ctx)
	ctx, cancel := context.WithTimeout(ctx, d)
	return ctx, func() { cancel(); leave() }
}

// claim is that of a request on an object, such as a volume.
func (c *call) claim(db *store.Store, object string) limit.Claim {
	return limit.Claim{Tenant: c.caller.Tenant(), Object: object, Check: c.checkIn(db)}
}

// answer sends the answer of a handler as JSON, or returns its error.
func (c *call) answer(out any, err error) error {
	if err != nil {
		return err
	}
	return edge.Reply(c.Ctx, c.success(), out)
}

// success returns the status of an answer that is no error.
func (c *call) success() int {
	if c.created {
		return fiber.StatusCreated
	}
	return fiber.StatusOK
}

// actor returns who sent the request.
func (c *call) actor() v1.Actor { return edge.CallOf(c.Ctx).Actor }

// decoder reads and decodes JSON bodies.
type decoder struct {
	store    *store.Store
	settings auth.Settings
	bodies   *edge.Bodies
	keys     *idempotency
}

// decode reads the JSON body of a request into out and adds every field error to c.fieldErrors. If the
// body is not a JSON object, decode returns that single error.
func (d decoder) decode(c *call, out any) error {
	body, err := d.bodies.Read(c.Ctx, int64(d.settings.Current().Server.BodyLimit))
	if err != nil {
		return err
	}
	tx := d.store.Read() // the body may have taken longer than the token was valid
	if c.caller, err = c.caller.Verify(tx, d.settings.Current().Authorization); err != nil {
		return err
	}
	if err := c.recheck(tx); err != nil {
		return err
	}
	if err := d.keys.begin(c, body); err != nil {
		return err
	}
	if !d.bodies.Unmarshal(body, out, &c.fieldErrors) {
		return c.fieldErrors.Err()
	}
	return nil
}
