package server

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/gofiber/fiber/v2"

	v1 "berth/api/v1"
)

const (
	anyQuery   = "*"     // of a route that ignores its query
	tokenQuery = "token" // of a route with the flag queryToken
	labelName  = "label" // the only parameter that may be repeated
)

// parameters returns the names of the query parameters of a route.
func (r route) parameters() []string {
	list := strings.Fields(r.query)
	if r.is(queryToken) {
		list = append(list, tokenQuery)
	}
	return list
}

// checkQuery refuses query parameters that the route does not have, and a second value of
// those that have one.
func (r route) checkQuery(c *fiber.Ctx) error {
	args := c.Context().QueryArgs()
	if args.Len() == 0 || r.query == anyQuery {
		return nil
	}
	var f v1.FieldErrors
	known, seen, unknown := r.parameters(), map[string]bool{}, false
	for key := range args.All() {
		name := string(key)
		switch {
		case !slices.Contains(known, name):
			unknown = true
			f.Add(shown(name), "unknown parameter")
		case seen[name] && name != labelName:
			f.Add(name, "is set twice")
		}
		seen[name] = true
	}
	if !unknown {
		return f.Err()
	}
	list := strings.Join(known, ", ")
	return v1.Errorf(v1.InvalidRequest, "%s; known: %s", f.Unwrap(), cmp.Or(list, "none"))
}

// shown returns the name of an unknown parameter for an error message.
func shown(name string) string {
	const most = 64
	if len(name) > most {
		return name[:most] + "..."
	}
	if name == "" {
		return strconv.Quote(name)
	}
	return name
}
