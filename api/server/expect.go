package server

import (
	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"
)

// The keys of a request that waits for 100 Continue.
const (
	expectKey   = "expect"   // its client has not sent the body yet
	continueKey = "continue" // every check before the body was passed
)

// expect answers "Expect: 100-continue". The request passes through next up to
// its handler: so the client is asked for its body only once its token, vendor
// header, route and scope are known to do. Otherwise it has its answer.
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
		if own, is := ctx.Conn().(*conn); is { // it may be sending already
			own.linger.Store(true)
		}
		return ctx.Response.StatusCode()
	}
}

// expects reports whether a request waits for 100 Continue, and passes it on.
func expects(c *fiber.Ctx) bool {
	waits, _ := c.Locals(expectKey).(bool)
	if waits {
		c.Locals(continueKey, true)
	}
	return waits
}
