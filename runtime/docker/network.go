package docker

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strconv"
	"strings"
	"sync/atomic"

	dockernetwork "github.com/docker/docker/api/types/network"

	"berth/runtime"
)

// optionICC is the option that lets containers of a bridge reach each other.
const optionICC = "com.docker.network.bridge.enable_icc"

// optionName is the option with the name of the bridge's interface. Without it, the
// name is br-<id>.
const optionName = "com.docker.network.bridge.name"

// network is the bridge network of the containers, created when it is first
// needed. Containers reach each other only through published ports. IPv6 is off:
// it would make each start a third slower.
type network struct {
	name  string
	mtu   int // 0: that of the host's default route
	conn  *connection
	calls *calls
	guard func(context.Context, runtime.Bridge)
	log   *slog.Logger

	exists   atomic.Bool
	creating chan struct{} // held during the creation, among the goroutines of this daemon
}

func newNetwork(c Config, conn *connection, calls *calls, log *slog.Logger) *network {
	return &network{name: c.Network, mtu: c.MTU, conn: conn, calls: calls, guard: c.Guard, log: log, creating: make(chan struct{}, 1)}
}

// ensure creates the network unless it is known to exist.
func (n *network) ensure(ctx context.Context) error {
	if n.exists.Load() {
		return nil
	}
	select {
	case n.creating <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-n.creating }()
	if n.exists.Load() {
		return nil
	}
	if err := n.create(ctx); err != nil {
		return err
	}
	if err := n.protect(ctx); err != nil {
		return err
	}
	n.exists.Store(true)
	return nil
}

// protect calls guard before any container is attached.
func (n *network) protect(ctx context.Context) error {
	if n.guard == nil {
		return nil
	}
	b, err := n.bridge(ctx)
	if err == nil {
		n.guard(ctx, b)
	}
	return err
}

// recreate ensures the network after the engine reported that it is missing.
func (n *network) recreate(ctx context.Context) error {
	n.exists.Store(false)
	return n.ensure(ctx)
}

// create creates the network unless it exists. If another daemon of the host creates
// it at the same time, the error is errNetworkTaken until the engine shows it.
func (n *network) create(ctx context.Context) error {
	err := n.check(ctx)
	if !errors.Is(err, errNoNetwork) {
		return err
	}
	n.log.Info("creating the network of the containers", "network", n.name)
	return n.request(ctx)
}

// request asks the engine for the network. Docker creates two networks of one name
// for two concurrent requests, and then refuses the name as ambiguous. It never
// creates two networks with the same interface, so the interface's name is derived
// from the network's.
func (n *network) request(ctx context.Context) error {
	options := map[string]string{optionICC: "false", optionName: interfaceName(n.name)}
	if mtu := cmp.Or(n.mtu, n.hostMTU()); mtu != bridgeMTU {
		options[optionMTU] = strconv.Itoa(mtu)
	}
	return n.calls.do(ctx, opNetwork, n.name, func(ctx context.Context) error {
		_, err := n.conn.client().NetworkCreate(ctx, n.name, dockernetwork.CreateOptions{
			Driver:  "bridge",
			Options: options,
			Labels:  map[string]string{labelPrefix + "network": "true"},
		})
		return err
	})
}

// interfaceName returns the name of a network's interface, which looks like those
// that Docker chooses.
func interfaceName(network string) string {
	return fmt.Sprintf("br-%.6x", sha256.Sum256([]byte(network)))
}

func (n *network) check(ctx context.Context) error {
	seen, err := n.inspect(ctx)
	if err != nil {
		return err
	}
	if seen.Options[optionICC] != "false" {
		n.log.Warn("containers on this network can reach each other: remove it, and berth creates it anew without inter-container traffic",
			"network", n.name)
	}
	n.checkMTU(seen)
	return nil
}

// checkMTU reports a network with another MTU than the configured one, or with a larger one than the host's
// route, whose packets are lost where routers do not report it.
func (n *network) checkMTU(seen dockernetwork.Inspect) {
	mtu, err := strconv.Atoi(seen.Options[optionMTU])
	if err != nil {
		mtu = bridgeMTU
	}
	if want := cmp.Or(n.mtu, n.hostMTU()); seen.Driver == "bridge" && (mtu > want || n.mtu > 0 && mtu != want) {
		n.log.Warn("the network of the containers has another MTU: remove it while no container runs, and berth creates it anew with "+
			"the right one",
			"network", n.name, "mtu", mtu, "right", want)
	}
}

func (n *network) inspect(ctx context.Context) (seen dockernetwork.Inspect, err error) {
	err = n.calls.do(ctx, opNetwork, n.name, func(ctx context.Context) (err error) {
		seen, err = n.conn.client().NetworkInspect(ctx, n.name, dockernetwork.InspectOptions{})
		return err
	})
	return seen, err
}

// bridge returns the network's bridge. Its Interface is empty if the network does
// not exist or has another driver.
func (n *network) bridge(ctx context.Context) (b runtime.Bridge, err error) {
	seen, err := n.inspect(ctx)
	if errors.Is(err, errNoNetwork) {
		return b, nil
	}
	if err != nil || seen.Driver != "bridge" {
		return b, err
	}
	b.Interface = cmp.Or(seen.Options[optionName], "br-"+seen.ID[:min(12, len(seen.ID))])
	for _, c := range seen.IPAM.Config {
		text, _, _ := strings.Cut(c.Gateway, "/")
		if gateway, err := netip.ParseAddr(text); err == nil {
			b.Gateways = append(b.Gateways, gateway)
		}
	}
	return b, nil
}
