package server

import (
	"cmp"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/gofiber/fiber/v2"

	"berth/api"
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
	limitsStarts                   // it may start the container of its path
	limitsJobs                     // it begins or removes a backup, a restore or a download
	filtered                       // it reads all of a kind to show a tenant its own

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
	return slices.Concat(nodeRoutes(h, d), volumeRoutes(h, d), backupRoutes(h, d), containerRoutes(h, d), transferRoutes(h, d))
}

func nodeRoutes(h handlers, d decoder) []route {
	const port, file = "/network/ports/:ip/:port", uiPath + "/:version"
	return []route{
		{method: get, path: "/api/v1/public/ping", query: anyQuery, flags: public,
			endpoint: answers(h.health.ping)},
		{method: get, path: "/healthz", query: anyQuery, flags: public,
			endpoint: answers(h.health.healthz)},
		{method: get, path: "/readyz", query: anyQuery, flags: public,
			endpoint: answers(h.health.readyz)},
		{method: get, path: "/openapi.yaml", flags: public,
			endpoint: raw(document(api.Document))},
		{method: get, path: "/openapi-3.0.yaml", flags: public,
			endpoint: raw(document(api.Document30))},
		{method: get, path: uiPath, query: anyQuery, flags: public,
			endpoint: raw(h.page.index)},
		{method: get, path: file + "/:file", query: anyQuery, flags: public,
			endpoint: raw(h.page.file)},
		{method: get, path: file + "/:folder/:file", query: anyQuery, flags: public,
			endpoint: raw(h.page.file)},
		{method: get, path: metricsPath, query: anyQuery, scope: v1.ScopeRead, flags: nodeWide | anyAccept,
			endpoint: raw(h.health.metrics)},

		{method: post, path: "/auth/tokens", scope: v1.ScopeAdmin, action: "token.create",
			endpoint: takes(d, h.tokens.check, h.tokens.mint)},
		{method: get, path: "/auth/tokens", query: "limit continue", scope: v1.ScopeAdmin, flags: nodeWide,
			endpoint: answers(h.tokens.list)},
		{method: remove, path: "/auth/tokens/:token", scope: v1.ScopeAdmin, flags: nodeWide, action: "token.delete",
			endpoint: answers(h.tokens.revoke)},
		{method: get, path: "/auth/self",
			endpoint: answers(h.self.get)},
		{method: post, path: "/auth/tickets", action: "ticket.create",
			endpoint: answers(h.self.ticket)},

		{method: post, path: "/network/ports", scope: v1.ScopeNetwork, flags: nodeWide, action: "port.create",
			endpoint: takes(d, h.ports.check, h.ports.add)},
		{method: get, path: "/network/ports", query: "limit continue", scope: v1.ScopeRead, flags: filtered,
			endpoint: raw(h.ports.list)},
		{method: post, path: "/network/ports/bulk", scope: v1.ScopeNetwork, flags: nodeWide, action: "port.create",
			endpoint: takes(d, h.ports.checkRanges, h.ports.addBulk)},
		{method: post, path: "/network/ports/bulk-delete", scope: v1.ScopeNetwork, flags: nodeWide, action: "port.delete",
			endpoint: takes(d, h.ports.checkRefs, h.ports.deleteBulk)},
		{method: get, path: "/network/ports/random", query: "ip protocol", scope: v1.ScopeRead,
			endpoint: answers(h.ports.random)},
		{method: get, path: port, query: "protocol", scope: v1.ScopeRead,
			endpoint: answers(h.ports.get)},
		{method: remove, path: port, query: "protocol", scope: v1.ScopeNetwork, flags: nodeWide, action: "port.delete",
			endpoint: answers(h.ports.delete)},
		{method: put, path: port + "/use", query: "protocol", scope: v1.ScopeNetwork, flags: nodeWide, action: "port.use",
			endpoint: takes(d, nil, h.ports.use)},

		{method: get, path: "/audit", query: "since limit last container volume actor", scope: v1.ScopeAdmin, flags: nodeWide,
			endpoint: answers(h.audit.list)},

		{method: get, path: "/node", scope: v1.ScopeRead, flags: nodeWide,
			endpoint: answers(h.node.get)},
		{method: get, path: "/debug/pprof", scope: v1.ScopeAdmin, flags: nodeWide | link,
			endpoint: raw(h.profiles.get)},
		{method: get, path: "/debug/pprof/:profile", query: "seconds debug gc", scope: v1.ScopeAdmin, flags: nodeWide | link,
			endpoint: raw(h.profiles.get)},
		{method: get, path: "/remote/config", scope: v1.ScopeAdmin, flags: nodeWide,
			endpoint: answers(h.config.get)},
		{method: post, path: "/remote/config/reload", scope: v1.ScopeAdmin, flags: nodeWide, action: "config.reload",
			endpoint: answers(h.config.reload)},
	}
}

