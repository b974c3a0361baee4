package main

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
)

// The environment of the client. There is no flag for the token: the arguments
// of a process can be read by everybody.
const (
	envURL   = envPrefix + "URL"
	envToken = envPrefix + "TOKEN"
)

// cli is what the client commands share.
type cli struct {
	loader *loader
	url    string // --url
}

// run is what a client command does.
type run func(cmd *cobra.Command, api *client, args []string) error

// command completes a client command, which is given a client.
func (c *cli) command(cmd *cobra.Command, do run) *cobra.Command {
	cmd.Flags().StringVar(&c.url, "url", "", "address of the daemon (default $"+envURL+", else that of the configuration)")
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

// withRemedy adds the usage to a complaint about arguments.
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

// connect makes a client of the flags, the environment and the configuration.
// With an address and a token at hand no configuration is needed.
func (c *cli) connect() (*client, error) {
	address, at := c.address()
	token := v1.Secret(c.loader.env[envToken])
	if address != "" && token != "" {
		base, err := parseURL(address)
		return newClient(base, token, at, envToken, nil), err
	}
	l, err := c.loader.load()
	if err != nil {
		return nil, c.missing(err)
	}
	if address == "" {
		at = l.path
	}
	base, err := daemonURL(l.config.Server)
	if address != "" {
		base, err = parseURL(address)
		if err == nil && !v1.IsLoopback(base.Hostname()) {
			err = fmt.Errorf("the token of %s is not sent to another host: set %s to one of %s", l.path, envToken, base)
		}
	}
	if err != nil {
		return nil, err
	}
	from := l.path
	if token == "" {
		token = l.config.Authorization.Token
	} else {
		from = envToken
	}
	return newClient(base, token, at, from, trust(l)), nil
}

// address is what the flag or the environment says of it, and which of them.
func (c *cli) address() (text, at string) {
	if c.url != "" {
		return c.url, "--url"
	}
	return c.loader.env[envURL], envURL
}

// missing says what to do about a configuration that cannot be read.
func (c *cli) missing(err error) error {
	path := c.loader.path()
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
		return nil, fmt.Errorf("%q is no address such as http://127.0.0.1:8070", address)
	}
	return base, nil
}

// daemonURL is where a daemon with this configuration is reached on its host.
func daemonURL(c v1.ServerConfig) (*url.URL, error) {
	if c.Port == 0 {
		return nil, errors.New("server.port is 0, so the port is known to the daemon only: name it with --url")
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

// trust makes a client take the daemon's own certificate, whatever name it is
// for, as well as those that the system trusts. Nil without TLS.
func trust(l loaded) *tls.Config {
	if l.certificate == nil || l.certificate.Leaf == nil {
		return nil
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if pem, err := os.ReadFile(l.config.Server.TLS.Cert); err == nil {
		pool.AppendCertsFromPEM(pem)
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool}
	leaf := l.certificate.Leaf
	switch {
	case len(leaf.DNSNames) > 0:
		config.ServerName = strings.Replace(leaf.DNSNames[0], "*", "node", 1)
	case len(leaf.IPAddresses) > 0:
		config.ServerName = leaf.IPAddresses[0].String()
	}
	return config
}
