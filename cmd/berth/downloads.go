package main

import (
	"context"
	"io"
	"net"
	"net/netip"
	"strings"

	v1 "berth/api/v1"
	"berth/controller"
	"berth/controller/download"
	"berth/runtime/fetch"
	"berth/store"
)

// pullsAtOnce is how many downloads are reconciled at once; the downloads themselves
// run elsewhere.
const pullsAtOnce = 2

// downloadLoop returns the controller of downloads into volumes. They connect to public
// addresses that are not this host's, or to any if files.pull_private is true.
func downloadLoop(d *daemon, m *controller.Metrics) *controller.Loop {
	client := fetch.New(func(to netip.Addr) bool {
		return d.settings.Current().Files.PullPrivate || v1.IsPublic(to) && !isOwn(to)
	})
	files := d.volumes.Files()
	jobs := download.NewJobs(d.log)
	d.part("downloads", jobs.Run)
	r := &download.Reconciler{Store: d.store, Jobs: jobs, Metrics: download.NewMetrics(d.metrics, jobs), Log: d.log,
		Fetch: func(ctx context.Context, volume, url, path, checksum string, progress func(bytes, total int64)) error {
			return client.Get(ctx, url, strings.TrimPrefix(checksum, "sha256:"), progress, func(content io.Reader) error {
				return files.Write(ctx, volume, path, content)
			})
		}}
	return &controller.Loop{
		Name: "download", Reconciler: r, Workers: pullsAtOnce, BackOff: d.backOff(), Log: d.log, Metrics: m,
		DesiredState: []controller.Source{store.Pulls.Source(d.store, store.SpecChanged, store.Purged)},
		Watch:        []controller.Source{jobs.Source, controller.Every(d.resync(), store.Pulls.Lister(d.store))},
	}
}

// isOwn reports whether an address is one of this host. If the addresses cannot be
// read, every address is.
func isOwn(to netip.Addr) bool {
	own, err := net.InterfaceAddrs()
	for _, one := range own {
		if p, bad := netip.ParsePrefix(one.String()); bad == nil && p.Addr().Unmap() == to.Unmap().WithZone("") {
			return true
		}
	}
	return err != nil
}
