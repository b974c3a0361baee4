package node

// access is the kind of client that may use a route.
type access int

const (
	panelOnly access = iota // the panel: its requests carry the node's secret
	signed                  // a browser or another node, with a token that the panel has signed: the handler checks it
	socketed                // a browser, which shows its token afterwards
)

// route is one address of a node. What a method of tenant answers, berth may do for the server's customer.
type route struct {
	pattern string // as those of http.ServeMux
	access  access
	handle  func(*call) error
}

// routes returns the table of all addresses.
func (n *Node) routes() []route {
	const s, files = "/api/servers/{server}", "/api/servers/{server}/files/"
	return []route{
		{"GET /api/system", panelOnly, n.system},
		{"GET /api/system/utilization", panelOnly, n.utilization},
		{"GET /api/system/ips", panelOnly, n.ips},
		{"GET /api/system/docker/disk", panelOnly, n.dockerDisk},
		{"DELETE /api/system/docker/image/prune", panelOnly, n.prune},
		{"GET /api/diagnostics", panelOnly, n.diagnostics},
		{"POST /api/update", panelOnly, n.update},

		{"GET /api/servers", panelOnly, n.listServers},
		{"POST /api/servers", panelOnly, n.createServer},
		{"GET " + s, panelOnly, n.getServer},
		{"DELETE " + s, panelOnly, n.deleteServer},
		{"GET " + s + "/logs", panelOnly, n.as(tenant.logs)},
		{"GET " + s + "/install-logs", panelOnly, n.as(tenant.installLogs)},
		{"POST " + s + "/power", panelOnly, n.postPower},
		{"POST " + s + "/commands", panelOnly, n.as(tenant.commands)},
		{"POST " + s + "/install", panelOnly, n.postInstall},
		{"POST " + s + "/reinstall", panelOnly, n.postReinstall},
		{"POST " + s + "/sync", panelOnly, n.postSync},

		{"GET " + files + "contents", panelOnly, n.as(tenant.contents)},
		{"GET " + files + "list-directory", panelOnly, n.as(tenant.listDirectory)},
		{"PUT " + files + "rename", panelOnly, n.as(tenant.rename)},
		{"POST " + files + "copy", panelOnly, n.as(tenant.copy)},
		{"POST " + files + "write", panelOnly, n.as(tenant.write)},
		{"POST " + files + "create-directory", panelOnly, n.as(tenant.createDirectory)},
		{"POST " + files + "delete", panelOnly, n.as(tenant.deleteFiles)},
		{"POST " + files + "compress", panelOnly, n.as(tenant.compress)},
		{"POST " + files + "decompress", panelOnly, n.as(tenant.decompress)},
		{"POST " + files + "chmod", panelOnly, n.as(tenant.chmod)},
		{"GET " + files + "search", panelOnly, n.as(tenant.search)},
		{"GET " + files + "pull", panelOnly, n.as(tenant.pulls)},
		{"POST " + files + "pull", panelOnly, n.as(tenant.pull)},
		{"DELETE " + files + "pull/{pull}", panelOnly, n.as(tenant.cancelPull)},

		{"POST " + s + "/backup", panelOnly, n.backup},
		{"POST " + s + "/backup/{backup}/restore", panelOnly, n.restore},
		{"DELETE " + s + "/backup/{backup}", panelOnly, n.deleteBackup},
		{"DELETE " + s + "/deleteAllBackups", panelOnly, n.deleteAllBackups},
		{"GET /download/backup", signed, n.downloadBackup},

		{"GET " + s + "/ws", socketed, n.webSocket},
		{"POST " + s + "/ws/deny", panelOnly, n.denyTokens},
		{"POST /api/deauthorize-user", panelOnly, n.deauthorize},
		{"GET /download/file", signed, n.downloadFile},
		{"POST /upload/file", signed, n.uploadFile},

		{"POST " + s + "/transfer", panelOnly, n.postTransfer},
		{"DELETE " + s + "/transfer", panelOnly, n.cancelTransfer},
		{"POST /api/transfers", signed, n.receiveTransfer},
		{"DELETE /api/transfers/{server}", panelOnly, n.cancelTransfer},
	}
}
