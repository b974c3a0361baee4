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
	"slices"
	"strings"

	"github.com/fasthttp/websocket"
	"github.com/spf13/cobra"

	"berth/api/client"
	v1 "berth/api/v1"
)

// The exit codes of the command line. exitHelp documents them.
const (
	exitError       = 1
	exitUsage       = 2
	exitNotFound    = 3
	exitDenied      = 4
	exitConflict    = 5
	exitTimeout     = 6
	exitUnavailable = 7
	exitInterrupted = 130
)

const exitHelp = `Exit codes: 0 success, 1 failure, 2 wrong usage, 3 not found, 4 token or permission refused,
5 conflict with the current state, 6 timeout, 7 daemon not reachable or not ready, 130 interrupted.
A command for several objects does all of them, and exits with the gravest code.`

// ErrReported is returned by a command that has printed the reason for its failure.
var ErrReported = errors.New("errors were reported")

// ErrInterrupted is the error of a command that Ctrl-C or SIGTERM has ended.
var ErrInterrupted error = &exitErr{exitInterrupted, errors.New("interrupted")}

// exitErr is an error with an exit code.
type exitErr struct {
	code int
	err  error
}

func (e *exitErr) Error() string { return e.err.Error() }

func (e *exitErr) Unwrap() error { return e.err }

// withCode gives an error an exit code.
func withCode(code int, err error) error { return &exitErr{code, err} }

// ExitCode returns the exit code for the error of a root command. An error without a
// code arose before the command ran, and is one of usage.
func ExitCode(err error) int {
	var e *exitErr
	switch {
	case err == nil:
		return 0
	case errors.As(err, &e):
		return e.code
	}
	return exitUsage
}

// classified makes cmd and its subcommands return errors with exit codes.
func classified(cmd *cobra.Command) {
	if run := cmd.RunE; run != nil {
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			err := run(cmd, args)
			if err == nil {
				return nil
			}
			if cmd.Context().Err() != nil && errors.Is(err, context.Canceled) {
				return ErrInterrupted
			}
			return withCode(codeOf(err), err)
		}
	}
	for _, child := range cmd.Commands() {
		classified(child)
	}
}

// codeOf returns the exit code for an error; of several joined errors that of the
// gravest.
func codeOf(err error) int {
	switch e := err.(type) { // the chain is walked here, because it may branch
	case *exitErr:
		return e.code
	case *client.Error:
		return codeOfResponse(e)
	case *client.CloseError:
		return codeOfClose(e)
	case interface{ Unwrap() []error }:
		codes := make([]int, 0, 2)
		for _, each := range e.Unwrap() {
			codes = append(codes, codeOf(each))
		}
		return gravest(codes)
	case interface{ Unwrap() error }:
		if below := e.Unwrap(); below != nil {
			return codeOf(below)
		}
	}
	if err == context.DeadlineExceeded {
		return exitTimeout
	}
	return exitError
}

func gravest(codes []int) int {
	for _, code := range []int{exitInterrupted, exitUnavailable, exitDenied, exitTimeout, exitError, exitConflict, exitNotFound} {
		if slices.Contains(codes, code) {
			return code
		}
	}
	return exitUsage
}

func codeOfResponse(e *client.Error) int {
	conflicts := []v1.Code{v1.PortExists, v1.ContainerExists, v1.ContainerDeleting, v1.StillInstalling, v1.NotRunning,
		v1.PortBound, v1.VolumeInUse, v1.FileExists, v1.Precondition}
	switch {
	case slices.Contains(conflicts, e.Code), e.Status == http.StatusConflict, e.Status == http.StatusPreconditionFailed:
		return exitConflict
	case e.Status == http.StatusNotFound:
		return exitNotFound
	case e.Status == http.StatusUnauthorized, e.Status == http.StatusForbidden:
		return exitDenied
	case e.Status == http.StatusRequestTimeout, e.Status == http.StatusGatewayTimeout:
		return exitTimeout
	case e.Status == http.StatusBadGateway, e.Status == http.StatusServiceUnavailable:
		return exitUnavailable
	}
	return exitError
}

func codeOfClose(e *client.CloseError) int {
	switch {
	case e.Deleted():
		return exitNotFound
	case e.Code == websocket.ClosePolicyViolation:
		return exitDenied
	}
	return exitUnavailable
}

// each calls do for each of ids in turn. An error does not keep it from the others,
// unless they would fail in the same way: the daemon does not answer, refuses the
// token, or the command is interrupted. It returns all errors.
func (d *daemon) each(ctx context.Context, ids []string, do func(id string) error) error {
	var failed []error
	for i, id := range ids {
		err := do(id)
		if err == nil {
			continue
		}
		failed = append(failed, d.explain(err))
		hopeless := codeOf(failed[len(failed)-1]) == exitUnavailable || client.StatusOf(err) == http.StatusUnauthorized || ctx.Err() != nil
		if rest := ids[i+1:]; hopeless && len(rest) > 0 {
			failed = append(failed, errors.New("not tried: "+strings.Join(rest, ", ")))
			break
		}
	}
	return errors.Join(failed...)
}

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
	case errors.Is(err, v1.ErrBackupNotFound):
		return withCode(codeOf(err), fmt.Errorf("%w; berth backup list shows the ids of backups", err))
	case errors.Is(err, v1.ErrPortNotInPool):
		return withCode(codeOf(err), fmt.Errorf("%w; berth ports add adds it", err))
	case status != 0, errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, client.ErrNotBerth):
		return fmt.Errorf("%s is not a berth daemon: %w; name the daemon with --url or --config", d.URL(), err)
	case errors.As(err, &dial) && dial.Op == "dial":
		return withCode(exitUnavailable,
			fmt.Errorf("no daemon answers at %s (from %s): %w; start it with berth serve or systemctl start berth, or name another with --url "+
				"or --config",
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

// unready returns the reason why a daemon that answers is not ready, or "".
func (d *daemon) unready(ctx context.Context) (reason string, err error) {
	err = d.Ready(ctx)
	if client.StatusOf(err) != http.StatusServiceUnavailable {
		return "", err
	}
	return strings.TrimPrefix(err.Error(), "Not ready: "), nil
}

// because returns the end of an error that names why the daemon is not ready; empty if it
// is, or if that is unknown.
func because(notReady string) string {
	if notReady == "" {
		return ""
	}
	return "; the daemon is not ready: " + notReady
}
