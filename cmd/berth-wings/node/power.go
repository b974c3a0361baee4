package node

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"berth/api/client"
	v1 "berth/api/v1"
)

// The times that a power action may take until it counts as done: others wait for it.
const (
	maxWait  = 300 // seconds that a request waits for another one
	stopTime = 11 * time.Minute
	killTime = time.Minute

	suspendTime = time.Minute // until a server that is suspended is killed

	// turnTime is how long an action of a page waits for another one: the page may see its end before it is over here.
	turnTime = time.Second
)

var (
	errBusy      = errors.New("another power action is currently being processed for this server, please try again later")
	errSuspended = errors.New("server is currently in a suspended state")
)

// takePower takes the turn of a power action, and returns the function that ends it. It waits for
// others that long at most.
func (s *server) takePower(ctx context.Context, wait time.Duration) (end func(), err error) {
	end = func() { s.power <- struct{}{} }
	select {
	case <-s.power:
		return end, nil
	default:
	}
	select {
	case <-s.power:
		return end, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(wait):
		return nil, errBusy
	}
}

func isAction(a client.Action) bool {
	return slices.Contains([]client.Action{client.Start, client.Stop, client.Restart, client.Kill}, a)
}

// A power action whose request was answered, and that is not done, is a label of the server's volume, with the id of the
// request behind the prefix: so the next bridge goes on with it.
const powerLabel = "wings.power."

// order is one request for a power action.
type order struct {
	client.Action
	id string // ids are in the order of their requests; berth carries an order out once
}

// newOrder returns an order that is recorded.
func (n *Node) newOrder(ctx context.Context, s *server, a client.Action) (order, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return order{}, err
	}
	label := powerLabel + id.String()
	if err = n.accept(ctx, s, label, string(a)); err != nil {
		n.retract(s, label)
	}
	return order{a, id.String()}, err
}

// resumePower goes on with the power actions that a bridge before this one has left, one after the other. They were
// answered after an installation whose end is reported again.
func (n *Node) resumePower(ctx context.Context, s *server, labels map[string]string) {
	for s.isInstalling() && ctx.Err() == nil {
		_, change := s.seen()
		awaitChange(ctx, change)
	}
	for _, label := range slices.Sorted(maps.Keys(labels)) {
		if id, is := strings.CutPrefix(label, powerLabel); is {
			_ = n.act(ctx, s, order{client.Action(labels[label]), id}, stopTime) // it is in the log
		}
	}
}

// act carries an order out, and returns when it is done. A kill waits for nobody, and others that long at most.
func (n *Node) act(ctx context.Context, s *server, o order, wait time.Duration) error {
	err := n.carryOut(ctx, s, o, wait)
	if ctx.Err() != nil {
		return err // the next bridge goes on
	}
	if err != nil {
		n.o.Log.Warn("a power action failed", "server", s.uuid, "action", o.Action, "err", err)
	}
	n.unmark(ctx, s, powerLabel+o.id)
	return err
}

func (n *Node) carryOut(ctx context.Context, s *server, o order, wait time.Duration) error {
	if s.isInstalling() {
		return errInstalling
	}
	if o.Action == client.Kill {
		return n.do(ctx, s, o)
	}
	end, err := s.takePower(ctx, wait)
	if err != nil {
		return err
	}
	defer end()
	if o.Action == client.Stop {
		return n.halt(ctx, s, o, stopTime)
	}
	if s.suspended() {
		return errSuspended
	}
	if o.Action == client.Start && s.current().State != offline {
		return errors.New("server is running")
	}
	return n.begin(ctx, s, o)
}

// do has berth carry out an order, once.
func (n *Node) do(ctx context.Context, s *server, o order) error {
	return n.ask(ctx, s, func() error {
		return n.keyed(o.id, func(berth *client.Client) error {
			_, err := berth.Containers().Do(ctx, s.uuid, o.Action)
			return err
		})
	})
}

