package server

import (
	"net/http"
	"slices"

	"github.com/gofiber/fiber/v2"

	"berth/api/auth"
	"berth/api/intent"
	v1 "berth/api/v1"
)

// route is one endpoint, and what it takes to use it.
type route struct {
	method, path string
	query        string   // the names of its query parameters, separated by spaces, without token
	scope        v1.Scope // that a token needs; empty: none
	flags        flags
	handle       fiber.Handler
}

type flags uint16

const (
	public       flags = 1 << iota // no token, no vendor header
	anyAccept                      // no vendor header
	queryToken                     // the token may be the parameter token of the URL
	nodeWide                       // not for a token that is limited to some containers
	orRead                         // scope read is enough as well
	upgrade                        // a WebSocket
	dryRuns                        // with ?dry_run=true it changes nothing
	bodiless                       // it reads no body
	limitsStarts                   // it may start or create the container of its path
	limitsJobs                     // it begins or removes a backup, a restore or a download

	link = anyAccept | queryToken // usable from a browser's link
)

func (r route) is(f flags) bool { return r.flags&f != 0 }

// allows reports whether a caller may use the route.
func (r route) allows(p auth.Principal) bool {
	if r.is(nodeWide) && p.Restricted() {
		return false
	}
	return r.scope == "" || p.HasScope(r.scope) || r.is(orRead) && p.HasScope(v1.ScopeRead)
}

const (
	get    = http.MethodGet
	post   = http.MethodPost
	put    = http.MethodPut
	patch  = http.MethodPatch
	remove = http.MethodDelete
)

const metricsPath = "/metrics"

// routes returns the table of all endpoints.
func routes(h handlers) []route {
	return slices.Concat(nodeRoutes(h), volumeRoutes(h), backupRoutes(h), containerRoutes(h))
}

func nodeRoutes(h handlers) []route {
	const port, file = "/network/ports/:ip/:port", uiPath + "/:version"
	return []route{
		{get, "/api/v1/public/ping", anyQuery, "", public, h.health.ping},
		{get, "/healthz", anyQuery, "", public, h.health.healthz},
		{get, "/readyz", anyQuery, "", public, h.health.readyz},
		{get, "/openapi.yaml", "", "", public, h.health.document},
		{get, uiPath, anyQuery, "", public, h.page.index},
		{get, file + "/:file", anyQuery, "", public, h.page.file},
		{get, file + "/:folder/:file", anyQuery, "", public, h.page.file},
		{get, metricsPath, anyQuery, v1.ScopeRead, nodeWide | anyAccept, h.health.metrics},

		{post, "/auth/tokens", "", v1.ScopeAdmin, 0, h.tokens.mint},
		{get, "/auth/tokens", "limit continue", v1.ScopeAdmin, nodeWide, h.tokens.list},
		{remove, "/auth/tokens/:token", "", v1.ScopeAdmin, nodeWide, h.tokens.revoke},
		{get, "/auth/self", "", "", 0, h.self.get},
		{post, "/auth/tickets", "", "", bodiless, h.self.ticket},

		{post, "/network/ports", "", v1.ScopeNetwork, nodeWide, h.ports.add},
		{get, "/network/ports", "limit continue", v1.ScopeRead, 0, h.ports.list},
		{post, "/network/ports/bulk", "", v1.ScopeNetwork, nodeWide, h.ports.addBulk},
		{post, "/network/ports/bulk-delete", "", v1.ScopeNetwork, nodeWide, h.ports.deleteBulk},
		{get, "/network/ports/random", "ip protocol", v1.ScopeRead, 0, h.ports.random},
		{get, port, "protocol", v1.ScopeRead, 0, h.ports.get},
		{remove, port, "protocol", v1.ScopeNetwork, nodeWide, h.ports.delete},
		{put, port + "/use", "protocol", v1.ScopeNetwork, nodeWide, h.ports.use},

		{get, "/audit", "since limit last container volume actor", v1.ScopeAdmin, nodeWide, h.audit.list},

		{get, "/node", "", v1.ScopeRead, nodeWide, h.node.get},
		{get, "/debug/pprof", "", v1.ScopeAdmin, nodeWide | link, h.profiles.get},
		{get, "/debug/pprof/:profile", "seconds debug gc", v1.ScopeAdmin, nodeWide | link, h.profiles.get},
		{get, "/remote/config", "", v1.ScopeAdmin, nodeWide, h.config.get},
		{post, "/remote/config/reload", "", v1.ScopeAdmin, nodeWide | bodiless, h.config.reload},
	}
}

