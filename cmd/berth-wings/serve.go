package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"berth/api/client"
	v1 "berth/api/v1"
	"berth/cmd/berth-wings/config"
	"berth/cmd/berth-wings/node"
	"berth/cmd/berth-wings/panel"
)

// defaultURL is where a daemon listens by default, and defaultSFTP where its SFTP has to: the bridge has the
// default port itself.
const (
	defaultURL  = "http://127.0.0.1:8070"
	defaultSFTP = "127.0.0.1:2023"
)

// The limits of connections. A file may take any time, so there is none for a whole request.
const (
	headerTime  = 10 * time.Second
	idleTime    = 2 * time.Minute
	maxHeader   = 64 << 10 // bytes; tokens are in addresses
	berthAnswer = time.Minute
)

// bridge serves the node of one file.
type bridge struct {
	path string
}

// open reads the node's file, and returns what a node of it needs.
func (b bridge) open(environ []string, log *slog.Logger) (o node.Options, err error) {
	file, err := config.Load(b.path, environ)
	if err != nil {
		return o, err
	}
	c := file.Config
	berth, err := connect(environ)
	if err != nil {
		return o, err
	}
	return node.Options{File: file, Environ: environ, Berth: berth, SFTP: variables(environ)["BERTH_SFTP"],
		Version: release(), Began: time.Now(), Log: log,
		Panel: panel.New(panel.Options{Remote: c.Remote, Identity: node.Identity(release(), c),
			Timeout: time.Duration(c.RemoteQuery.Timeout) * time.Second, PerPage: c.RemoteQuery.BootServersPerPage,
			Headers: c.RemoteQuery.CustomHeaders})}, nil
}

// run serves until ctx ends.
func (b bridge) run(ctx context.Context, environ []string, logs io.Writer) error {
	level := new(slog.LevelVar)
	log := slog.New(slog.NewTextHandler(logs, &slog.HandlerOptions{Level: level}))
	o, err := b.open(environ, log)
	if err != nil {
		return err
	}
	defer o.Berth.Close()
	c := o.File.Config
	if c.Debug {
		level.Set(slog.LevelDebug)
	}
	if len(o.File.Unused) > 0 {
		log.Info("keys of the file that berth-wings does not use", "keys", strings.Join(o.File.Unused, " "))
	}
	n, err := node.New(o)
	if err != nil {
		return err
	}
	listener, err := listen(ctx, c.API)
	if err != nil {
		return err
	}
	defer listener.Close()
	files, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(c.System.SFTP.Address, strconv.Itoa(c.System.SFTP.Port)))
	if err != nil {
		return fmt.Errorf("system.sftp: %w: berth's own SFTP belongs on another port, see $BERTH_SFTP", err)
	}
	defer files.Close()
	return serve(ctx, n, []net.Listener{listener, files}, log)
}

// variables returns the environment by name, with the defaults of what it lacks.
func variables(environ []string) map[string]string {
	env := map[string]string{"BERTH_URL": defaultURL, "BERTH_SFTP": defaultSFTP}
	for _, pair := range environ {
		if name, value, _ := strings.Cut(pair, "="); value != "" {
			env[name] = value
		}
	}
	return env
}

// connect returns a client of berth as the environment names it.
func connect(environ []string) (*client.Client, error) {
	env := variables(environ)
	token := env["BERTH_TOKEN"]
	if path := env["BERTH_TOKEN_FILE"]; token == "" && path != "" {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		token, _, _ = strings.Cut(string(text), "\n")
	}
	if token = strings.TrimSpace(token); token == "" {
		return nil, errors.New("there is no token of berth: set BERTH_TOKEN_FILE or BERTH_TOKEN, see berth-wings --help")
	}
	return client.New(client.Options{URL: env["BERTH_URL"], Token: v1.Secret(token), Timeout: berthAnswer})
}

// listen opens the listener for the panel and browsers.
func listen(ctx context.Context, api config.API) (net.Listener, error) {
	var settings *tls.Config
	if api.SSL.Enabled {
		pair, err := tls.LoadX509KeyPair(api.SSL.Cert, api.SSL.Key)
		if err != nil {
			return nil, fmt.Errorf("api.ssl: %w", err)
		}
		settings = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}}
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(api.Host, strconv.Itoa(api.Port)))
	if err != nil || settings == nil {
		return listener, err
	}
	return tls.NewListener(listener, settings), nil
}

// serve answers requests and SFTP, each with its listener, once the node has read its servers, until ctx ends.
func serve(ctx context.Context, n *node.Node, listeners []net.Listener, log *slog.Logger) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	server := &http.Server{Handler: n.Handler(), ReadHeaderTimeout: headerTime, IdleTimeout: idleTime, MaxHeaderBytes: maxHeader,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug)}
	n.Bound(server)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		return n.Run(ctx, func() {
			log.Info("serving", "address", listeners[0].Addr().String(), "sftp", listeners[1].Addr().String())
			group.Go(func() error { return n.ServeSFTP(ctx, listeners[1]) })
			group.Go(func() error {
				if err := server.Serve(listeners[0]); !errors.Is(err, http.ErrServerClosed) {
					return err
				}
				return nil
			})
			context.AfterFunc(ctx, func() { _ = server.Close() })
		})
	})
	return group.Wait()
}
