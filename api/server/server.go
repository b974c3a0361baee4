package server

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"net"
	"sync"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/prometheus/client_golang/prometheus"

	"berth/api/auth"
	"berth/api/stream"
	"berth/store"
)

// The time that a client has for its part.
const (
	headerTimeout = 10 * time.Second // the first byte of a request, then its headers
	idleTimeout   = 2 * time.Minute  // between two requests
	writeTimeout  = 30 * time.Second // to take one chunk of an answer
)

// headerLimit bounds the headers of a request, in bytes. A path of 4 KiB in a URL
// is three times as long when each byte of it is escaped.
const headerLimit = 16 << 10

// Server answers the interface.
type Server struct {
	deps     Deps
	store    *store.Store
	settings Settings
	hub      *stream.Hub
	log      *slog.Logger
	app      *fiber.App
	metrics  *metrics
	failures *failures
	sessions *auth.Sessions
	underway inFlight
	bodies   *bodies
	spools   budget // of the disk, for files that come as JSON
	permits  permits
	special  []route // those that are not guarded like the rest

	mu       sync.Mutex
	shut     bool // Shutdown was called
	listener *listener
}

// New makes a Server. It does nothing until Listen.
func New(d Deps) *Server {
	if d.Log == nil {
		d.Log = slog.New(slog.DiscardHandler)
	}
	if d.Registerer == nil {
		d.Registerer = prometheus.NewRegistry()
	}
	if d.HeaderTimeout == 0 {
		d.HeaderTimeout = headerTimeout
	}
	if d.FailureDelay == 0 {
		d.FailureDelay = failureDelay
	}
	s := &Server{deps: d, store: d.Store, settings: d.Settings, hub: d.Hub, log: d.Log}
	s.metrics = newMetrics(d.Registerer)
	s.failures = newFailures(d, s.metrics.failures)
	s.sessions = auth.NewSessions(d.Store, d.Settings)
	s.bodies = newBodies(&s.underway)
	s.permits = newPermits()
	s.app = fiber.New(fiber.Config{
		Immutable:                    true, // without it stored strings are overwritten by later requests
		CaseSensitive:                true,
		StreamRequestBody:            true, // limits are ours: readBody and upload
		DisablePreParseMultipartForm: true,
		BodyLimit:                    math.MaxInt,
		ReadBufferSize:               headerLimit,
		ReadTimeout:                  d.HeaderTimeout,
		IdleTimeout:                  idleTimeout,
		DisableStartupMessage:        true,
		ErrorHandler:                 s.fail,
	})
	s.app.Server().CloseOnShutdown = true
	s.app.Server().Handler = canonical(s.app.Server().Handler)
	s.app.Server().ExpectHandler = expect(s.app.Server().Handler)
	s.app.Use(s.observe, s.gate)
	s.register(s.routes())
	return s
}

// register puts routes into the router.
func (s *Server) register(list []route) {
	for _, r := range list {
		s.app.Add(r.method, r.path, s.guard(r))
		if r.method == fiber.MethodGet && !r.upgrade {
			s.app.Add(fiber.MethodHead, r.path, s.guard(r))
		}
		if r.public || r.anyAccept || r.queryToken {
			s.special = append(s.special, r)
		}
	}
}

// Listen answers connections of ln until Shutdown, and closes ln.
func (s *Server) Listen(ln net.Listener) error {
	ctx, cancel := context.WithCancel(context.Background())
	var watching sync.WaitGroup
	watching.Go(func() { s.sessions.Run(ctx) })
	defer watching.Wait()
	defer cancel()
	own := newListener(ln, newConnections(s.deps.ConnsPerIP, s.trusted), s.log)
	if !s.takeListener(own) {
		return own.Close()
	}
	err := s.app.Listener(own)
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// takeListener keeps the listener for Shutdown, unless that has come already.
func (s *Server) takeListener(own *listener) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listener = own
	return !s.shut
}

// stopListening takes no new connections, and will not in any later Listen. The
// library alone would forget it when Listen has only just begun.
func (s *Server) stopListening() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shut = true
	if s.listener != nil {
		_ = s.listener.Close() // told by Listen
	}
}

// Shutdown takes no new requests, closes every WebSocket with 1001, and waits
// until those under way have been answered or ctx ends.
func (s *Server) Shutdown(ctx context.Context) error {
	s.stopListening()
	s.sessions.Close()
	s.underway.end()
	err := s.app.ShutdownWithContext(ctx)
	return errors.Join(err, s.sessions.Wait(ctx))
}