func volumeRoutes(h handlers) []route {
	const volume = "/volumes/:volume"
	return []route{
		{post, "/volumes", "", v1.ScopeAdmin, nodeWide, h.volumes.create},
		{get, "/volumes", "label limit continue", v1.ScopeRead, 0, h.volumes.list},
		{get, volume, "", v1.ScopeRead, 0, h.volumes.get},
		{patch, volume, "", v1.ScopeAdmin, 0, h.volumes.patch},
		{remove, volume, "", v1.ScopeAdmin, 0, h.volumes.delete},

		{get, volume + "/files", "path", v1.ScopeFiles, orRead, h.files.list},
		{post, volume + "/files", "", v1.ScopeFiles, 0, h.files.write},
		{remove, volume + "/files", "path", v1.ScopeFiles, 0, h.files.delete},
		{get, volume + "/files/search", "query path", v1.ScopeFiles, orRead, h.files.search},
		{get, volume + "/files/content", "path", v1.ScopeFiles, orRead | link, h.files.download},
		{put, volume + "/files/content", "path", v1.ScopeFiles, anyAccept, h.files.upload},
		{post, volume + "/folders", "", v1.ScopeFiles, 0, h.files.makeFolder},
		{post, volume + "/copy", "", v1.ScopeFiles, 0, h.files.copy},
		{post, volume + "/rename", "", v1.ScopeFiles, 0, h.files.rename},
		{post, volume + "/chmod", "", v1.ScopeFiles, 0, h.files.chmod},
		{post, volume + "/compress", "", v1.ScopeFiles, 0, h.files.compress},
		{post, volume + "/decompress", "", v1.ScopeFiles, 0, h.files.decompress},
		{post, volume + "/pull", "", v1.ScopeFiles, limitsJobs, h.pulls.create},
		{get, volume + "/pulls", "", v1.ScopeFiles, orRead, h.pulls.list},
		{remove, volume + "/pulls/:pull", "", v1.ScopeFiles, limitsJobs, h.pulls.cancel},
	}
}

func backupRoutes(h handlers) []route {
	const backup, policy = "/backups/:backup", "/volumes/:volume/backup-policy"
	return []route{
		{post, "/volumes/:volume/backups", "", v1.ScopeFiles, limitsJobs, h.backups.create},
		{get, "/volumes/:volume/backups", "limit continue", v1.ScopeRead, 0, h.backups.listOfVolume},
		{get, "/backups", "volume limit continue", v1.ScopeRead, 0, h.backups.list},
		{get, backup, "", v1.ScopeRead, 0, h.backups.get},
		{get, backup + "/content", "", v1.ScopeRead, link, h.backups.download},
		{post, backup + "/restore", "", v1.ScopeAdmin, limitsJobs, h.backups.restore},
		{remove, backup, "", v1.ScopeFiles, limitsJobs, h.backups.delete},

		{get, "/store/content", "", v1.ScopeAdmin, nodeWide, h.stored.download},

		{put, policy, "", v1.ScopeFiles, 0, h.policies.put},
		{get, policy, "", v1.ScopeRead, 0, h.policies.get},
		{remove, policy, "", v1.ScopeFiles, 0, h.policies.delete},
	}
}

func containerRoutes(h handlers) []route {
	const container = "/containers/:id"
	return []route{
		{post, "/containers", "", v1.ScopeAdmin, 0, h.containers.create},
		{get, "/containers", "label stats limit continue", v1.ScopeRead, 0, h.containers.list},
		{get, container, "view", v1.ScopeRead, 0, h.containers.get},
		{put, container, "dry_run", v1.ScopeAdmin, dryRuns, h.containers.apply},
		{remove, container, "volume", v1.ScopeAdmin, 0, h.containers.delete},
		{post, container + "/start", "", v1.ScopePower, bodiless | limitsStarts, h.containers.power(intent.Start)},
		{post, container + "/stop", "", v1.ScopePower, bodiless, h.containers.power(intent.Stop)},
		{post, container + "/kill", "", v1.ScopePower, bodiless, h.containers.power(intent.Kill)},
		{post, container + "/restart", "", v1.ScopePower, bodiless | limitsStarts, h.containers.power(intent.Restart)},
		{post, container + "/reinstall", "", v1.ScopeAdmin, 0, h.containers.reinstall},
		{post, container + "/rebind-network", "", v1.ScopeNetwork, 0, h.containers.rebindNetwork},

		{post, container + "/command", "", v1.ScopeConsole, 0, h.consoles.command},
		{get, container + "/logs", "tail since before since_line", v1.ScopeRead, 0, h.consoles.logs("")},
		{get, container + "/logs/content", "", v1.ScopeRead, link, h.consoles.content},
		{get, container + "/install-logs", "tail since before since_line", v1.ScopeRead, 0, h.consoles.logs(v1.InstallConsole)},
		{get, container + "/stats", "", v1.ScopeRead, 0, h.consoles.stats},
		{get, "/events", "since epoch container volume type limit last", v1.ScopeRead, 0, h.events.list},

		{get, "/ws/:id", "since epoch tail since_line", v1.ScopeRead, upgrade | link, h.sockets.container},
		{get, "/ws", "since epoch tail", v1.ScopeRead, upgrade | link | nodeWide, h.sockets.node},
	}
}
