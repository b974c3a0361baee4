package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	v1 "berth/api/v1"
	"berth/controller"
	"berth/runtime"
	"berth/runtime/firewall"
	"berth/store"
)

// removeRules removes the firewall rules of the store in a data directory from the host,
// and reports whether there were any.
func removeRules(ctx context.Context, dataPath string) (changed bool, err error) {
	dir := filepath.Join(dataPath, "store")
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("there is no store in %s: name the configuration of the daemon with --config", dataPath)
	}
	s, err := store.Open(dir, store.Options{})
	if errors.Is(err, store.ErrLocked) {
		return false, fmt.Errorf("%w: stop the daemon first, it would add the rules again", err)
	}
	if err != nil {
		return false, err
	}
	changed, err = firewall.Remove(ctx, s.ID(), slog.New(slog.DiscardHandler))
	return changed, errors.Join(err, s.Close())
}

// egressFilter keeps firewall.Egress in force if the configuration enables it.
type egressFilter struct {
	rules *firewall.Egress
	on    bool
	log   *slog.Logger

	mu   sync.Mutex
	last string // the last log line, which is not repeated
}

func newEgressFilter(c v1.Config, storeID string, log *slog.Logger) *egressFilter {
	var ports []int
	if c.Server.Port != 0 {
		ports = append(ports, c.Server.Port)
	}
	if c.SFTP.Enabled && c.SFTP.Port != 0 {
		ports = append(ports, c.SFTP.Port)
	}
	return &egressFilter{
		rules: firewall.NewEgress(storeID, ports, v1.ProviderNetworks(), log), log: log,
		on: c.Firewall.EgressFilter && c.Firewall.Backend != v1.BackendNone,
	}
}

// guard puts the filter in force for a bridge, before its first container. It logs
// failures: containers also start on a host without iptables.
func (f *egressFilter) guard(ctx context.Context, b runtime.Bridge) {
	if !f.on {
		b = runtime.Bridge{} // removes the rules
	}
	for _, family := range runtime.Families() {
		changed, err := f.rules.Block(ctx, family, b)
		var unavailable *firewall.Unavailable
		switch {
		case err == nil && changed && f.on:
			f.say(slog.LevelInfo, "containers are kept from the provider's services, their gateway and this daemon", "bridge "+b.Interface)
		case err == nil, !f.on, ctx.Err() != nil:
		case family == runtime.IPv6 && errors.As(err, &unavailable): // a host without IPv6 has nothing to filter
			f.log.Debug("the egress of containers is not filtered", "family", "IPv6", "err", err)
		default:
			f.say(slog.LevelWarn, "the egress of containers is not filtered: they may reach the provider's metadata and this daemon", err.Error())
		}
	}
}

// say logs a message, unless it is the last that was logged.
func (f *egressFilter) say(level slog.Level, message, detail string) {
	f.mu.Lock()
	again := f.last == message+detail
	f.last = message + detail
	f.mu.Unlock()
	if !again {
		f.log.Log(context.Background(), level, message, "detail", detail)
	}
}

// keep repairs the filter periodically: another tool may flush it.
func (f *egressFilter) keep(ctx context.Context, bridge func(context.Context) (runtime.Bridge, error), every time.Duration) error {
	if !f.on {
		f.guard(ctx, runtime.Bridge{}) // removes the rules of an earlier configuration
		<-ctx.Done()
		return nil
	}
	for {
		if b, err := bridge(ctx); err == nil {
			f.guard(ctx, b)
		}
		if !controller.Sleep(ctx, every) {
			return nil
		}
	}
}
