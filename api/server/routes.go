package server

import (
	"cmp"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/gofiber/fiber/v2"

	"berth/api/auth"
	"berth/api/intent"
	"berth/api/server/edge"
	v1 "berth/api/v1"
)

// route is one endpoint, and what it takes to use it.
type route struct {
	method, path string
	query        string   // the names of its query parameters, separated by spaces, without token
	scope        v1.Scope // that a token needs; empty: none
	flags        flags
	action       string // in the audit log; empty: it changes nothing
	endpoint
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
func routes(h handlers, d decoder) []route {
	return slices.Concat(nodeRoutes(h, d), volumeRoutes(h, d), backupRoutes(h, d), containerRoutes(h, d))
}

func nodeRoutes(h handlers, d decoder) []route {
	const port, file = "/network/ports/:ip/:port", uiPath + "/:version"
	return []route{
		{get, "/api/v1/public/ping", anyQuery, "", public, "", answers(h.health.ping)},
		{get, "/healthz", anyQuery, "", public, "", answers(h.health.healthz)},
		{get, "/readyz", anyQuery, "", public, "", answers(h.health.readyz)},
		{get, "/openapi.yaml", "", "", public, "", raw(h.health.document)},
		{get, uiPath, anyQuery, "", public, "", raw(h.page.index)},
		{get, file + "/:file", anyQuery, "", public, "", raw(h.page.file)},
		{get, file + "/:folder/:file", anyQuery, "", public, "", raw(h.page.file)},
		{get, metricsPath, anyQuery, v1.ScopeRead, nodeWide | anyAccept, "", raw(h.health.metrics)},

		{post, "/auth/tokens", "", v1.ScopeAdmin, 0, "token.create", takes(d, h.tokens.check, h.tokens.mint)},
		{get, "/auth/tokens", "limit continue", v1.ScopeAdmin, nodeWide, "", answers(h.tokens.list)},
		{remove, "/auth/tokens/:token", "", v1.ScopeAdmin, nodeWide, "token.delete", answers(h.tokens.revoke)},
		{get, "/auth/self", "", "", 0, "", answers(h.self.get)},
		{post, "/auth/tickets", "", "", 0, "ticket.create", answers(h.self.ticket)},

		{post, "/network/ports", "", v1.ScopeNetwork, nodeWide, "port.create", takes(d, h.ports.check, h.ports.add)},
		{get, "/network/ports", "limit continue", v1.ScopeRead, 0, "", raw(h.ports.list)},
		{post, "/network/ports/bulk", "", v1.ScopeNetwork, nodeWide, "port.create", takes(d, h.ports.checkRanges, h.ports.addBulk)},
		{post, "/network/ports/bulk-delete", "", v1.ScopeNetwork, nodeWide, "port.delete", takes(d, h.ports.checkRefs, h.ports.deleteBulk)},
		{get, "/network/ports/random", "ip protocol", v1.ScopeRead, 0, "", answers(h.ports.random)},
		{get, port, "protocol", v1.ScopeRead, 0, "", answers(h.ports.get)},
		{remove, port, "protocol", v1.ScopeNetwork, nodeWide, "port.delete", answers(h.ports.delete)},
		{put, port + "/use", "protocol", v1.ScopeNetwork, nodeWide, "port.use", takes(d, nil, h.ports.use)},

		{get, "/audit", "since limit last container volume actor", v1.ScopeAdmin, nodeWide, "", answers(h.audit.list)},

		{get, "/node", "", v1.ScopeRead, nodeWide, "", answers(h.node.get)},
		{get, "/debug/pprof", "", v1.ScopeAdmin, nodeWide | link, "", raw(h.profiles.get)},
		{get, "/debug/pprof/:profile", "seconds debug gc", v1.ScopeAdmin, nodeWide | link, "", raw(h.profiles.get)},
		{get, "/remote/config", "", v1.ScopeAdmin, nodeWide, "", answers(h.config.get)},
		{post, "/remote/config/reload", "", v1.ScopeAdmin, nodeWide, "config.reload", answers(h.config.reload)},
	}
}

func volumeRoutes(h handlers, d decoder) []route {
	const volume = "/volumes/:volume"
	return []route{
		{post, "/volumes", "", v1.ScopeAdmin, nodeWide, "volume.create", takes(d, h.volumes.check, h.volumes.create)},
		{get, "/volumes", "label limit continue", v1.ScopeRead, 0, "", answers(h.volumes.list)},
		{get, volume, "", v1.ScopeRead, 0, "", answers(h.volumes.get)},
		{patch, volume, "", v1.ScopeAdmin, 0, "volume.update", takes(d, h.volumes.checkChange, h.volumes.patch)},
		{remove, volume, "", v1.ScopeAdmin, 0, "volume.delete", answers(h.volumes.delete)},

		{get, volume + "/files", "path", v1.ScopeFiles, orRead, "", raw(h.files.list)},
		{post, volume + "/files", "", v1.ScopeFiles, 0, "file.write", raw(h.files.write)},
		{remove, volume + "/files", "path", v1.ScopeFiles, 0, "file.delete", answers(h.files.delete)},
		{get, volume + "/files/search", "query path", v1.ScopeFiles, orRead, "", answers(h.files.search)},
		{get, volume + "/files/content", "path", v1.ScopeFiles, orRead | link, "", raw(h.files.download)},
		{put, volume + "/files/content", "path", v1.ScopeFiles, anyAccept, "file.write", raw(h.files.upload)},
		{post, volume + "/folders", "", v1.ScopeFiles, 0, "folder.create", takes(d, nil, h.files.makeFolder)},
		{post, volume + "/copy", "", v1.ScopeFiles, 0, "file.copy", takes(d, nil, h.files.copy)},
		{post, volume + "/rename", "", v1.ScopeFiles, 0, "file.rename", takes(d, nil, h.files.rename)},
		{post, volume + "/chmod", "", v1.ScopeFiles, 0, "file.chmod", takes(d, h.files.checkMode, h.files.chmod)},
		{post, volume + "/compress", "", v1.ScopeFiles, 0, "archive.create", takes(d, h.files.checkCompress, h.files.compress)},
		{post, volume + "/decompress", "", v1.ScopeFiles, 0, "archive.extract", takes(d, nil, h.files.decompress)},
		{post, volume + "/pull", "", v1.ScopeFiles, limitsJobs, "pull.create", h.pulls.enabled(takes(d, h.pulls.check, h.pulls.create))},
		{get, volume + "/pulls", "", v1.ScopeFiles, orRead, "", answers(h.pulls.list)},
		{remove, volume + "/pulls/:pull", "", v1.ScopeFiles, limitsJobs, "pull.cancel", answers(h.pulls.cancel)},
	}
}

func backupRoutes(h handlers, d decoder) []route {
	const backup, policy = "/backups/:backup", "/volumes/:volume/backup-policy"
	return []route{
		{post, "/volumes/:volume/backups", "", v1.ScopeFiles, limitsJobs, "backup.create", takes(d, h.backups.check, h.backups.create)},
		{get, "/volumes/:volume/backups", "limit continue", v1.ScopeRead, 0, "", answers(h.backups.listOfVolume)},
		{get, "/backups", "volume limit continue", v1.ScopeRead, 0, "", answers(h.backups.list)},
		{get, backup, "", v1.ScopeRead, 0, "", answers(h.backups.get)},
		{get, backup + "/content", "", v1.ScopeRead, link, "", raw(h.backups.download)},
		{post, backup + "/restore", "", v1.ScopeAdmin, limitsJobs, "backup.restore", takes(d, h.backups.checkRestore, h.backups.restore)},
		{remove, backup, "", v1.ScopeFiles, limitsJobs, "backup.delete", answers(h.backups.delete)},

		{get, "/store/content", "", v1.ScopeAdmin, nodeWide, "", raw(h.stored.download)},

		{put, policy, "", v1.ScopeFiles, 0, "policy.update", takes(d, h.backups.checkPolicy, h.backups.putPolicy)},
		{get, policy, "", v1.ScopeRead, 0, "", answers(h.backups.policy)},
		{remove, policy, "", v1.ScopeFiles, 0, "policy.delete", answers(h.backups.deletePolicy)},
	}
}

func containerRoutes(h handlers, d decoder) []route {
	const container = "/containers/:id"
	return []route{
		{post, "/containers", "", v1.ScopeAdmin, 0, "container.create", takes(d, h.containers.checkCreate, h.containers.create)},
		{get, "/containers", "label stats limit continue", v1.ScopeRead, 0, "", answers(h.containers.list)},
		{get, container, "view", v1.ScopeRead, 0, "", answers(h.containers.get)},
		{put, container, "dry_run", v1.ScopeAdmin, dryRuns, "container.apply", takes(d, h.containers.checkApply, h.containers.apply)},
		{remove, container, "volume", v1.ScopeAdmin, 0, "container.delete", answers(h.containers.delete)},
		{post, container + "/start", "", v1.ScopePower, limitsStarts, "container.start", answers(h.containers.power(intent.Start))},
		{post, container + "/stop", "", v1.ScopePower, 0, "container.stop", answers(h.containers.power(intent.Stop))},
		{post, container + "/kill", "", v1.ScopePower, 0, "container.kill", answers(h.containers.power(intent.Kill))},
		{post, container + "/restart", "", v1.ScopePower, limitsStarts, "container.restart", answers(h.containers.power(intent.Restart))},
		{post, container + "/reinstall", "", v1.ScopeAdmin, 0, "container.reinstall", takes(d, h.containers.checkReinstall, h.containers.reinstall)},
		{post, container + "/rebind-network", "", v1.ScopeNetwork, 0, "container.rebind", takes(d, h.containers.checkRebind, h.containers.rebindNetwork)},

		{post, container + "/command", "", v1.ScopeConsole, 0, "container.command", takes(d, nil, h.consoles.command)},
		{get, container + "/logs", "tail since before since_line", v1.ScopeRead, 0, "", raw(h.consoles.logs(""))},
		{get, container + "/logs/content", "", v1.ScopeRead, link, "", raw(h.consoles.content)},
		{get, container + "/install-logs", "tail since before since_line", v1.ScopeRead, 0, "", raw(h.consoles.logs(v1.InstallConsole))},
		{get, container + "/stats", "", v1.ScopeRead, 0, "", answers(h.consoles.stats)},
		{get, "/events", "since epoch container volume type limit last", v1.ScopeRead, 0, "", answers(h.events.list)},

		{get, "/ws/:id", "since epoch tail since_line", v1.ScopeRead, upgrade | link, "", raw(h.sockets.container)},
		{get, "/ws", "since epoch tail", v1.ScopeRead, upgrade | link | nodeWide, "", raw(h.sockets.node)},
	}
}

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
	if name == "" {
		return strconv.Quote(name)
	}
	return edge.Clip(name)
}

// Operation is a route as the document describes it.
type Operation struct {
	Method, Path string // the path with its parameters in braces
	Scope        v1.Scope
	In, Out      reflect.Type // of the JSON of the body and of the answer; nil: none
	Public       bool         // needs no token
	Vendor       bool         // needs the vendor header
	TokenInQuery bool
	Idempotent   bool // takes an idempotency key
}

// Operations returns all routes.
func Operations() (list []Operation) {
	for _, r := range routes(handlers{}, decoder{}) {
		list = append(list, Operation{
			Method: r.method, Path: braces(r.path), Scope: r.scope, In: r.in, Out: r.out,
			Public: r.is(public), Vendor: !r.is(public | anyAccept), TokenInQuery: r.is(queryToken),
			Idempotent: r.method == post && r.out != nil,
		})
	}
	return list
}

// braces converts :id to {id}.
func braces(path string) string {
	parts := strings.Split(path, "/")
	for i, part := range parts {
		if name, is := strings.CutPrefix(part, ":"); is {
			parts[i] = "{" + name + "}"
		}
	}
	return strings.Join(parts, "/")
}
