package server

import (
	"bytes"
	"encoding/hex"
	"slices"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"
)

// canonical brings a request into the one form that the router knows. Then the
// checks of every request come in their order, also for odd ones.
func canonical(next fasthttp.RequestHandler) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		if !slices.Contains(fiber.DefaultMethods, string(ctx.Method())) {
			// The router answers such a method with a text of its own. TRACE is
			// one that it knows and that no route has.
			ctx.Request.Header.SetMethod(fiber.MethodTrace)
		}
		if path := ctx.URI().PathOriginal(); bytes.IndexByte(path, '%') >= 0 {
			ctx.URI().SetPathBytes(plainPath(path))
		}
		next(ctx)
	}
}

// plainPath decodes the escapes of characters that need none, so that
// /%63ontainers is /containers. All others stay for param, a % among them:
// nothing is decoded twice, and no segment becomes two.
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

// unreserved says whether a character means the same with and without an escape.
func unreserved(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || bytes.IndexByte([]byte("-._~"), c) >= 0
}
