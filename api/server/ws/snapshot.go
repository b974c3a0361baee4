package ws

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"berth/api/stream"
	v1 "berth/api/v1"
	"berth/store"
)

// snapshot sends the messages that come before the first live one.
type snapshot struct{ socket *socket }

// errSnapshot is an internal error before the first live message.
var errSnapshot = errors.New("could not send the initial state to a WebSocket")

// replayPiece is how many transitions are read at once: some ms of a core.
const replayPiece = 1000

// deliver sends the missed transitions, the current state, and the last console
// lines. The listener exists already, so no message is lost between the snapshot
// and the live ones.
func (n snapshot) deliver(ctx context.Context) error {
	if err := n.missed(ctx); err != nil {
		return err
	}
	current, newest, err := n.current()
	if errors.Is(err, store.ErrNotFound) {
		return stream.ErrGone // since the upgrade
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errSnapshot, err)
	}
	n.socket.listener.After(newest)
	for _, message := range current {
		if err := n.socket.send(message); err != nil {
			return err
		}
	}
	if n.socket.request.Resume {
		return n.lines()
	}
	if n.socket.container == "" || n.socket.request.Tail == 0 {
		return nil
	}
	waiting, cancel := context.WithTimeout(ctx, HistoryWait)
	defer cancel()
	history, err := n.socket.listener.ReadHistory(waiting, n.socket.request.Tail)
	if errors.Is(err, stream.ErrBusy) {
		return err
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errSnapshot, err)
	}
	return n.socket.sendHistory(ctx, "", history)
}

// lines sends a message if console lines are missing between those that the client
// has and the first live one.
func (n snapshot) lines() error {
	if n.socket.missing == "" {
		return nil
	}
	k := n.socket
	m := stream.NewMessage(v1.EventMessage, "", k.missing, time.Now())
	m.SinceLine, m.Line = k.request.Line.String(), k.listener.Line().String()
	return k.send(m)
}

// missed sends the stored transitions after since, if the client asked for them.
// Transitions that are stored meanwhile are left to current.
func (n snapshot) missed(ctx context.Context) error {
	if !n.socket.request.Replay {
		return nil
	}
	if epoch := n.socket.request.Epoch; epoch != "" && epoch != n.socket.sockets.Store.Incarnations.Epoch() {
		n.socket.since = math.MaxUint64 // which no transition has
	}
	for more := true; more; {
		var list []stream.Message
		var err error
		if list, more, err = n.piece(ctx); err != nil {
			return fmt.Errorf("%w: %w", errSnapshot, err)
		}
		for _, message := range list {
			if err := n.socket.send(message); err != nil {
				return err
			}
		}
	}
	return nil
}

// piece returns what read returns for some of the next transitions, and whether there are more. One
// socket at a time reads a piece, so that no number of sockets takes the processors from everybody
// else.
func (n snapshot) piece(ctx context.Context) (list []stream.Message, more bool, err error) {
	select {
	case n.socket.sockets.reads <- struct{}{}:
	case <-ctx.Done():
		return nil, false, ctx.Err()
	}
	defer func() { <-n.socket.sockets.reads }()
	since := n.socket.since
	err = n.socket.sockets.Store.ViewEvents(func(tx *store.Tx) error {
		_, newest := tx.EventBounds()
		list, n.socket.since, err = n.read(tx, since, replayPiece)
		more = n.socket.since < newest
		return err
	})
	return list, more, err
}

// read returns the messages of the transitions for this socket among the limit ones after since, and
// the seq of the last one of them. If some after since are no longer stored, the first message is a
// gap.
func (n snapshot) read(tx *store.Tx, since uint64, limit int) (list []stream.Message, upTo uint64, err error) {
	if oldest, newest := tx.EventBounds(); since > newest || since+1 < oldest {
		since = oldest - 1
		list = append(list, stream.GapMessage(oldest, n.socket.sockets.Store.Incarnations.Epoch(), time.Now()))
	}
	for e, err := range tx.Events(since) {
		if err != nil || limit == 0 {
			return list, since, err
		}
		if n.includes(e) {
			list = append(list, n.socket.messageFor(e))
		}
		since, limit = e.Seq, limit-1
	}
	return list, since, nil
}

// includes reports whether a transition is for this socket: those of an earlier
// container of the same internal_id are not for a token that is limited to this one.
func (n snapshot) includes(e v1.Event) bool {
	k := n.socket
	return k.container == "" || (e.Container == k.container || slices.Contains(e.UserIDs(), k.container)) && k.caller.CanSee(e)
}

// current returns the transitions that missed has not sent, a message with the
// state of each container, and the seq of the newest transition that they include.
// All of them come from one view of the store.
func (n snapshot) current() (messages []stream.Message, newest uint64, err error) {
	err = n.socket.sockets.Store.ViewEvents(func(tx *store.Tx) error {
		messages = nil
		_, newest = tx.EventBounds()
		if n.socket.request.Replay {
			messages, _, err = n.read(tx, n.socket.since, int(newest-min(newest, n.socket.since)))
			if err != nil {
				return err
			}
		}
		states, err := n.states(tx)
		messages = append(messages, states...)
		return err
	})
	return messages, newest, err
}

func (n snapshot) states(tx *store.Tx) (messages []stream.Message, err error) {
	var list []v1.Container
	if n.socket.container == "" {
		list, err = store.Containers.List(tx)
	} else {
		var o v1.Container
		o, err = store.Containers.Get(tx, n.socket.container)
		list = []v1.Container{o}
	}
	for _, o := range list {
		name := ""
		if n.socket.container == "" {
			name = o.Meta.ID
		}
		at := o.Status.Since
		if at.IsZero() {
			at = o.Meta.CreatedAt
		}
		state := v1.Event{Time: at, Container: name, Event: v1.EventState, Data: string(reportedPhase(o)), Actor: o.Status.Actor}
		if state.Seq = o.Status.Seq; state.Seq != 0 {
			state.Epoch = n.socket.sockets.Store.Incarnations.Epoch()
		}
		messages = append(messages, n.stateMessage(state))
	}
	return messages, err
}

// stateMessage returns the message of a current state. If no logs message follows, it has the
// cursor from which the client can resume.
func (n snapshot) stateMessage(state v1.Event) stream.Message {
	message := n.socket.messageFor(state)
	if n.socket.container != "" && n.socket.request.Tail == 0 && !n.socket.request.Resume {
		message.Line = n.socket.listener.Line().String()
	}
	return message
}

// reportedPhase returns the phase of the last stored transition.
func reportedPhase(o v1.Container) v1.Phase {
	if o.Status.Phase == "" {
		return v1.Installing
	}
	return o.Status.Phase
}
