package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"berth/api/client"
	v1 "berth/api/v1"
)

// waiting are the flags of a command that can wait until its requests are carried out.
type waiting struct {
	enabled bool
	timeout time.Duration
}

// addWaitFlags adds --wait and --timeout to cmd.
func addWaitFlags(cmd *cobra.Command) *waiting {
	w := new(waiting)
	cmd.Flags().BoolVar(&w.enabled, "wait", false, "wait until the request is carried out, and show the progress on standard error")
	addTimeoutFlag(cmd, w)
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if cmd.Flags().Changed("timeout") && !w.enabled {
			return withCode(exitUsage, errors.New("--timeout needs --wait"))
		}
		return run(cmd, args)
	}
	return w
}

func addTimeoutFlag(cmd *cobra.Command, w *waiting) {
	cmd.Flags().DurationVar(&w.timeout, "timeout", 5*time.Minute, "how long to wait at most")
}

// request makes a request for each of ids in turn, and then waits for the goal of those
// that succeeded, or prints their responses.
func (w *waiting) request(cmd *cobra.Command, d *daemon, ids []string, g goal, do func(id string) (message string, err error)) error {
	var accepted []string
	err := each(cmd.Context(), d, ids, func(id string) error {
		message, err := do(id)
		if err != nil {
			return err
		}
		accepted = append(accepted, id)
		if w.enabled {
			return nil
		}
		return printDone(cmd, d.raw, id, "%s: %s", id, message)
	})
	if !w.enabled || len(accepted) == 0 {
		return err
	}
	return errors.Join(err, w.wait(cmd, d, accepted, g))
}

func newWaitCommand(c *connector) *cobra.Command {
	var w waiting
	cmd := c.command(&cobra.Command{
		Use:   "wait <id>... <state>",
		Short: "Wait until containers are in a state",
		Long: "Wait until containers are in one of the states ready, running, exit, failed and deleted, and all earlier\n" +
			"requests are carried out: after `berth restart`, the command waits for the new run. A daemon or an engine that\n" +
			"does not answer is waited for too. The progress is shown on standard error.",
		Example: "  berth start survival && berth wait survival running --timeout 2m",
		Args:    cobra.MinimumNArgs(2),
	}, func(cmd *cobra.Command, d *daemon, args []string) error {
		state := args[len(args)-1]
		g := goal{name: state, states: []v1.Phase{v1.Phase(state)}}
		if state == deleted {
			g.states = nil
		} else if !slices.Contains(waitStates(), state) {
			return withCode(exitUsage,
				fmt.Errorf("cannot wait for %q: %swait for %s", state, passing(state), strings.Join(waitStates(), ", ")))
		}
		return w.wait(cmd, d, args[:len(args)-1], g)
	})
	addTimeoutFlag(cmd, &w)
	return cmd
}

// wait waits until every container has reached the goal, and prints a line for each.
// One that cannot reach it any more does not keep it from the others.
func (w *waiting) wait(cmd *cobra.Command, d *daemon, ids []string, g goal) error {
	ctx, cancel := context.WithTimeout(cmd.Context(), w.timeout)
	defer cancel()
	r := &round{cmd: cmd, daemon: d, goal: g, progress: newWaitProgress(cmd, d)}
	for i, id := range ids {
		if !slices.Contains(ids[:i], id) {
			r.pending = append(r.pending, &waited{id: id})
		}
	}
	defer r.progress.clear()
	tick := time.NewTicker(waitInterval)
	defer tick.Stop()
	for {
		r.pending = slices.DeleteFunc(r.pending, func(c *waited) bool { return r.finished(ctx, c) })
		if r.printErr != nil || len(r.pending) == 0 {
			return errors.Join(append(r.failed, r.printErr)...)
		}
		if ctx.Err() != nil {
			return r.timedOut(ctx)
		}
		if err := r.progress.show(ctx, r.pending); err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return r.timedOut(ctx)
		}
	}
}

// waited is a container that a command waits for.
type waited struct {
	id   string
	last client.Container // as last observed; its State is empty before
	ran  bool             // a run was observed since the command began
	err  error            // of the last request, if another one may succeed
}

