package cli

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"

	"berth/api/client"
	v1 "berth/api/v1"
)

// daemon is the daemon that a command calls.
type daemon struct {
	*client.Client
	tls *tls.Config // nil: the system's

	urlFrom, tokenFrom string // the flag, variable or file that gave them, for errors

	raw []byte // the body of the last response, for -o json
}

func newDaemon(address string, token v1.Secret, urlFrom, tokenFrom string, config *tls.Config) (*daemon, error) {
	d := &daemon{tls: config, urlFrom: urlFrom, tokenFrom: tokenFrom}
	var err error
	d.Client, err = client.New(client.Options{URL: address, Token: token, TLS: config, Retry: -1,
		Observe: func(_ *http.Request, _ *http.Response, body []byte) { d.raw = body }})
	return d, err
}

// explain adds the remedy to the error of a call.
func (d *daemon) explain(err error) error {
	var dial *net.OpError
	var failed *url.Error
	switch status := client.StatusOf(err); {
	case status == http.StatusUnauthorized:
		return fmt.Errorf("%w (at %s); the token came from %s: name the right one with --config or BERTH_TOKEN", err, d.URL(), d.tokenFrom)
	case status != 0, errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, client.ErrNotBerth):
		return fmt.Errorf("%s is not a berth daemon: %w; name the daemon with --url or --config", d.URL(), err)
	case errors.As(err, &dial) && dial.Op == "dial":
		return fmt.Errorf("no daemon answers at %s (from %s): %w; start it with make run or berth serve, or name another with --url or --config",
			d.URL(), d.urlFrom, dial.Err)
	case errors.As(err, &failed) && failed.Timeout():
		return fmt.Errorf("the daemon at %s did not answer in time", d.URL())
	case failed != nil:
		return fmt.Errorf("%s (from %s): %w; check the address, and whether it is http or https", d.URL(), d.urlFrom, failed.Err)
	}
	return err
}
