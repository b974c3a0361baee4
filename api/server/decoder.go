package server

import (
	"github.com/gofiber/fiber/v2"

	"berth/api/auth"
	"berth/api/server/edge"
	v1 "berth/api/v1"
)

// decoder reads and decodes JSON bodies.
type decoder struct {
	bodies   *edge.Bodies
	settings auth.Settings
	access   access
}

// decode reads the JSON body of a request into out and adds every field error to
// f. It returns nil even if f has errors: the caller lets package intent add its
// own to f, so that the client receives all of them at once. If the body is not a
// JSON object, decode returns that single error.
func (d decoder) decode(c *fiber.Ctx, out any, f *v1.FieldErrors) error {
	raw, err := d.bodies.Read(c, int64(d.settings.Current().Server.BodyLimit))
	if err != nil {
		return err
	}
	if err := d.access.verify(c); err != nil {
		return err
	}
	if err := d.access.auditor.keys.begin(c, raw); err != nil {
		return err
	}
	if !d.bodies.Unmarshal(raw, out, f) {
		return f.Err()
	}
	return nil
}

// refused returns the errors of a body, or err if it has none. Package intent
// validates a body when it stores the request; a handler validates only a body that
// is refused for another reason, so that the client receives every error of its
// fields, and receives them before err.
func refused(f v1.FieldErrors, err error) error {
	if f.Any() {
		return f
	}
	return err
}

// decodeStrict decodes a body whose fields need no further validation, and
// returns its field errors.
func (d decoder) decodeStrict(c *fiber.Ctx, out any) error {
	var f v1.FieldErrors
	if err := d.decode(c, out, &f); err != nil {
		return err
	}
	return f.Err()
}
