package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/netip"
	"os"
	"time"

	"berth/api/client"
	"berth/api/intent"
	v1 "berth/api/v1"
	"berth/controller"
	"berth/controller/container"
	"berth/controller/image"
	"berth/controller/transfer"
	"berth/runtime"
	"berth/runtime/fetch"
	"berth/store"
)

// callTimeout bounds how long another node may take for an answer: a commit reads its whole tree.
const callTimeout = 5 * time.Minute

// destination is another node for package transfer.
type destination struct {
	client.Arrivals
	close func()
}

// Close closes the connections.
func (d destination) Close() { d.close() }

var errTransferAddress = errors.New("the address is not public: transfers.private is false")

// connect returns the destination of a transfer.
func (d *daemon) connect(t v1.Transfer) (transfer.Destination, error) {
	config := d.settings.Current().Transfers
	trust := &tls.Config{MinVersion: tls.VersionTLS12}
	if config.CA != "" {
		pem, err := os.ReadFile(config.CA)
		if err != nil {
			return nil, err
		}
		if trust.RootCAs, err = x509.SystemCertPool(); err != nil {
			trust.RootCAs = x509.NewCertPool()
		}
		if !trust.RootCAs.AppendCertsFromPEM(pem) {
			return nil, errors.New("transfers.ca has no certificate")
		}
	}
	dialer := fetch.Dialer(func(to netip.Addr) bool {
		return d.settings.Current().Transfers.Private || v1.IsPublic(to) && !isOwn(to)
	}, errTransferAddress)
	c, err := client.New(client.Options{URL: t.Spec.URL, Token: v1.Secret(t.Spec.Token), TLS: trust, Timeout: callTimeout, Dialer: dialer})
	if err != nil {
		return nil, err
	}
	return destination{c.Arrivals(), c.Close}, nil
}

// arrivalPulls are the images of arrivals that are pulled at once, beside those of containers.
const arrivalPulls = 2

// arrivalImages implements transfer.Images. Its Puller is its own: the ids of arrivals may be those of containers.
type arrivalImages struct {
	d *daemon
	*container.Puller
}

// Pull implements transfer.Images.
func (i arrivalImages) Pull(ctx context.Context, arrival string, c v1.ContainerSpec) (present bool, refused, err error) {
	id, err := i.d.engine.ImageID(ctx, c.Image)
	switch {
	case err != nil:
		return false, nil, err
	case id != "":
		i.Forget(arrival)
		return true, nil, nil
	case c.PullPolicy == v1.PullNever:
		return false, runtime.ErrImageNotFound, nil
	}
	p := i.Request(arrival, c.Image, i.d.pullAuth(c.RegistryAuth, c.Image))
	if !p.Permanent() {
		return false, nil, p.Err
	}
	i.Forget(arrival)
	return false, p.Err, nil
}

// transferLoops returns the controllers of transfers to other nodes, and of arrivals from them.
func (d *daemon) transferLoops(m *controller.Metrics) []*controller.Loop {
	jobs := transfer.NewJobs(func() int { return d.settings.Current().Transfers.Outgoing }, d.log)
	d.part("transfers", jobs.Run)
	pulls := container.NewPuller(&image.Puller{Engine: d.engine, Store: d.store, Space: d.node.pullSpace}, arrivalPulls, d.log)
	d.part("images of arrivals", pulls.Run)
	return transfer.Loops(transfer.Options{
		Store: d.store, Volumes: d.volumes, Connect: d.connect, Busy: d.mountedBy(true), Jobs: jobs,
		Intent: transfer.Intent{Reserve: intent.ReserveTransfer, Release: intent.ReleaseTransfer, Complete: intent.CompleteTransfer,
			Announce: intent.AnnounceTransfer, Runs: intent.Runs, ForgetToken: intent.ForgetToken, DeleteVolume: intent.DeleteMovedVolume,
			DeleteMoved: intent.DeleteMoved, Movable: intent.Movable},
		Images: arrivalImages{d, pulls}, Archives: movedArchives{d.targets.local},
		Throttle: controller.NewThrottle(func() int64 { return int64(d.settings.Current().Transfers.Bandwidth) }),
		Spool:    d.settings.Current().Storage.VolumesPath, Resync: d.resync(), BackOff: d.backOff(),
		Metrics: transfer.Register(d.metrics, d.store), Loops: m, Log: d.log,
	})
}

// reserved returns the refusal of changes of the files of a volume that is being moved.
func (d *daemon) reserved(volume string) error {
	if by := store.Restoring(d.store.Read(), volume); v1.IsTransfer(by) {
		return v1.ErrTransferring
	}
	return nil
}
