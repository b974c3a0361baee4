package server

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"berth/api/auth"
	"berth/api/server/edge"
)

// Server serves the API.
type Server struct {
	front    *edge.Server
	sessions *auth.Sessions
	handlers handlers
	table    []route
}

// New returns a Server, which does nothing until Listen is called.
func New(d Deps) *Server { return newServer(d) }

// newServer returns a Server with more routes than those of the API.
func newServer(d Deps, more ...route) *Server {
	if d.Log == nil {
		d.Log = slog.New(slog.DiscardHandler)
	}
	if d.Registerer == nil {
		d.Registerer = prometheus.NewRegistry()
	}
	s := &Server{sessions: auth.NewSessions(d.Store, d.Settings)}
	auditor := newAuditor(d.Store, d.Registerer)
	s.front = edge.New(edge.Options{
		Settings: d.Settings.Current, Translate: translate, Answered: auditor.end, Registerer: d.Registerer, Log: d.Log,
		ConnsPerIP: d.ConnsPerIP, WrongTokens: d.WrongTokens, HeaderTimeout: d.HeaderTimeout, FailureDelay: d.FailureDelay,
	})
	a := access{store: d.Store, settings: d.Settings, front: s.front, auditor: auditor, paces: newPaces(), tickets: auth.NewTickets(), log: d.Log}
	bodies := edge.NewBodies(d.Settings.Current)
	s.handlers = newHandlers(d, a, s.sessions, bodies)
	s.table = routes(s.handlers, decoder{bodies: bodies, settings: d.Settings, access: a})
	s.register(a, append(s.table, more...))
	return s
}

// register adds routes to the router.
func (s *Server) register(a access, list []route) {
	for _, r := range list {
		s.front.Add(r.method, r.path, a.guard(r))
		switch {
		case r.is(upgrade):
			s.front.Add(http.MethodHead, r.path, a.refuseHead(r))
		case r.method == get:
			s.front.Add(http.MethodHead, r.path, a.guard(r))
		}
	}
	s.front.AddLast(a.unmatched(list))
}

// Listen serves the connections of ln until Shutdown, and closes ln.
func (s *Server) Listen(ln net.Listener) error {
	ctx, cancel := context.WithCancel(context.Background())
	var watching sync.WaitGroup
	watching.Go(func() { s.sessions.Run(ctx) })
	defer watching.Wait()
	defer cancel()
	return s.front.Listen(ln)
}

// Shutdown stops accepting requests, closes every WebSocket with 1001, and waits
// until the requests in flight are answered or ctx ends.
func (s *Server) Shutdown(ctx context.Context) error {
	s.front.Close()
	s.sessions.Close()
	err := s.front.Shutdown(ctx)
	return errors.Join(err, s.sessions.Wait(ctx))
}