func volumeRoutes(h handlers, d decoder) []route {
	const volume = "/volumes/:volume"
	return []route{
		{method: post, path: "/volumes", scope: v1.ScopeAdmin, flags: nodeWide, action: "volume.create",
			endpoint: takes(d, h.volumes.check, h.volumes.create)},
		{method: get, path: "/volumes", query: "label limit continue", scope: v1.ScopeRead,
			endpoint: answers(h.volumes.list)},
		{method: get, path: volume, scope: v1.ScopeRead,
			endpoint: answers(h.volumes.get)},
		{method: patch, path: volume, scope: v1.ScopeAdmin, action: "volume.update",
			endpoint: takes(d, h.volumes.checkChange, h.volumes.patch)},
		{method: remove, path: volume, scope: v1.ScopeAdmin, action: "volume.delete",
			endpoint: answers(h.volumes.delete)},

		{method: get, path: volume + "/files", query: "path mime", scope: v1.ScopeFiles, flags: orRead,
			endpoint: raw(h.files.list)},
		{method: post, path: volume + "/files", scope: v1.ScopeFiles, action: "file.write",
			endpoint: raw(h.files.write)},
		{method: remove, path: volume + "/files", query: "path", scope: v1.ScopeFiles, action: "file.delete",
			endpoint: answers(h.files.delete)},
		{method: get, path: volume + "/files/search", query: "query path mime", scope: v1.ScopeFiles, flags: orRead,
			endpoint: answers(h.files.search)},
		{method: get, path: volume + "/files/content", query: "path", scope: v1.ScopeFiles, flags: orRead | link,
			endpoint: raw(h.files.download)},
		{method: put, path: volume + "/files/content", query: "path", scope: v1.ScopeFiles, flags: anyAccept, action: "file.write",
			endpoint: raw(h.files.upload)},
		{method: post, path: volume + "/folders", scope: v1.ScopeFiles, action: "folder.create",
			endpoint: takes(d, nil, h.files.makeFolder)},
		{method: post, path: volume + "/copy", scope: v1.ScopeFiles, action: "file.copy",
			endpoint: takes(d, nil, h.files.copy)},
		{method: post, path: volume + "/rename", scope: v1.ScopeFiles, action: "file.rename",
			endpoint: takes(d, nil, h.files.rename)},
		{method: post, path: volume + "/chmod", scope: v1.ScopeFiles, action: "file.chmod",
			endpoint: takes(d, h.files.checkMode, h.files.chmod)},
		{method: post, path: volume + "/compress", scope: v1.ScopeFiles, action: "archive.create",
			endpoint: takes(d, h.files.checkCompress, h.files.compress)},
		{method: post, path: volume + "/decompress", scope: v1.ScopeFiles, action: "archive.extract",
			endpoint: takes(d, nil, h.files.decompress)},
		{method: get, path: volume + "/archive", query: "path format ignore", scope: v1.ScopeFiles, flags: orRead | link,
			endpoint: raw(h.files.archive)},
		{method: put, path: volume + "/archive", query: "path format encoding", scope: v1.ScopeFiles, flags: anyAccept, action: "archive.extract",
			endpoint: raw(h.files.extract)},
		{method: post, path: volume + "/pull", scope: v1.ScopeFiles, flags: limitsJobs, action: "pull.create",
			endpoint: h.pulls.enabled(takes(d, h.pulls.check, h.pulls.create))},
		{method: get, path: volume + "/pulls", scope: v1.ScopeFiles, flags: orRead,
			endpoint: answers(h.pulls.list)},
		{method: remove, path: volume + "/pulls/:pull", scope: v1.ScopeFiles, flags: limitsJobs, action: "pull.cancel",
			endpoint: answers(h.pulls.cancel)},
	}
}

