package server

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"

	"berth/api/auth"
	"berth/api/limit"
	"berth/api/server/edge"
	v1 "berth/api/v1"
	"berth/store"
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
	s := &Server{sessions: auth.NewSessions(d.Store, d.Settings)}
	auditor := newAuditor(d.Store, d.Registerer)
	s.front = edge.New(edge.Options{
		Settings: d.Settings.Current, Registerer: d.Registerer, Log: d.Log, WrongTokens: d.WrongTokens,
	})
	a := access{store: d.Store, settings: d.Settings, front: s.front, auditor: auditor, paces: newPaces(),
		tickets: auth.NewTickets(), log: d.Log,
		reads: limit.NewSlots(limit.Reads)}
	bodies := edge.NewBodies(d.Settings.Current)
	s.handlers = newHandlers(d, a, s.sessions, bodies)
	s.table = routes(s.handlers, decoder{store: d.Store, settings: d.Settings, bodies: bodies, keys: auditor.keys})
	s.register(a, append(s.table, more...))
	return s
}

// register adds routes to the router.
func (s *Server) register(a access, list []route) {
	for _, r := range list {
		serve := a.handler(func(c *call) error { return a.serve(c, r) })
		s.front.Add(r.method, r.path, serve)
		switch {
		case r.is(upgrade):
			s.front.Add(http.MethodHead, r.path, a.handler(func(c *call) error { return a.refuseHead(c, r) }))
		case r.method == get:
			s.front.Add(http.MethodHead, r.path, serve)
		}
	}
	s.front.AddLast(a.handler(func(c *call) error { return a.refuse(c, list) }))
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

// handlers are the handlers of all routes.
type handlers struct {
	health     health
	page       operatorPage
	self       self
	tokens     tokens
	volumes    volumes
	files      files
	backups    backups
	pulls      pulls
	stored     storeContent
	ports      ports
	containers containers
	consoles   consoles
	schedules  schedules
	transfers  transfers
	arrivals   arrivals
	events     events
	audit      audit
	sockets    *sockets
	config     configuration
	node       node
	profiles   profiles
}

func newHandlers(d Deps, a access, all *auth.Sessions, bodies *edge.Bodies) handlers {
	sessions, permits := sessions{all: all, access: a}, newPermits()
	processes := processes{store: d.Store, console: d.Console, sampler: d.Stats, paces: a.paces, commands: limit.NewSlots(limit.Commands)}
	containers := containers{store: d.Store, settings: d.Settings, engine: d.Engine, sampler: d.Stats, mounts: d.CheckMount, node: d.Node}
	return handlers{
		health:     health{ready: d.Ready, gatherer: d.Gatherer},
		page:       newOperatorPage(d),
		self:       self{tickets: a.tickets},
		tokens:     tokens{store: d.Store, settings: d.Settings},
		volumes:    volumes{store: d.Store, settings: d.Settings},
		files:      files{store: d.Store, settings: d.Settings, bodies: bodies, files: d.Files, sessions: sessions, permits: permits, log: a.log},
		backups:    backups{store: d.Store, settings: d.Settings, archives: d.Archives, sessions: sessions, permits: permits},
		pulls:      pulls{store: d.Store, settings: d.Settings},
		stored:     storeContent{store: d.Store, sessions: sessions, dir: d.SpoolDir, one: new(sync.Mutex)},
		ports:      ports{store: d.Store},
		containers: containers,
		consoles:   consoles{store: d.Store, hub: d.Hub, sessions: sessions, processes: processes, history: permits.history},
		schedules:  schedules{store: d.Store, settings: d.Settings, archives: d.Archives},
		transfers:  transfers{store: d.Store, settings: d.Settings, own: d.OwnAddress},
		arrivals: arrivals{store: d.Store, settings: d.Settings, archives: d.Archives, containers: containers, trees: d.Trees, sessions: sessions,
			dir: d.SpoolDir, spool: make(chan struct{}, 1)},
		events:   events{store: d.Store, scans: limit.NewSlots(limit.Scans)},
		audit:    audit{store: d.Store},
		sockets:  newSockets(d, a, all, processes, permits.history),
		config:   configuration{settings: d.Settings, version: d.Version, log: a.log},
		node:     node{d.Node, d.Store},
		profiles: profiles{settings: d.Settings, busy: &sync.Mutex{}},
	}
}

// known wraps an error in the v1.Error that clients receive for it, if it has one.
func known(err error) error {
	var refused *v1.Error
	switch {
	case errors.As(err, &refused):
		return err
	case errors.Is(err, context.Canceled): // the client is gone, or the server shuts down
		return edge.ErrUnavailable
	case errors.Is(err, store.ErrDiskFull):
		return errors.Join(v1.ErrStoreDiskFull, err)
	case errors.Is(err, store.ErrFailed), errors.Is(err, store.ErrClosed), errors.Is(err, store.ErrTooBig):
		return errors.Join(v1.ErrStoreFailed, err)
	}
	return err
}

// refusal returns the text that a client receives for an error. The caller logs the
// error if log is true.
func refusal(err error) (text string, log bool) {
	refused, log := edge.Refusal(known(err))
	return refused.Message, log
}
