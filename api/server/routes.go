package server

import (
	"slices"

	"berth/api/intent"
	v1 "berth/api/v1"
)

// routes returns the table of all endpoints.
func routes(h handlers) []route {
	return slices.Concat(nodeRoutes(h), volumeRoutes(h), containerRoutes(h))
}

func nodeRoutes(h handlers) []route {
	const port = "/network/ports/:ip/:port"
	return []route{
		{get, "/api/v1/public/ping", "", public, h.health.ping},
		{get, "/healthz", "", public, h.health.healthz},
		{get, "/readyz", "", public, h.health.readyz},
		{get, "/openapi.yaml", "", public, h.health.document},
		{get, metricsPath, v1.ScopeRead, nodeWide | anyAccept, h.health.metrics},

		{post, "/auth/tokens", v1.ScopeAdmin, 0, h.tokens.mint},
		{get, "/auth/tokens", v1.ScopeAdmin, nodeWide, h.tokens.list},
		{remove, "/auth/tokens/:token", v1.ScopeAdmin, nodeWide, h.tokens.revoke},

		{post, "/network/ports", v1.ScopeNetwork, nodeWide, h.ports.add},
		{get, "/network/ports", v1.ScopeRead, 0, h.ports.list},
		{post, "/network/ports/bulk", v1.ScopeNetwork, nodeWide, h.ports.addBulk},
		{post, "/network/ports/bulk-delete", v1.ScopeNetwork, nodeWide, h.ports.deleteBulk},
		{get, "/network/ports/random", v1.ScopeRead, 0, h.ports.random},
		{get, port, v1.ScopeRead, 0, h.ports.get},
		{remove, port, v1.ScopeNetwork, nodeWide, h.ports.delete},
		{put, port + "/use", v1.ScopeNetwork, nodeWide, h.ports.use},

		{get, "/remote/config", v1.ScopeAdmin, nodeWide, h.config.get},
		{post, "/remote/config/reload", v1.ScopeAdmin, nodeWide, h.config.reload},
	}
}

func volumeRoutes(h handlers) []route {
	const volume = "/volumes/:volume"
	return []route{
		{post, "/volumes", v1.ScopeAdmin, nodeWide, h.volumes.create},
		{get, "/volumes", v1.ScopeRead, 0, h.volumes.list},
		{get, volume, v1.ScopeRead, 0, h.volumes.get},
		{remove, volume, v1.ScopeAdmin, 0, h.volumes.delete},

		{get, volume + "/files", v1.ScopeFiles, orRead, h.files.list},
		{post, volume + "/files", v1.ScopeFiles, 0, h.files.write},
		{remove, volume + "/files", v1.ScopeFiles, 0, h.files.delete},
		{get, volume + "/files/search", v1.ScopeFiles, orRead, h.files.search},
		{get, volume + "/files/content", v1.ScopeFiles, orRead | link, h.files.download},
		{put, volume + "/files/content", v1.ScopeFiles, anyAccept, h.files.upload},
		{post, volume + "/folders", v1.ScopeFiles, 0, h.files.makeFolder},
		{post, volume + "/copy", v1.ScopeFiles, 0, h.files.copy},
		{post, volume + "/rename", v1.ScopeFiles, 0, h.files.rename},
		{post, volume + "/chmod", v1.ScopeFiles, 0, h.files.chmod},
		{post, volume + "/compress", v1.ScopeFiles, 0, h.files.compress},
		{post, volume + "/decompress", v1.ScopeFiles, 0, h.files.decompress},
	}
}

func containerRoutes(h handlers) []route {
	const container = "/containers/:id"
	return []route{
		{post, "/containers", v1.ScopeAdmin, 0, h.containers.create},
		{get, "/containers", v1.ScopeRead, 0, h.containers.list},
		{get, container, v1.ScopeRead, 0, h.containers.get},
		{put, container, v1.ScopeAdmin, 0, h.containers.apply},
		{remove, container, v1.ScopeAdmin, 0, h.containers.delete},
		{post, container + "/start", v1.ScopePower, 0, h.containers.verb("Container start initiated", intent.StartContainer)},
		{post, container + "/stop", v1.ScopePower, 0, h.containers.verb("Container stop initiated", intent.StopContainer)},
		{post, container + "/kill", v1.ScopePower, 0, h.containers.verb("Container kill initiated", intent.KillContainer)},
		{post, container + "/restart", v1.ScopePower, 0, h.containers.verb("Container restart initiated", intent.RestartContainer)},
		{post, container + "/reinstall", v1.ScopeAdmin, 0, h.containers.reinstall},
		{post, container + "/rebind-network", v1.ScopeNetwork, 0, h.containers.rebindNetwork},

		{post, container + "/command", v1.ScopeConsole, 0, h.consoles.command},
		{get, container + "/logs", v1.ScopeRead, 0, h.consoles.logs("")},
		{get, container + "/install-logs", v1.ScopeRead, 0, h.consoles.logs(v1.InstallConsole)},
		{get, container + "/stats", v1.ScopeRead, 0, h.consoles.stats},
		{get, "/events", v1.ScopeRead, 0, h.events.list},

		{get, "/ws/:id", v1.ScopeRead, upgrade | link, h.sockets.container},
		{get, "/ws", v1.ScopeRead, upgrade | link | nodeWide, h.sockets.node},
	}
}
