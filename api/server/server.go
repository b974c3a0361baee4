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

// Time limits for clients.
const (
	headerTimeout = 10 * time.Second // to the first byte of a request, then to the end of its headers
	idleTimeout   = 2 * time.Minute  // between two requests
	writeTimeout  = 30 * time.Second // to receive one chunk of an answer
)

// headerLimit bounds the request line and headers, in bytes. A file path of 4 KiB
// takes 12 KiB in a URL if each byte of it is percent-encoded.
const headerLimit = 16 << 10

// Server serves the API.
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
	spools   budget // disk space for files that come as JSON
	permits  permits
	special  []route // routes with checks of their own

	mu       sync.Mutex
	shut     bool // Shutdown was called
	listener *listener
}

// New returns a Server, which does nothing until Listen is called.
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
		Immutable:                    true, // otherwise later requests overwrite the memory of stored strings
		CaseSensitive:                true,
		StreamRequestBody:            true, // bodies.read and upload bound the bodies
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

// register adds routes to the router.
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

// Listen serves the connections of ln until Shutdown, and closes ln.
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

// takeListener stores the listener for Shutdown. It returns false if Shutdown was
// called already.
func (s *Server) takeListener(own *listener) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listener = own
	return !s.shut
}

// stopListening closes the listener, and makes a later Listen return at once. The
// HTTP library alone would miss a shutdown that comes just before Listen.
func (s *Server) stopListening() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shut = true
	if s.listener != nil {
		_ = s.listener.Close() // Listen returns the error
	}
}

// Shutdown stops accepting requests, closes every WebSocket with 1001, and waits
// until the requests in flight are answered or ctx ends.
func (s *Server) Shutdown(ctx context.Context) error {
	s.stopListening()
	s.sessions.Close()
	s.underway.end()
	err := s.app.ShutdownWithContext(ctx)
	return errors.Join(err, s.sessions.Wait(ctx))
}
