package cli

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"

	"berth/api/client"
	v1 "berth/api/v1"
)

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

// reportBroken reports once that a stream is broken, until a message resets d.broken.
func (d *daemon) reportBroken(err error) {
	if !d.broken {
		_, _ = fmt.Fprintf(d.notices, "berth: %s; connecting again\n", err)
	}
	d.broken = true
}
