package server

import (
	"berth/api/auth"
	"berth/api/server/edge"
	"berth/api/server/ws"
)

// handlers are the handlers of all routes.
type handlers struct {
	health     health
	tokens     tokens
	volumes    volumes
	files      files
	ports      ports
	containers containers
	consoles   consoles
	events     events
	sockets    sockets
	config     configuration
}

func newHandlers(d Deps, a access, all *auth.Sessions) handlers {
	bodies := edge.NewBodies(d.SpoolDir)
	decoder := decoder{bodies: bodies, settings: d.Settings, access: a}
	sessions := sessions{all: all, access: a}
	processes := processes{console: d.Console, sampler: d.Stats, store: d.Store}
	return handlers{
		health:     health{store: d.Store, ready: d.Ready, gatherer: d.Gatherer},
		tokens:     tokens{store: d.Store, settings: d.Settings, decoder: decoder},
		volumes:    volumes{store: d.Store, settings: d.Settings, decoder: decoder},
		files:      files{store: d.Store, settings: d.Settings, decoder: decoder, files: d.Files, sessions: sessions, permits: newPermits(), spoolDir: d.SpoolDir},
		ports:      ports{store: d.Store, decoder: decoder},
		containers: containers{store: d.Store, settings: d.Settings, decoder: decoder, engine: d.Engine, sampler: d.Stats},
		consoles:   consoles{store: d.Store, hub: d.Hub, decoder: decoder, sessions: sessions, processes: processes},
		events:     events{store: d.Store},
		sockets: sockets{store: d.Store, settings: d.Settings, access: a, ws: ws.New(ws.Deps{
			Store: d.Store, Settings: d.Settings, Hub: d.Hub, Sessions: all, Containers: processes,
			Registerer: d.Registerer, Log: a.log, Refusal: refusal,
		})},
		config: configuration{settings: d.Settings, version: d.Version},
	}
}