func backupRoutes(h handlers, d decoder) []route {
	const backup, policy = "/backups/:backup", "/volumes/:volume/backup-policy"
	return []route{
		{method: post, path: "/volumes/:volume/backups", scope: v1.ScopeFiles, flags: limitsJobs, action: "backup.create",
			endpoint: takes(d, h.backups.check, h.backups.create)},
		{method: put, path: "/volumes/:volume/backups/:backup", scope: v1.ScopeFiles, flags: limitsJobs, action: "backup.create",
			endpoint: takes(d, h.backups.check, h.backups.put)},
		{method: get, path: "/volumes/:volume/backups", query: "limit continue", scope: v1.ScopeRead,
			endpoint: answers(h.backups.listOfVolume)},
		{method: get, path: "/backups", query: "volume limit continue", scope: v1.ScopeRead,
			endpoint: answers(h.backups.list)},
		{method: get, path: backup, scope: v1.ScopeRead,
			endpoint: answers(h.backups.get)},
		{method: get, path: backup + "/content", scope: v1.ScopeRead, flags: link,
			endpoint: raw(h.backups.download)},
		{method: get, path: backup + "/files", query: "path", scope: v1.ScopeRead,
			endpoint: raw(h.backups.files)},
		{method: post, path: backup + "/restore", scope: v1.ScopeAdmin, flags: limitsJobs, action: "backup.restore",
			endpoint: takes(d, h.backups.checkRestore, h.backups.restore)},
		{method: remove, path: backup, scope: v1.ScopeFiles, flags: limitsJobs, action: "backup.delete",
			endpoint: answers(h.backups.delete)},

		{method: get, path: "/store/content", scope: v1.ScopeAdmin, flags: nodeWide,
			endpoint: raw(h.stored.download)},

		{method: put, path: policy, scope: v1.ScopeFiles, action: "policy.update",
			endpoint: takes(d, h.backups.checkPolicy, h.backups.putPolicy)},
		{method: get, path: policy, scope: v1.ScopeRead,
			endpoint: answers(h.backups.policy)},
		{method: remove, path: policy, scope: v1.ScopeFiles, action: "policy.delete",
			endpoint: answers(h.backups.deletePolicy)},
	}
}

func containerRoutes(h handlers, d decoder) []route {
	const container, schedule = "/containers/:id", "/containers/:id/schedules/:schedule"
	return []route{
		{method: get, path: container + "/schedules", scope: v1.ScopeAdmin,
			endpoint: answers(h.schedules.list)},
		{method: put, path: schedule, scope: v1.ScopeAdmin, action: "schedule.update",
			endpoint: takes(d, h.schedules.check, h.schedules.put)},
		{method: get, path: schedule, scope: v1.ScopeAdmin,
			endpoint: answers(h.schedules.get)},
		{method: remove, path: schedule, scope: v1.ScopeAdmin, action: "schedule.delete",
			endpoint: answers(h.schedules.delete)},
		{method: post, path: schedule + "/run", scope: v1.ScopeAdmin, action: "schedule.run",
			endpoint: answers(h.schedules.run)},

		{method: post, path: "/eggs", scope: v1.ScopeAdmin, flags: nodeWide,
			endpoint: takes(d, nil, importEgg)},
		{method: post, path: "/containers", scope: v1.ScopeAdmin, action: "container.create",
			endpoint: takes(d, h.containers.checkCreate, h.containers.create)},
		{method: get, path: "/containers", query: "label stats limit continue", scope: v1.ScopeRead,
			endpoint: answers(h.containers.list)},
		{method: get, path: container, scope: v1.ScopeRead,
			endpoint: answers(h.containers.get)},
		{method: get, path: container + "/spec", scope: v1.ScopeRead,
			endpoint: answers(h.containers.spec)},
		{method: put, path: container, query: "dry_run apply", scope: v1.ScopeAdmin, flags: dryRuns, action: "container.apply",
			endpoint: takes(d, h.containers.checkApply, h.containers.apply)},
		{method: remove, path: container, query: "volume", scope: v1.ScopeAdmin, action: "container.delete",
			endpoint: answers(h.containers.delete)},
		{method: post, path: container + "/start", scope: v1.ScopePower, flags: limitsStarts, action: "container.start",
			endpoint: answers(h.containers.power(intent.Start))},
		{method: post, path: container + "/stop", scope: v1.ScopePower, action: "container.stop",
			endpoint: answers(h.containers.power(intent.Stop))},
		{method: post, path: container + "/kill", scope: v1.ScopePower, action: "container.kill",
			endpoint: answers(h.containers.power(intent.Kill))},
		{method: post, path: container + "/restart", scope: v1.ScopePower, flags: limitsStarts, action: "container.restart",
			endpoint: answers(h.containers.power(intent.Restart))},
		{method: post, path: container + "/reinstall", scope: v1.ScopeAdmin, action: "container.reinstall",
			endpoint: takes(d, h.containers.checkReinstall, h.containers.reinstall)},
		{method: post, path: container + "/rebind-network", scope: v1.ScopeNetwork, action: "container.rebind",
			endpoint: takes(d, h.containers.checkRebind, h.containers.rebindNetwork)},

		{method: post, path: container + "/command", scope: v1.ScopeConsole, action: "container.command",
			endpoint: takes(d, nil, h.consoles.command)},
		{method: get, path: container + "/logs", query: "tail since before since_line", scope: v1.ScopeRead,
			endpoint: raw(h.consoles.logs(""))},
		{method: get, path: container + "/logs/content", scope: v1.ScopeRead, flags: link,
			endpoint: raw(h.consoles.content)},
		{method: get, path: container + "/install-logs", query: "tail since before since_line", scope: v1.ScopeRead,
			endpoint: raw(h.consoles.logs(v1.InstallConsole))},
		{method: get, path: container + "/stats", scope: v1.ScopeRead,
			endpoint: answers(h.consoles.stats)},
		{method: get, path: "/events", query: "since epoch container volume type limit last", scope: v1.ScopeRead,
			endpoint: answers(h.events.list)},

		{method: get, path: "/ws/:id", query: "since epoch tail since_line", scope: v1.ScopeRead, flags: upgrade | link,
			endpoint: raw(h.sockets.ofContainer)},
		{method: get, path: "/ws", query: "since epoch tail", scope: v1.ScopeRead, flags: upgrade | link | nodeWide,
			endpoint: raw(h.sockets.ofNode)},
	}
}

