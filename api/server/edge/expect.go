package edge

import (
	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"
)

// Locals of a request that waits for 100 Continue.
const (
	expectKey   = "expect"   // the client has not sent the body yet
	continueKey = "continue" // the request has passed every check before the body
)

// expect answers "Expect: 100-continue". It runs the middleware of next without
// the handler, so that the client is asked for its body only after the checks of
// token, vendor header, route and scope. If one of them fails, the client receives
// that error instead.
func expect(next fasthttp.RequestHandler) func(*fasthttp.RequestCtx) int {
	return func(ctx *fasthttp.RequestCtx) int {
		ctx.SetUserValue(expectKey, true)
		next(ctx)
		passed, _ := ctx.UserValue(continueKey).(bool)
		ctx.ResetUserValues()
		if passed {
			ctx.Response.Reset()
			return fasthttp.StatusContinue
		}
		if own, is := ctx.Conn().(*conn); is { // the client may be sending its body already
			own.SetLinger(true)
		}
		return ctx.Response.StatusCode()
	}
}

// Expects reports whether a request waits for 100 Continue. If so it records that
// the request has passed every check, and the caller must not run the handler.
func Expects(c *fiber.Ctx) bool {
	waits, _ := c.Locals(expectKey).(bool)
	if waits {
		c.Locals(continueKey, true)
	}
	return waits
}
