package cli

import (
	"context"
	"errors"
	"net/http"
	"slices"

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