// keyed calls berth with the key of a request, so that berth carries it out once, however often bridges repeat it.
func (n *Node) keyed(key string, call func(berth *client.Client) error) error {
	err := call(n.o.Berth.WithKey(key))
	if has(err, v1.TooManyKeys) { // berth's bound: rather twice than never
		err = call(n.o.Berth)
	}
	return err
}

// halt carries out a stop, and waits until the server is offline.
func (n *Node) halt(ctx context.Context, s *server, o order, limit time.Duration) error {
	err := n.do(ctx, s, o)
	if err == nil {
		err = n.await(ctx, s, limit, func(c v1.ContainerView) bool {
			phase, _ := s.seen()
			return c.Observed() && !c.State.Active() && !phase.Active() // the next action asks for the events' phase
		})
	}
	if errors.Is(err, v1.ErrContainerNotFound) {
		return nil
	}
	return err
}

// begin starts or restarts a server with what the panel has for it now. A panel that does not answer
// keeps no server from starting: it starts as it was.
func (n *Node) begin(ctx context.Context, s *server, o order) error {
	if err := n.refresh(ctx, s); err != nil {
		n.o.Log.Warn("a server starts as it was", "server", s.uuid, "err", err)
	} else if s.suspended() {
		return errSuspended
	}
	err := n.ask(ctx, s, func() error { return n.apply(ctx, s, nil, "") })
	if err == nil {
		err = n.do(ctx, s, o)
	}
	switch {
	case err != nil:
		return err
	case s.suspended(): // meanwhile: its stop may have come before the start
		return cmp.Or(n.haltOrKill(ctx, s, suspendTime), errSuspended)
	}
	return n.await(ctx, s, stopTime, func(c v1.ContainerView) bool { return c.Observed() && c.State != v1.Stopping })
}

// await waits until the container of a server fulfils a condition, for a time at most. It asks berth: events may be late, and
// a run may begin and end between two of them.
func (n *Node) await(ctx context.Context, s *server, limit time.Duration, done func(v1.ContainerView) bool) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		_, change := s.seen()
		view, err := n.o.Berth.Containers().Get(ctx, s.uuid)
		switch {
		case err == nil && done(view), client.StatusOf(err)/100 == 4 && !isLater(err):
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		}
		awaitChange(ctx, change)
	}
}

// refresh asks the panel for a server.
func (n *Node) refresh(ctx context.Context, s *server) error {
	s.asking.Lock()
	defer s.asking.Unlock()
	object, err := n.o.Panel.Server(ctx, s.uuid)
	if err == nil {
		s.set(object)
	}
	return err
}

// postPower is POST /api/servers/:s/power. Its action goes on after the answer.
func (n *Node) postPower(c *call) error {
	var r struct {
		Action client.Action `json:"action"`
		Wait   int           `json:"wait_seconds"`
	}
	if err := c.decode(&r); err != nil {
		return err
	}
	if !isAction(r.Action) {
		return refuse(422, `The power action provided was not valid, should be one of "stop", "start", "restart", "kill"`)
	}
	if (r.Action == client.Start || r.Action == client.Restart) && c.server.suspended() {
		return refuse(400, "Cannot start or restart a server that is suspended.")
	}
	if r.Wait < 0 || r.Wait > maxWait {
		r.Wait = 30
	}
	s := c.server
	o, err := n.newOrder(c.Context(), s, r.Action)
	if err == nil {
		n.background(func(ctx context.Context) {
			_ = n.act(ctx, s, o, time.Duration(r.Wait)*time.Second) // it is in the log
		})
	}
	return c.done(202, err)
}

// commands is POST /api/servers/:s/commands.
func (t tenant) commands(c *call) error {
	var r struct{ Commands []string }
	if err := c.decode(&r); err != nil {
		return err
	}
	err := error(v1.ErrNotRunning)
	if t.s.current().State != offline {
		err = nil
	}
	for _, line := range r.Commands {
		if err == nil {
			err = t.Containers().Send(c.Context(), t.s.uuid, line)
		}
	}
	if errors.Is(err, v1.ErrNotRunning) {
		err = refuse(502, "Cannot send commands to a stopped server instance.")
	}
	return c.done(204, err)
}