// observe records the state of the container.
func (w *waited) observe(c client.Container) {
	before, known := w.last.StartedAt, w.last.State != ""
	restarted := known && c.StartedAt != nil && (before == nil || !before.Equal(*c.StartedAt))
	w.ran = w.ran || restarted || c.State.Active()
	w.last, w.err = c, nil
}

// gaveUp reports whether the run has exited and the daemon does not start another one.
// The exit of a run before the command began does not count.
func (w *waited) gaveUp() bool {
	return w.ran && w.last.State == v1.Exit && w.last.NextRetryAt == nil && w.last.Message == ""
}

// round polls the containers that have not reached a goal.
type round struct {
	cmd      *cobra.Command
	daemon   *daemon
	goal     goal
	pending  []*waited
	failed   []error
	printErr error
	progress *waitProgress
}

// finished polls a container, and reports whether it has reached the goal or cannot
// reach it any more.
func (r *round) finished(ctx context.Context, w *waited) bool {
	c, err := r.daemon.Containers().Get(ctx, w.id)
	switch {
	case len(r.goal.states) == 0 && client.StatusOf(err) == http.StatusNotFound:
		raw, err := json.Marshal(map[string]string{"internal_id": w.id, "state": deleted})
		r.printErr = errors.Join(r.printErr, err)
		return r.done(raw, w.id)
	case err != nil && ctx.Err() != nil: // the timeout has ended this request
		if w.err == nil {
			w.err = r.daemon.explain(err)
		}
		return false
	case err != nil && transient(err): // the daemon may be starting
		w.err = r.daemon.explain(err)
		return false
	case err != nil:
		r.failed = append(r.failed, r.daemon.explain(fmt.Errorf("%s: %w", w.id, err)))
		return true
	}
	w.observe(c)
	switch {
	case !c.Observed() || len(r.goal.states) == 0 || lastObserved(c):
		return false
	case slices.Contains(r.goal.states, c.State):
		return r.done(r.daemon.raw, w.id)
	case c.State == v1.Failed, r.goal.name == "running" && w.gaveUp():
		text := w.id + " is " + string(c.State)
		if reason := why(c.ContainerState, time.Now()); reason != "" {
			text += ": " + reason
		}
		r.failed = append(r.failed, errors.New(text))
		return true
	}
	return false
}

// lastObserved reports whether a container ran when the engine last answered: it may have
// exited since. Without a run the state cannot change while the engine is away.
func lastObserved(c client.Container) bool {
	return c.State == v1.Running && v1.FindCondition(c.Conditions, v1.EngineReachable).Status == v1.False
}

func (r *round) done(raw []byte, id string) bool {
	r.progress.clear()
	r.printErr = errors.Join(r.printErr, printDone(r.cmd, raw, id, "%s is %s", id, r.goal.name))
	return true
}

// readyTimeout is how long a wait that has timed out asks whether the daemon is ready.
const readyTimeout = 10 * time.Second

// timedOut returns the error of a wait whose context has ended. It names why the daemon
// is not ready: then no request is carried out.
func (r *round) timedOut(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return ctx.Err()
	}
	readiness, cancel := context.WithTimeout(r.cmd.Context(), readyTimeout)
	defer cancel()
	notReady, _ := unready(readiness, r.daemon) // without an answer, the state alone is reported
	for _, w := range r.pending {
		if w.last.State == "" || codeOf(w.err) == exitUnavailable {
			r.failed = append(r.failed, withCode(codeOf(w.err), fmt.Errorf("%s is not %s in time: %w%s", w.id, r.goal.name, w.err, because(notReady))))
			continue
		}
		text := string(w.last.State)
		switch {
		case lastObserved(w.last):
			text += " as last observed"
		case !w.last.Observed():
			text += ", and its newest request is not carried out yet"
		}
		if reason := why(w.last.ContainerState, time.Now()); reason != "" {
			text += ", " + reason
		}
		r.failed = append(r.failed, withCode(exitTimeout, fmt.Errorf("%s is not %s in time: it is %s%s", w.id, r.goal.name, text, because(notReady))))
	}
	return errors.Join(r.failed...)
}
