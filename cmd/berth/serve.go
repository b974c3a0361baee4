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
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	v1 "berth/api/v1"
	"berth/cmd/berth/config"
)

// shutdownLimit bounds how long open requests may take at shutdown. The steps in
// flight have their own limit; both fit into 10 s.
const shutdownLimit = 3 * time.Second

func serve(ctx context.Context, l *config.Loader, out io.Writer) error {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(50) // 100 saves a little work, and takes a third more of the memory that tenants could use
	}
	// Files that libraries create, such as Badger's tables, are for this user only.
	// The modes of files in volumes are set explicitly.
	unix.Umask(0o077)
	first, written, err := l.LoadOrWrite()
	if err != nil {
		return l.WithPath(err)
	}
	if err := serveLoaded(ctx, l, first, written, out); err != nil {
		return formatError{err, first.Config.Log.Format}
	}
	return nil
}

// serveLoaded runs the daemon with a configuration.
func serveLoaded(ctx context.Context, l *config.Loader, first config.Loaded, written bool, out io.Writer) error {
	settings := config.NewSettings(first, l.Load)
	log := newLog(first.Config.Log.Format, liveLevel{settings}, os.Stderr)
	slog.SetDefault(log) // libraries that write to the standard logger write to it
	for _, w := range first.Warnings {
		log.Warn(w)
	}
	d, err := newDaemon(settings, log)
	if err != nil {
		return err
	}
	ln, files, err := d.listenAll()
	if err != nil {
		return errors.Join(err, d.store.Close())
	}
	warnPublic(log, first.Config, ln.Addr())
	if textLog(first.Config.Log.Format, os.Stderr) {
		welcome(out, first, written, ln.Addr())
	} else {
		log.Info("serving", "version", version, "address", ln.Addr().String(), "config", first.Path, "config_written", written)
	}
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	defer signal.Stop(hup)
	return d.run(ctx, ln, files, hup)
}

// listen opens the port. With TLS, each connection gets the certificate of the last reload.
func listen(s *config.Settings) (net.Listener, error) {
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

// listenAll opens the ports of the API and of the SFTP server. files is nil if SFTP is
// not enabled.
func (d *daemon) listenAll() (api, files net.Listener, err error) {
	if api, err = listen(d.settings); err != nil || d.sftp == nil {
		return api, nil, err
	}
	c := d.settings.Current().SFTP
	if files, err = net.Listen("tcp", net.JoinHostPort(c.Host, strconv.Itoa(c.Port))); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("listen: %w; set sftp.host and sftp.port to an address of this host that is free", err),
			api.Close())
	}
	d.log.Info("serving SFTP", slog.String("address", files.Addr().String()), slog.String("host_key", d.hostKey))
	return api, files, nil
}

// warnPublic logs a warning if other hosts can reach the listener and it has no TLS.
func warnPublic(log *slog.Logger, c v1.Config, addr net.Addr) {
	tcp, ok := addr.(*net.TCPAddr)
	if c.Server.TLS.Enabled() || ok && tcp.IP.IsLoopback() {
		return
	}
	log.Warn("berth listens on a public address without TLS: tokens and files can be read on the way; "+
		"set server.tls.cert and server.tls.key, or set server.host to 127.0.0.1 and put a proxy with TLS in front", "address", addr.String())
}

// welcome prints the next steps for a person who started berth by hand. It does not
// print the token: terminal output ends up in logs.
func welcome(out io.Writer, l config.Loaded, written bool, addr net.Addr) {
	if written {
		fmt.Fprintf(out, "berth wrote a configuration with a fresh token to %s\n", l.Path)
	}
	curl, scheme := "curl", "http"
	if l.Config.Server.TLS.Enabled() {
		curl, scheme = "curl -k", "https" // the certificate is for another name; no token is sent
	}
	host := addr.String()
	if tcp, ok := addr.(*net.TCPAddr); ok && tcp.IP.IsUnspecified() {
		host = net.JoinHostPort("127.0.0.1", strconv.Itoa(tcp.Port))
	}
	fmt.Fprintf(out, "berth %s serves on %s\n  token:   authorization.token in %s\n  try:     make demo, or: %s %s://%s/api/v1/public/ping\n",
		version, addr, l.Path, curl, scheme, host)
	if l.Config.UI.Enabled {
		fmt.Fprintf(out, "  page:    %s://%s/ui/\n", scheme, host)
	}
}

