package cli

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"berth/api/client"
	v1 "berth/api/v1"
	"berth/cmd/berth/config"
)

// The environment variables of the client. The token has no flag, because every user
// of the host can read the arguments of a process.
const (
	envURL     = config.EnvPrefix + "URL"
	envToken   = config.EnvPrefix + "TOKEN"
	envContext = config.EnvPrefix + "CONTEXT"
	envConfig  = config.EnvPrefix + "CONFIG"
)

// connector connects the client commands to a daemon.
type connector struct {
	loader  *config.Loader
	url     string // --url
	context string // --context
}

// command completes a client command: do is called with the daemon.
func (c *connector) command(cmd *cobra.Command, do func(cmd *cobra.Command, d *daemon, args []string) error) *cobra.Command {
	c.addURLFlag(cmd, "the context or the configuration")
	cmd.Flags().StringVar(&c.context, "context", "", "`name` of the daemon, as berth context lists them (default $"+envContext+
		", else the current one)")
	complete(cmd, "context", func(*cobra.Command) []cobra.Completion { return c.contextNames() })
	cmd.Args = withUsage(cmd.Args)
	cmd.ValidArgsFunction = cobra.NoFileCompletions // no argument is a file; flags may be
	cmd.RunE = c.run(do)
	return cmd
}

// run returns a RunE that calls do with the daemon.
func (c *connector) run(do func(cmd *cobra.Command, d *daemon, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		d, err := c.connect()
		if err != nil {
			return err
		}
		return d.explain(do(cmd, d, args))
	}
}

// withUsage adds the usage to the error of an argument check; nil allows none.
func withUsage(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		err := cobra.NoArgs(cmd, args)
		if check != nil {
			err = check(cmd, args)
		}
		if err != nil {
			return fmt.Errorf("%w; usage: %s", err, cmd.UseLine())
		}
		return nil
	}
}

// connect returns the daemon that the flags, the environment, the contexts and the
// configuration name, in the order of contextHelp.
func (c *connector) connect() (*daemon, error) {
	if c.context != "" && (c.url != "" || c.loader.File != "") {
		return nil, withCode(exitUsage, errors.New("--context names a daemon and its token: give it without --url and --config"))
	}
	explicit := c.url != "" || c.loader.File != "" || c.loader.Env(envURL) != ""
	name := c.context
	if name == "" && !explicit {
		name = c.loader.Env(envContext)
	}
	if name == "" && (explicit || c.loader.Env(envConfig) != "") {
		return c.connectHost()
	}
	set, err := loadContexts(c.contextPath())
	if err != nil {
		return nil, err
	}
	if name = cmp.Or(name, set.Current); name == "" {
		return c.connectHost()
	}
	found, known := set.Contexts[name]
	if !known {
		return nil, unknownContext(set, name)
	}
	return c.connectContext(name, found)
}

// urlFlag is the place of a URL that the flag gives.
const urlFlag = "--url"

// contextFrom begins the place of what comes from a context.
const contextFrom = "context "

// connectContext returns the daemon of a context.
func (c *connector) connectContext(name string, x savedContext) (*daemon, error) {
	from := contextFrom + name
	token, tokenFrom := x.Token.Secret, from
	if given := v1.Secret(c.loader.Env(envToken)); given != "" && c.context == "" {
		token, tokenFrom = given, envToken
	}
	var trusted *tls.Config
	if x.CA != "" {
		trusted = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: systemPool()}
		trusted.RootCAs.AppendCertsFromPEM([]byte(x.CA))
	}
	return newDaemon(x.URL, token, from, tokenFrom, trusted)
}

// systemPool returns the certificates that the system trusts.
func systemPool() *x509.CertPool {
	pool, err := x509.SystemCertPool()
	if err != nil {
		return x509.NewCertPool()
	}
	return pool
}

// connectHost returns the daemon that --url, the environment and the configuration name,
// without contexts. With a URL and a token it does not need the configuration.
func (c *connector) connectHost() (*daemon, error) {
	address, urlFrom := c.address()
	token, tokenFrom := v1.Secret(c.loader.Env(envToken)), envToken
	if address != "" && token != "" {
		return newDaemon(address, token, urlFrom, tokenFrom, nil)
	}
	l, err := c.loader.Load()
	if err != nil {
		return nil, c.missing(err)
	}
	if address == "" {
		urlFrom = l.Path
		address, err = daemonURL(l.Config.Server)
	} else if token == "" {
		err = checkLoopback(address, l.Path)
	}
	if err != nil {
		return nil, err
	}
	if token == "" {
		token, tokenFrom = l.Config.Authorization.Token, l.Path
	}
	return newDaemon(address, token, urlFrom, tokenFrom, trust(l))
}