func transferRoutes(h handlers, d decoder) []route {
	const transfer, arrival = "/transfers/:transfer", "/arrivals/:arrival"
	return []route{
		{method: post, path: "/containers/:id/transfer", scope: v1.ScopeAdmin, action: "transfer.create",
			endpoint: takes(d, h.transfers.check, h.transfers.create)},
		{method: get, path: "/transfers", scope: v1.ScopeRead, flags: nodeWide,
			endpoint: answers(h.transfers.list)},
		{method: get, path: transfer, scope: v1.ScopeRead, flags: nodeWide,
			endpoint: answers(h.transfers.get)},
		{method: remove, path: transfer, query: "destination_is_gone", scope: v1.ScopeAdmin, flags: nodeWide, action: "transfer.cancel",
			endpoint: answers(h.transfers.cancel)},

		{method: get, path: "/arrivals", scope: v1.ScopeRead, flags: nodeWide,
			endpoint: answers(h.arrivals.list)},
		{method: post, path: "/arrivals", scope: v1.ScopeArrive, flags: nodeWide, action: "arrival.create",
			endpoint: takes(d, h.arrivals.check, h.arrivals.put)},
		{method: get, path: arrival + "/tree", scope: v1.ScopeArrive, flags: nodeWide,
			endpoint: raw(h.arrivals.tree)},
		{method: put, path: arrival + "/content", scope: v1.ScopeArrive, flags: nodeWide | anyAccept, action: "arrival.write",
			endpoint: raw(h.arrivals.content)},
		{method: put, path: arrival + "/backups/:backup", query: "offset", scope: v1.ScopeArrive, flags: nodeWide | anyAccept,
			action:   "arrival.backup",
			endpoint: raw(h.arrivals.backup)},
		{method: post, path: arrival + "/commit", scope: v1.ScopeArrive, flags: nodeWide, action: "arrival.commit",
			endpoint: takes(d, nil, h.arrivals.commit)},
		{method: remove, path: arrival, scope: v1.ScopeArrive, flags: nodeWide, action: "arrival.cancel",
			endpoint: answers(h.arrivals.cancel)},
	}
}

const (
	anyQuery   = "*"      // of a route that ignores its query
	tokenQuery = "token"  // of a route with the flag queryToken
	labelName  = "label"  // a parameter that may be repeated
	ignoreName = "ignore" // another one
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
		case seen[name] && name != labelName && name != ignoreName:
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
	TokenInQuery bool
	Idempotent   bool // takes an idempotency key
}

// Operations returns all routes.
func Operations() (list []Operation) {
	for _, r := range routes(handlers{}, decoder{}) {
		list = append(list, Operation{
			Method: r.method, Path: braces(r.path), Scope: r.scope, In: r.in, Out: r.out,
			Public: r.is(public), TokenInQuery: r.is(queryToken),
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
