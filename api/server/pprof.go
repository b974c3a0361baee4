package server

import (
	"fmt"
	"net/http"
	netpprof "net/http/pprof"
	"runtime/pprof"
	"strconv"
	"sync"

	"github.com/gofiber/fiber/v2"
	"github.com/gofiber/fiber/v2/middleware/adaptor"

	"berth/api/auth"
	"berth/api/server/edge"
	v1 "berth/api/v1"
)

// maxProfile bounds the duration of one profile in seconds.
const maxProfile = 60

// profiles holds the handler of Go's profiles of the daemon.
type profiles struct {
	settings auth.Settings
	busy     *sync.Mutex // held while a profile is recorded: a second one would only disturb it
}

// get answers with a profile, or with the list of profiles. A profile is recorded for at
// most maxProfile seconds, and one at a time.
func (s profiles) get(c *call) error {
	if !s.settings.Current().Debug.Pprof {
		return edge.ErrRoute
	}
	if text := c.Query("seconds"); text != "" {
		if n, err := strconv.Atoi(text); err != nil || n < 1 || n > maxProfile {
			return v1.Errorf(v1.InvalidRequest, "seconds: must be between 1 and %d", maxProfile)
		}
	}
	if !s.busy.TryLock() {
		c.Set(fiber.HeaderRetryAfter, "1")
		return v1.Errorf(edge.ErrOperations.Code, "A profile is being recorded; retry when it has ended")
	}
	defer s.busy.Unlock()
	handler := profileHandler(c.param("profile"))
	if handler == nil {
		return edge.ErrRoute
	}
	return serve(c, handler)
}

// serve answers with the response of a handler of net/http. Its failure is an internal error.
func serve(c *call, handler http.Handler) error {
	if err := adaptor.HTTPHandler(handler)(c.Ctx); err != nil {
		return err
	}
	if status := c.Response().StatusCode(); status >= http.StatusBadRequest {
		return fmt.Errorf("%s: status %d: %s", c.Path(), status, c.Response().Body())
	}
	return nil
}

// profileHandler returns the handler of a profile, or nil if there is no such profile. An
// empty name is the list.
func profileHandler(name string) http.HandlerFunc {
	switch name {
	case "cmdline":
		return netpprof.Cmdline
	case "profile":
		return netpprof.Profile
	case "symbol":
		return netpprof.Symbol
	case "trace":
		return netpprof.Trace
	}
	if name != "" && pprof.Lookup(name) == nil {
		return nil
	}
	return netpprof.Index
}
