package server

import (
	"context"
	"sync"

	"berth/api/auth"
	"berth/api/limit"
	"berth/api/server/edge"
	"berth/api/server/ws"
)

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
	events     events
	audit      audit
	sockets    sockets
	config     configuration
	node       node
	profiles   profiles
}

func newHandlers(d Deps, a access, all *auth.Sessions, bodies *edge.Bodies) handlers {
	sessions := sessions{all: all, access: a}
	processes := processes{store: d.Store, console: d.Console, sampler: d.Stats, paces: a.paces, commands: limit.NewSlots(limit.Fixed(limit.Commands()))}
	return handlers{
		health:     health{store: d.Store, ready: d.Ready, gatherer: d.Gatherer},
		page:       newOperatorPage(d),
		self:       self{tickets: a.tickets},
		tokens:     tokens{store: d.Store, settings: d.Settings},
		volumes:    volumes{store: d.Store, settings: d.Settings},
		files:      files{store: d.Store, settings: d.Settings, bodies: bodies, files: d.Files, sessions: sessions, permits: newPermits()},
		backups:    backups{store: d.Store, settings: d.Settings, archives: d.Archives, sessions: sessions},
		pulls:      pulls{store: d.Store, settings: d.Settings},
		stored:     storeContent{store: d.Store, sessions: sessions, dir: d.SpoolDir, one: new(sync.Mutex)},
		ports:      ports{store: d.Store},
		containers: containers{store: d.Store, settings: d.Settings, engine: d.Engine, sampler: d.Stats, mounts: d.CheckMount, node: d.Node},
		consoles:   consoles{store: d.Store, hub: d.Hub, sessions: sessions, processes: processes},
		events:     events{store: d.Store, scans: limit.NewSlots(limit.Scans)},
		audit:      audit{store: d.Store},
		sockets: sockets{store: d.Store, access: a, ws: ws.New(ws.Deps{
			Store: d.Store, Settings: d.Settings, Hub: d.Hub, Sessions: all, Containers: processes,
			Registerer: d.Registerer, Log: a.log, Refusal: refusal,
			Forget: a.forget, Pace: func(ctx context.Context, p auth.Principal) error { return a.auditor.pace.Wait(ctx, p.Tenant()) }, Finish: a.auditor.finishMessage,
		})},
		config:   configuration{settings: d.Settings, version: d.Version, log: a.log},
		node:     node{d.Node, d.Store},
		profiles: profiles{settings: d.Settings, busy: &sync.Mutex{}},
	}
}
