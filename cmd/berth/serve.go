package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"runtime/debug"
	"strconv"
	"sync"
	"syscall"
	"time"

	systemd "github.com/coreos/go-systemd/v22/daemon"
	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	v1 "berth/api/v1"
)

// shutdownLimit is how long open requests may take at the end; the steps under
// way have their own limit, and both fit into 10 s.
const shutdownLimit = 3 * time.Second

func newServeCommand(l *loader) *cobra.Command {
	return l.keyFlags(&cobra.Command{
		Use:   "serve",
		Short: "Run the daemon",
		Long: "Run the daemon until SIGTERM or Ctrl-C; containers run on after it. SIGHUP reads the configuration\n" +
			"again. Where there is no configuration, one is written with a fresh token, as `berth config init` does.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return serve(cmd.Context(), l, cmd.ErrOrStderr()) },
	})
}

// collectAt is by how much the heap may grow before it is collected, in percent
// of what is in use. The host's memory is the tenants'; Go's own 100 gives
// berth a third more of it, for a little less work.
const collectAt = 50

func serve(ctx context.Context, l *loader, out io.Writer) error {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(collectAt)
	}
	// What libraries make (Badger's tables) is nobody else's. The modes of what
	// is in volumes are set one by one.
	unix.Umask(0o077)
	first, made, err := l.loadOrInit()
	if err != nil {
		return l.named(err)
	}
	if err := serveLoaded(ctx, l, first, made, out); err != nil {
		return formatError{err, first.config.Log.Format}
	}
	return nil
}

// serveLoaded is serve with a configuration.
func serveLoaded(ctx context.Context, l *loader, first loaded, made bool, out io.Writer) error {
	level := new(slog.LevelVar)
	log := newLog(first.config.Log, level, os.Stderr)
	slog.SetDefault(log) // libraries that write to the standard logger write to it
	for _, w := range first.warnings {
		log.Warn(w)
	}
	settings := newSettings(first, l.load, func(c v1.Config) { setLevel(level, c.Log.Level) })
	d, err := newDaemon(settings, log)
	if err != nil {
		return err
	}
	ln, err := listen(settings)
	if err != nil {
		return errors.Join(err, d.store.Close())
	}
	warnPublic(log, first.config, ln.Addr())
	if textLog(first.config.Log.Format, os.Stderr) {
		welcome(out, first, made, ln.Addr())
	} else {
		log.Info("serving", "version", version, "address", ln.Addr().String(), "config", first.path, "config_written", made)
	}
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	defer signal.Stop(hup)
	return d.run(ctx, ln, hup)
}

// listen opens the port. With TLS the certificate is that of the last reload.
func listen(s *Settings) (net.Listener, error) {
	c := s.Current()
	ln, err := net.Listen("tcp", net.JoinHostPort(c.Server.Host, strconv.Itoa(c.Server.Port)))
	if err != nil {
		return nil, fmt.Errorf("listen: %w; set server.host and server.port to an address of this host that is free", err)
	}
	if !c.Server.TLS.Enabled() {
		return ln, nil
	}
	return tls.NewListener(ln, &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: s.GetCertificate}), nil
}

// warnPublic warns of a listener that others than this host reach, where what is
// sent can be read on the way.
func warnPublic(log *slog.Logger, c v1.Config, addr net.Addr) {
	tcp, ok := addr.(*net.TCPAddr)
	if c.Server.TLS.Enabled() || ok && tcp.IP.IsLoopback() {
		return
	}
	log.Warn("berth listens on a public address without TLS: tokens and files can be read on the way; "+
		"set server.tls.cert and server.tls.key, or set server.host to 127.0.0.1 and put a proxy with TLS in front", "address", addr.String())
}

// welcome tells a person who started berth by hand what to do next. The token
// itself is not printed: what is on a screen ends up in logs.
func welcome(out io.Writer, l loaded, made bool, addr net.Addr) {
	if made {
		fmt.Fprintf(out, "berth wrote a configuration with a fresh token to %s\n", l.path)
	}
	curl := "curl http"
	if l.config.Server.TLS.Enabled() {
		curl = "curl -k https" // the certificate is for another name; no token is sent
	}
	host := addr.String()
	if tcp, ok := addr.(*net.TCPAddr); ok && tcp.IP.IsUnspecified() {
		host = net.JoinHostPort("127.0.0.1", strconv.Itoa(tcp.Port))
	}
	fmt.Fprintf(out, "berth %s serves on %s\n  token:   authorization.token in %s\n  try:     make demo, or: %s://%s/api/v1/public/ping\n",
		version, addr, l.path, curl, host)
}

// run serves until ctx ends, then stops everything in the reverse order: first
// no new wishes, then no new steps, then the consoles, the store last.
func (d *daemon) run(ctx context.Context, ln net.Listener, hup <-chan os.Signal) error {
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var parts sync.WaitGroup
	for _, part := range d.parts {
		parts.Go(func() { part(work) })
	}
	served := make(chan error, 1)
	go func() { served <- d.server.Listen(ln) }()
	manager := supervised{d.store, &d.health, d.log}
	manager.notify(systemd.SdNotifyReady)
	err := d.wait(ctx, served, hup)
	manager.notify(systemd.SdNotifyStopping)
	d.log.Info("stopping; containers run on")
	stop, done := context.WithTimeout(context.Background(), shutdownLimit)
	defer done()
	if shutdown := d.server.Shutdown(stop); shutdown != nil {
		d.log.Warn("some requests were cut off", "err", shutdown)
	}
	cancel()
	parts.Wait()
	d.hub.Close()
	return errors.Join(err, d.engine.Close(), d.mounts.Close(), d.store.Close())
}

// wait returns when the daemon is to stop.
func (d *daemon) wait(ctx context.Context, served <-chan error, hup <-chan os.Signal) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-served:
			return fmt.Errorf("serve: %w", err)
		case <-hup:
			d.reload()
		}
	}
}

func (d *daemon) reload() {
	defer supervised{d.store, &d.health, d.log}.reloading()()
	waiting, err := d.settings.Reload()
	if err != nil {
		d.log.Error("the configuration was not reloaded; the old one stays in force", "err", err)
		return
	}
	d.log.Info("the configuration was reloaded", "restart_required", waiting)
}