// run serves until ctx ends or a part does, then stops everything in reverse order: first the
// requests, then the steps, then the consoles, and the store last.
// files is the listener of the SFTP server; nil: none.
func (d *daemon) run(ctx context.Context, ln, files net.Listener, hup <-chan os.Signal) error {
	d.part("HTTP", func(context.Context) error { return d.server.Listen(ln) })
	if files != nil {
		d.part("SFTP", func(context.Context) error { return d.sftp.Listen(files) })
	}
	d.part("reload", func(ctx context.Context) error { return d.watchReload(ctx, hup) })
	d.notify(systemd.SdNotifyReady)
	err := runParts(ctx, d.parts, d.loops, func() {
		d.notify(systemd.SdNotifyStopping)
		d.log.Info("stopping; containers run on")
		stop, done := context.WithTimeout(context.Background(), shutdownLimit)
		defer done()
		var requests errgroup.Group // both have the whole time
		requests.Go(func() error { return d.server.Shutdown(stop) })
		if d.sftp != nil {
			requests.Go(func() error { return d.sftp.Shutdown(stop) })
		}
		if err := requests.Wait(); err != nil {
			d.log.Warn("some requests were cut off", "err", err)
		}
	})
	d.hub.Close()
	if fault := d.store.Err(); fault != nil { // parts that need the store may have ended first
		err = fmt.Errorf("%w: nothing can be stored any more, so berth ends, and its service manager starts it again; "+
			"containers run on; if this comes again, check the disk of %s", fault, d.settings.Current().Storage.DataPath)
	}
	return errors.Join(err, d.engine.Close(), d.mounts.Close(), d.store.Close())
}

// runParts runs parts and loops until ctx ends, or one of them does, which is an error. Then it
// calls shutdown, ends the loops and waits for them, and then the parts, which the loops use.
func runParts(ctx context.Context, parts, loops []part, shutdown func()) error {
	base, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	group, working := errgroup.WithContext(base)
	start := func(list []part) (stop func()) {
		work, end := context.WithCancel(base)
		var running sync.WaitGroup
		for _, p := range list {
			running.Add(1)
			group.Go(func() error {
				defer running.Done()
				err := p.run(work)
				if ctx.Err() != nil || working.Err() != nil || work.Err() != nil {
					return nil // it was stopped, or another part ended first
				}
				if err == nil {
					err = errors.New("it has to run until berth stops")
				}
				return fmt.Errorf("%s ended: %w", p.name, err)
			})
		}
		return func() { end(); running.Wait() }
	}
	stopParts := start(parts)
	stopLoops := start(loops)
	select {
	case <-ctx.Done():
	case <-working.Done():
	}
	shutdown()
	stopLoops()
	stopParts()
	return group.Wait()
}

// watchStore ends when the store can never be written again.
func (d *daemon) watchStore(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-d.store.Failed():
		return d.store.Err()
	}
}

// watchReload loads the configuration again at each signal.
func (d *daemon) watchReload(ctx context.Context, hup <-chan os.Signal) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-hup:
			d.reload()
		}
	}
}

func (d *daemon) reload() {
	d.notify(systemd.SdNotifyReloading)
	defer d.notify(systemd.SdNotifyReady)
	pending, err := d.settings.Reload()
	if err != nil {
		d.log.Error("the configuration was not reloaded; the old one stays in force", "err", err)
		return
	}
	if engine, does := d.engine.(interface{ Reload() error }); does { // it has credentials in a file of its own
		if err := engine.Reload(); err != nil {
			d.log.Error("the engine goes on with the credentials of before", "err", err)
		}
	}
	d.log.Info("the configuration was reloaded", "restart_required", pending)
}
