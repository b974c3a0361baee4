package cli

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"

	"berth/api/client"
	v1 "berth/api/v1"
)

// explain adds the remedy to the error of a call.
func (d *daemon) explain(err error) error {
	var explained *exitErr
	if errors.As(err, &explained) {
		return err
	}
	var dial *net.OpError
	var failed *url.Error
	switch status := client.StatusOf(err); {
	case status == http.StatusUnauthorized:
		remedy := "name the right one with --config or BERTH_TOKEN"
		if name, is := strings.CutPrefix(d.tokenFrom, contextFrom); is {
			remedy = "replace it with berth context set " + name + " --token-file"
		}
		return withCode(exitDenied, fmt.Errorf("%w (at %s); the token came from %s: %s", err, d.URL(), d.tokenFrom, remedy))
	case errors.Is(err, v1.ErrStoreDiskFull):
		return withCode(codeOf(err), fmt.Errorf("%w: the disk of the daemon's storage.data_path is full; free space on it, then try again", err))
	case errors.Is(err, v1.ErrStoreFailed):
		return withCode(codeOf(err), fmt.Errorf("%w: the daemon cannot write its store; berth doctor names the cause", err))
	case status != 0, errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, client.ErrNotBerth):
		return fmt.Errorf("%s is not a berth daemon: %w; name the daemon with --url or --config", d.URL(), err)
	case errors.As(err, &dial) && dial.Op == "dial":
		return withCode(exitUnavailable,
			fmt.Errorf("no daemon answers at %s (from %s): %w; start it with berth serve or systemctl start berth, or name another with --url or --config",
				d.URL(), d.urlFrom, dial.Err))
	case errors.As(err, &failed) && failed.Timeout():
		return withCode(exitTimeout, fmt.Errorf("the daemon at %s did not answer in time", d.URL()))
	case failed != nil:
		return withCode(exitUnavailable,
			fmt.Errorf("%s (from %s): %w; %s", d.URL(), d.urlFrom, failed.Err, remedy(d.URL(), d.urlFrom, failed.Err)))
	}
	return err
}

// remedy returns what to do about a connection to address that failed after it was open.
func remedy(address, from string, err error) string {
	var certificate *tls.CertificateVerificationError
	host := strings.TrimPrefix(strings.TrimPrefix(address, "http://"), "https://")
	text := "check the address, and whether it is http or https"
	switch {
	case errors.As(err, &certificate):
		return "if this is the daemon, trust its certificate: berth context set <name> --url " + address + " --ca-file <file>"
	case errors.Is(err, http.ErrSchemeMismatch):
		text = "it does not use TLS: its URL is http://" + host
	case errors.Is(err, io.EOF) && strings.HasPrefix(address, "http://"):
		text = "if it uses TLS, its URL is https://" + host
	}
	if from != urlFlag && from != envURL && !strings.HasPrefix(from, contextFrom) {
		text += "; the daemon may not have been restarted since server.tls changed"
	}
	return text
}
