package server

import (
	"bufio"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	netpprof "net/http/pprof"
	"os"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync"

	"github.com/gofiber/fiber/v2"
	"github.com/gofiber/fiber/v2/middleware/adaptor"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"berth/api/auth"
	"berth/api/server/edge"
	v1 "berth/api/v1"
	"berth/store"
)

// node holds the handler that describes the host.
type node struct {
	observed func() v1.Node
	store    *store.Store
}

// get answers with what the daemon has observed of the host, and with the sums of the
// stored containers. It asks neither the host nor the engine.
func (s node) get(c *call) (v1.Node, error) {
	n := s.observed()
	n.Containers = map[v1.Phase]int{}
	for _, p := range v1.Phases() {
		n.Containers[p] = 0
	}
	if n.Disk.Claims == nil {
		n.Disk.Claims = map[string]v1.DiskSpace{}
	}
	n.Engine.Machines = append([]v1.EngineMachine{}, n.Engine.Machines...) // the node's are shared
	tx := s.store.Read()
	list, err := store.NodeConditions(tx)
	if err != nil {
		return n, err
	}
	n.Conditions = append([]v1.Condition{}, list...)
	on := map[string]int{}
	for o := range store.Containers.After(tx, "") {
		n.Containers[v1.ShownPhase(o)]++
		if !o.Meta.Deleted {
			n.Allocated = n.Allocated.Add(o.Spec.Limits)
		}
		if phase := o.Status.Phase; phase.Active() || phase == v1.Installing {
			on[o.Status.Machine]++
		}
	}
	for i := range n.Engine.Machines {
		n.Engine.Machines[i].Containers = on[n.Engine.Machines[i].Name]
	}
	return n, nil
}

// configuration holds the handlers for the daemon's configuration.
type configuration struct {
	settings Settings
	version  string
	log      *slog.Logger
}

// get answers with the configuration. The configured token sees secrets in
// clear; minted tokens see them masked, whatever their scopes.
func (s configuration) get(c *call) (any, error) {
	show := v1.Config.Show
	if c.caller.Configured {
		show = v1.Config.Reveal
	}
	return show(s.settings.Current(), s.version), nil
}

type reloadedBody struct {
	messageBody
	RestartRequired []string `json:"restart_required"`
}

func (s configuration) reload(c *call) (reloadedBody, error) {
	restart, err := s.settings.Reload()
	if err != nil {
		return reloadedBody{}, v1.Errorf(v1.InvalidRequest, "%s", err)
	}
	s.log.Info("the configuration was reloaded", slog.Any("restart_required", restart), slog.String("actor", c.actor().String()))
	return reloadedBody{messageBody{"Configuration reloaded"}, append([]string{}, restart...)}, nil
}

// health holds the handlers of the public routes and of /metrics.
type health struct {
	ready    func() []string
	gatherer prometheus.Gatherer
}

type statusBody struct {
	Status string `json:"status"`
}

type pingBody struct {
	Status  string `json:"status"`
	Message string `json:"message"`
}

func (s health) ping(*call) (pingBody, error) { return pingBody{"ok", "berth is running"}, nil }

func (s health) healthz(*call) (statusBody, error) { return statusBody{"ok"}, nil }

// readyz reports whether the daemon can carry out requests.
func (s health) readyz(*call) (statusBody, error) {
	if reasons := s.ready(); len(reasons) > 0 {
		return statusBody{}, v1.Errorf(v1.Unavailable, "Not ready: %s", strings.Join(reasons, "; "))
	}
	return statusBody{"ok"}, nil
}

// document returns the handler of an OpenAPI document.
func document(text []byte) func(*call) error {
	return func(c *call) error {
		c.Set(fiber.HeaderContentType, "application/yaml")
		return c.Send(text)
	}
}

// metrics answers with all metrics in the Prometheus text format.
func (s health) metrics(c *call) error {
	handler := promhttp.HandlerFor(s.gatherer, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError})
	return serve(c, handler)
}

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
	handler := profileHandler(c.Params("profile"))
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

// storeContent holds the handler for a backup of the daemon's own store.
type storeContent struct {
	store    *store.Store
	sessions sessions
	dir      string // of the file until it was sent; empty: os.TempDir()
	one      *sync.Mutex
}

// download answers with one consistent state of the store. It is written to a file
// without a name first, so that a slow client does not hold a view of the store.
func (s storeContent) download(c *call) error {
	if !s.one.TryLock() {
		return edge.ErrOperations
	}
	defer s.one.Unlock()
	f, err := os.CreateTemp(s.dir, ".berth-store-")
	if err != nil {
		return err
	}
	if err := errors.Join(os.Remove(f.Name()), s.write(f)); err != nil {
		f.Close()
		return err
	}
	done, err := s.sessions.beginDownload(c, func(*store.Tx, auth.Principal) error { return nil })
	if err != nil {
		f.Close()
		return err
	}
	return edge.SendFile(c.Ctx, f, edge.Download{Name: "berth-store.backup"}, done)
}

func (s storeContent) write(f *os.File) error {
	w := bufio.NewWriterSize(f, 1<<20)
	return errors.Join(store.Backup(s.store, w), w.Flush())
}
