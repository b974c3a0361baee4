package cli

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	v1 "berth/api/v1"
	"berth/cmd/berth/config"
)

// The environment variables of the client. The token has no flag, because every user
// of the host can read the arguments of a process.
const (
	envURL   = config.EnvPrefix + "URL"
	envToken = config.EnvPrefix + "TOKEN"
)

// connector connects the client commands to a daemon.
type connector struct {
	loader *config.Loader
	url    string // --url
}

// run carries out a client command.
type run func(cmd *cobra.Command, api *client, args []string) error

// command completes a client command. do is called with a connected client.
func (c *connector) command(cmd *cobra.Command, do run) *cobra.Command {
	cmd.Flags().StringVar(&c.url, "url", "", "URL of the daemon (default $"+envURL+", else from the configuration)")
	cmd.Args = withRemedy(cmd.Args)
	cmd.ValidArgsFunction = cobra.NoFileCompletions // no argument is a file; flags may be
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		api, err := c.connect()
		if err != nil {
			return err
		}
		return do(cmd, api, args)
	}
	return cmd
}

// withRemedy adds the usage to the error of an argument check.
func withRemedy(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if check == nil {
			check = cobra.NoArgs
		}
		if err := check(cmd, args); err != nil {
			return fmt.Errorf("%w; usage: %s", err, cmd.UseLine())
		}
		return nil
	}
}

// connect returns a client from the flags, the environment and the configuration.
// With a URL and a token it does not need the configuration.
func (c *connector) connect() (*client, error) {
	address, at := c.address()
	token := v1.Secret(c.loader.Env(envToken))
	if address != "" && token != "" {
		base, err := parseURL(address)
		return newClient(base, token, at, envToken, nil), err
	}
	l, err := c.loader.Load()
	if err != nil {
		return nil, c.missing(err)
	}
	if address == "" {
		at = l.Path
	}
	base, err := daemonURL(l.Config.Server)
	if address != "" {
		base, err = parseURL(address)
		if err == nil && !v1.IsLoopback(base.Hostname()) {
			err = fmt.Errorf("the token of %s is not sent to another host: set %s to one of %s", l.Path, envToken, base)
		}
	}
	if err != nil {
		return nil, err
	}
	from := l.Path
	if token == "" {
		token = l.Config.Authorization.Token
	} else {
		from = envToken
	}
	return newClient(base, token, at, from, trust(l)), nil
}

// address returns the URL that the flag or the environment gives, and which of them.
func (c *connector) address() (text, at string) {
	if c.url != "" {
		return c.url, "--url"
	}
	return c.loader.Env(envURL), envURL
}

// missing adds the remedy to the error of a configuration that cannot be read.
func (c *connector) missing(err error) error {
	path := c.loader.Path()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("there is no configuration at %s: start the daemon (make run) to get one, name another with --config or BERTH_CONFIG, or set %s and %s",
			path, envURL, envToken)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%s may not be read by you: use sudo, or set %s and %s", path, envURL, envToken)
	}
	return fmt.Errorf("%s: %w", path, err)
}

func parseURL(address string) (*url.URL, error) {
	base, err := url.Parse(strings.TrimRight(address, "/"))
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
		return nil, fmt.Errorf("%q is not a URL such as http://127.0.0.1:8070", address)
	}
	return base, nil
}

// daemonURL returns the URL at which a daemon with this configuration is reached from its host.
func daemonURL(c v1.ServerConfig) (*url.URL, error) {
	if c.Port == 0 {
		return nil, errors.New("server.port is 0, so only the daemon knows its port: name it with --url")
	}
	host := c.Host
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	base := &url.URL{Scheme: "http", Host: net.JoinHostPort(host, strconv.Itoa(c.Port))}
	if c.TLS.Enabled() {
		base.Scheme = "https"
	}
	return base, nil
}

// trust returns a TLS configuration that accepts the daemon's own certificate,
// whatever its name, and the certificates that the system trusts. It is nil without TLS.
func trust(l config.Loaded) *tls.Config {
	if l.Certificate == nil || l.Certificate.Leaf == nil {
		return nil
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
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
