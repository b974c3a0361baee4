package edge

import (
	"bytes"
	"encoding/hex"
	"slices"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"
)

// canonical normalizes the method and the path of a request before the router
// sees them, so that unusual requests pass the same checks in the same order.
func canonical(next fasthttp.RequestHandler) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		if !slices.Contains(fiber.DefaultMethods, string(ctx.Method())) {
			// Fiber answers unknown methods itself, before any middleware. It
			// knows TRACE, and no route uses it.
			ctx.Request.Header.SetMethod(fiber.MethodTrace)
		}
		if path := ctx.URI().PathOriginal(); bytes.IndexByte(path, '%') >= 0 {
			ctx.URI().SetPathBytes(plainPath(path))
		}
		next(ctx)
	}
}

// plainPath decodes the percent-encoding of unreserved characters (RFC 3986), so
// that /%63ontainers is /containers. It leaves all other escapes, %25 and %2F
// included, to param: nothing is decoded twice, and no segment becomes two.
func plainPath(path []byte) []byte {
	plain := make([]byte, 0, len(path))
	for len(path) > 0 {
		b, rest := path[0], path[1:]
		if b == '%' && len(rest) >= 2 {
			var c [1]byte
			if _, err := hex.Decode(c[:], rest[:2]); err == nil && unreserved(c[0]) {
				b, rest = c[0], rest[2:]
			}
		}
		plain, path = append(plain, b), rest
	}
	return plain
}

// unreserved reports whether c is unreserved in RFC 3986: it means the same with
// and without percent-encoding.
func unreserved(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || bytes.IndexByte([]byte("-._~"), c) >= 0
}
