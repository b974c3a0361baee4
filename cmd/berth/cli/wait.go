package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
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
	cmd.Flags().BoolVar(&w.enabled, "wait", false, "wait until the request is carried out, and report changes on standard error")
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
	err := d.each(cmd.Context(), ids, func(id string) error {
		message, err := do(id)
		if err != nil {
			return fmt.Errorf("%s %s: %w", cmd.Name(), id, err)
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
			"does not answer is waited for too. Changes are reported on standard error.",
		Example: "  berth start survival && berth wait survival running --timeout 2m",
		Args:    cobra.MinimumNArgs(2),
	}, func(cmd *cobra.Command, d *daemon, args []string) error {
		state := args[len(args)-1]
		g := goal{name: state, states: []v1.Phase{v1.Phase(state)}}
		if state == deleted {
			g.states = nil
		} else if !slices.Contains(waitStates(), state) {
			return withCode(exitUsage, fmt.Errorf("cannot wait for %q: wait for %s", state, strings.Join(waitStates(), ", ")))
		}
		return w.wait(cmd, d, args[:len(args)-1], g)
	})
	addTimeoutFlag(cmd, &w)
	return cmd
}

// deleted is the state for `berth wait` of a container that does not exist any more.
const deleted = "deleted"

// waitStates returns the states that a container stays in, for `berth wait`.
func waitStates() []string {
	return []string{string(v1.Ready), string(v1.Running), string(v1.Exit), string(v1.Failed), deleted}
}

// goal is what a command waits for.
type goal struct {
	name   string     // "running", or "stopped"
	states []v1.Phase // any of them; none: the container is deleted

	gracefully bool // the goal is not reached if the run had to be killed
}

// goalOf returns the goal of an action.
func goalOf(a client.Action) goal {
	switch a {
	case client.Stop, client.Kill:
		return goal{name: "stopped", states: []v1.Phase{v1.Exit, v1.Ready, v1.Failed}, gracefully: a == client.Stop}
	case client.Reinstall:
		return goal{name: "ready", states: []v1.Phase{v1.Ready}}
	}
	return goal{name: "running", states: []v1.Phase{v1.Running}}
}

// waitInterval is the time between two requests for the state of what a command waits for.
const waitInterval = 200 * time.Millisecond

// task is something that a command waits for.
type task struct {
	id string

	// ask requests its state, in words. When it has ended, or cannot reach its goal any
	// more, ended is true and err its result.
	ask func(ctx context.Context) (state string, ended bool, err error)

	late func() error // the error of a timeout

	reported string
	err      error // of the newest request, if another one may succeed
}

// await waits until all tasks have ended, over restarts of the daemon, and reports each
// change of a state on standard error. It returns the errors of all of them.
func (w *waiting) await(cmd *cobra.Command, d *daemon, tasks ...*task) error {
	ctx, cancel := context.WithTimeout(cmd.Context(), w.timeout)
	defer cancel()
	tick := time.NewTicker(waitInterval)
	defer tick.Stop()
	var results []error
	for {
		tasks = slices.DeleteFunc(tasks, func(t *task) bool {
			ended, err := t.poll(ctx, cmd.ErrOrStderr(), d)
			results = append(results, err)
			return ended
		})
		if len(tasks) == 0 {
			return errors.Join(results...)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.Canceled) {
				return ctx.Err()
			}
			return errors.Join(append(results, timedOut(cmd.Context(), d, tasks))...)
		}
	}
}

// poll asks for the state of a task once.
func (t *task) poll(ctx context.Context, out io.Writer, d *daemon) (ended bool, err error) {
	state, ended, err := t.ask(ctx)
	switch {
	case ended:
		return true, err
	case err != nil && ctx.Err() != nil: // the timeout has ended this request
		if t.err == nil {
			t.err = d.explain(err)
		}
		return false, nil
	case err != nil && !transient(err):
		return true, d.explain(fmt.Errorf("%s: %w", t.id, err))
	}
	if t.err = nil; err != nil { // the daemon may be starting
		t.err = d.explain(err)
		state = t.err.Error()
	}
	if line := printable(t.id + ": " + state); line != t.reported {
		t.reported = line
		_, err := fmt.Fprintln(out, line)
		return err != nil, err
	}
	return false, nil
}

// readyTimeout is how long a wait that has timed out asks whether the daemon is ready.
const readyTimeout = 10 * time.Second

