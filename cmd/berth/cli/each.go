package cli

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"berth/api/client"
)

// each calls do for each of ids in turn. An error does not keep it from the others,
// unless they would fail in the same way: the daemon does not answer, refuses the
// token, or the command is interrupted. It returns all errors.
func each(ctx context.Context, d *daemon, ids []string, do func(id string) error) error {
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