// checkLoopback refuses to send the token of a configuration to another host.
func checkLoopback(address, path string) error {
	base, err := url.Parse(address)
	if err != nil || base.Host == "" || v1.IsLoopback(base.Hostname()) {
		return nil // newDaemon refuses a bad URL
	}
	return fmt.Errorf("the token of %s is not sent to another host: set %s to one of %s", path, envToken, base)
}

// address returns the URL that the flag or the environment gives, and which of them.
func (c *connector) address() (text, at string) {
	if c.url != "" {
		return c.url, urlFlag
	}
	return c.loader.Env(envURL), envURL
}

// missing adds the remedy to the error of a configuration that cannot be read.
func (c *connector) missing(err error) error {
	path := c.loader.Path()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("there is no configuration at %s: start the daemon (systemctl start berth, or make run in its sources) to get one, "+
			"name another with --config or BERTH_CONFIG, set %s and %s, or choose a daemon elsewhere with berth context",
			path, envURL, envToken)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%s may not be read by you: use sudo, or set %s and %s", path, envURL, envToken)
	}
	return fmt.Errorf("%s: %w", path, err)
}

// daemonURL returns the URL at which a daemon with this configuration is reached from its host.
func daemonURL(c v1.ServerConfig) (string, error) {
	if c.Port == 0 {
		return "", errors.New("server.port is 0, so only the daemon knows its port: name it with --url")
	}
	host := c.Host
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	scheme := "http://"
	if c.TLS.Enabled() {
		scheme = "https://"
	}
	return scheme + net.JoinHostPort(host, strconv.Itoa(c.Port)), nil
}

// trust returns a TLS configuration that accepts the daemon's own certificate,
// whatever its name, and the certificates that the system trusts. It is nil without TLS.
func trust(l config.Loaded) *tls.Config {
	if l.Certificate == nil || l.Certificate.Leaf == nil {
		return nil
	}
	pool := systemPool()
	if pem, err := os.ReadFile(l.Config.Server.TLS.Cert); err == nil {
		pool.AppendCertsFromPEM(pem)
	}
	out := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool}
	leaf := l.Certificate.Leaf
	switch {
	case len(leaf.DNSNames) > 0:
		out.ServerName = strings.Replace(leaf.DNSNames[0], "*", "node", 1)
	case len(leaf.IPAddresses) > 0:
		out.ServerName = leaf.IPAddresses[0].String()
	}
	return out
}

// daemon is the daemon that a command calls.
type daemon struct {
	*client.Client
	tls *tls.Config // nil: the system's

	urlFrom, tokenFrom string // the flag, variable or file that gave them, for errors

	raw []byte // the body of the last response, for -o json

	notices io.Writer // for a broken stream that is opened again
	broken  bool      // it was reported
}

func newDaemon(address string, token v1.Secret, urlFrom, tokenFrom string, config *tls.Config) (*daemon, error) {
	d := &daemon{tls: config, urlFrom: urlFrom, tokenFrom: tokenFrom, notices: io.Discard}
	var err error
	d.Client, err = client.New(client.Options{URL: address, Token: token, TLS: config, OnRetry: d.reportBroken,
		Observe: func(_ *http.Request, _ *http.Response, body []byte) { d.raw = body }})
	return d, err
}

// receive calls do with each message of a stream, and reports on notices that the stream is
// broken. It returns the first error.
func (d *daemon) receive(notices io.Writer, messages iter.Seq2[client.Message, error], do func(client.Message) error) error {
	d.notices = notices
	for m, err := range messages {
		if err != nil {
			return err
		}
		d.broken = false
		if err := do(m); err != nil {
			return err
		}
	}
	return nil
}

// reportBroken reports once that a stream is broken, until a message resets d.broken.
func (d *daemon) reportBroken(err error) {
	if !d.broken {
		_, _ = fmt.Fprintf(d.notices, "berth: %s; connecting again\n", err)
	}
	d.broken = true
}
