package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	"berth/api/client"
)

// unready returns the reason why a daemon that answers is not ready, or "".
func unready(ctx context.Context, d *daemon) (reason string, err error) {
	err = d.Ready(ctx)
	if client.StatusOf(err) != http.StatusServiceUnavailable {
		return "", err
	}
	return strings.TrimPrefix(err.Error(), "Not ready: "), nil
}

// warnUnready prints why no events are stored now: no container has an event of its own
// while the engine does not answer or the store takes no changes.
func warnUnready(cmd *cobra.Command, d *daemon) error {
	reason, err := unready(cmd.Context(), d)
	if client.StatusOf(err) != 0 {
		return nil // the request for the events reports what is wrong
	}
	return errors.Join(err, warnMissing(cmd, "events", reason))
}

// warnMissing prints why some of what a command lists may be missing; "": the daemon is ready.
func warnMissing(cmd *cobra.Command, what, reason string) error {
	if reason == "" {
		return nil
	}
	_, err := fmt.Fprintf(cmd.ErrOrStderr(), "berth: the daemon is not ready, so %s may be missing: %s; berth doctor names what to do\n", what, reason)
	return err
}

// because returns the end of an error that names why the daemon is not ready; empty if it
// is, or if that is unknown.
func because(notReady string) string {
	if notReady == "" {
		return ""
	}
	return "; the daemon is not ready: " + notReady
}