// timedOut returns the errors of tasks that have not ended in time. They name why the
// daemon is not ready: then no request is carried out.
func timedOut(ctx context.Context, d *daemon, tasks []*task) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	notReady, _ := d.unready(ctx) // without an answer, the state alone is reported
	failed := make([]error, len(tasks))
	for i, t := range tasks {
		err := t.late()
		failed[i] = withCode(codeOf(err), fmt.Errorf("%w%s", err, because(notReady)))
	}
	return errors.Join(failed...)
}

// transient reports whether a request failed because the daemon does not answer now, as
// while it starts. A wrong name or certificate is not that.
func transient(err error) bool {
	var op *net.OpError
	var name *net.DNSError
	switch {
	case codeOf(err) == exitUnavailable, codeOf(err) == exitTimeout, errors.Is(err, context.DeadlineExceeded),
		errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return true
	case errors.As(err, &name) || !errors.As(err, &op):
		return false
	}
	return op.Op == "dial" || op.Op == "read" || op.Op == "write"
}

// waited is a container that a command waits for.
type waited struct {
	task
	cmd    *cobra.Command
	daemon *daemon
	goal   goal

	last v1.ContainerView // as last observed; its State is empty before
	ran  bool             // a run was observed since the command began
}

// wait waits until every container has reached the goal, and prints a line for each.
// One that cannot reach it any more does not keep it from the others.
func (w *waiting) wait(cmd *cobra.Command, d *daemon, ids []string, g goal) error {
	var tasks []*task
	for i, id := range ids {
		if slices.Contains(ids[:i], id) {
			continue
		}
		c := &waited{task: task{id: id}, cmd: cmd, daemon: d, goal: g}
		c.ask, c.late = c.askState, c.lateError
		tasks = append(tasks, &c.task)
	}
	return w.await(cmd, d, tasks...)
}

// askState requests the state of the container, and prints the container when it has
// reached its goal.
func (w *waited) askState(ctx context.Context) (state string, ended bool, err error) {
	c, err := w.daemon.Containers().Get(ctx, w.id)
	if len(w.goal.states) == 0 && client.StatusOf(err) == http.StatusNotFound {
		raw, err := json.Marshal(map[string]string{"internal_id": w.id, "state": deleted})
		return "", true, errors.Join(err, w.done(raw))
	}
	if err != nil {
		return "", false, err
	}
	w.observe(c)
	switch {
	case !c.Observed() || len(w.goal.states) == 0 || lastObserved(c):
	case w.ran && w.goal.gracefully && c.State == v1.Exit &&
		v1.FindCondition(c.Conditions, v1.Started).Reason == v1.ReasonKilled && c.Message != "":
		return "", true, fmt.Errorf("%s %s", w.id, c.Message)
	case slices.Contains(w.goal.states, c.State):
		return "", true, w.done(w.daemon.raw)
	case c.State == v1.Failed, w.goal.name == "running" && w.gaveUp():
		text := w.id + " is " + string(c.State)
		if reason := why(c.ContainerState, time.Now()); reason != "" {
			text += ": " + reason
		}
		return "", true, errors.New(text)
	}
	state = string(c.State)
	if lastObserved(c) {
		state += " when the engine last answered"
	}
	if c.Message != "" {
		state += ", " + string(c.Message)
	}
	return state, false, nil
}

func (w *waited) done(raw []byte) error {
	return printDone(w.cmd, raw, w.id, "%s is %s", w.id, w.goal.name)
}

// observe records the state of the container.
func (w *waited) observe(c v1.ContainerView) {
	before, known := w.last.StartedAt, w.last.State != ""
	restarted := known && c.StartedAt != nil && (before == nil || !before.Equal(*c.StartedAt))
	w.ran = w.ran || restarted || c.State.Active()
	w.last = c
}

// gaveUp reports whether the run has exited and the daemon does not start another one.
// The exit of a run before the command began does not count.
func (w *waited) gaveUp() bool {
	return w.ran && w.last.State == v1.Exit && w.last.NextRetryAt == nil && w.last.Message == ""
}

// lastObserved reports whether a container ran when the engine last answered: it may have
// exited since. Without a run the state cannot change while the engine is away.
func lastObserved(c v1.ContainerView) bool {
	return c.State == v1.Running && v1.FindCondition(c.Conditions, v1.EngineReachable).Status == v1.False
}

// lateError returns the error of a timeout.
func (w *waited) lateError() error {
	if w.last.State == "" || codeOf(w.err) == exitUnavailable {
		return withCode(codeOf(w.err), fmt.Errorf("%s is not %s in time: %w", w.id, w.goal.name, w.err))
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
	return withCode(exitTimeout, fmt.Errorf("%s is not %s in time: it is %s", w.id, w.goal.name, text))
}
