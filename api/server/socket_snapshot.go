package server

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

// replayPiece is how many transitions are read at once: some ms of a core.
const replayPiece = 1000

// sendSnapshot sends the missed transitions, the current state, and the last console
// lines. The listener exists already, so no message is lost between the snapshot
// and the live ones.
func (k *socket) sendSnapshot(ctx context.Context) error {
	if err := k.replay(ctx); err != nil {
		return err
	}
	current, newest, err := k.present()
	if errors.Is(err, store.ErrNotFound) {
		return stream.ErrGone // since the upgrade
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errInternal, err)
	}
	k.listener.After(newest)
	for _, message := range current {
		if err := k.send(message); err != nil {
			return err
		}
	}
	if k.query.resume {
		return k.sendMissing()
	}
	if k.container == "" || k.query.tail == 0 {
		return nil
	}
	return k.sendHistory(ctx, "", func() (stream.History, error) { return k.listener.ReadHistory(k.query.tail) })
}

// sendMissing sends a message if console lines are missing between those that the client
// has and the first live one.
func (k *socket) sendMissing() error {
	if k.missing == "" {
		return nil
	}
	m := stream.NewMessage(v1.EventMessage, "", k.missing, time.Now())
	m.SinceLine, m.Line = k.query.line.String(), k.listener.Line().String()
	return k.send(m)
}

// replay sends the stored transitions after since, if the client asked for them.
// Transitions that are stored meanwhile are left to present.
func (k *socket) replay(ctx context.Context) error {
	if !k.query.replay {
		return nil
	}
	if epoch := k.query.epoch; epoch != "" && epoch != k.sockets.store.Incarnations.Epoch() {
		k.query.since = math.MaxUint64 // which no transition has
	}
	for more := true; more; {
		var list []stream.Message
		var err error
		if list, more, err = k.nextTransitions(ctx); err != nil {
			return fmt.Errorf("%w: %w", errInternal, err)
		}
		for _, message := range list {
			if err := k.send(message); err != nil {
				return err
			}
		}
	}
	return nil
}

// nextTransitions returns what transitions returns for some of the next transitions, and whether there are more. One
// socket at a time reads a piece, so that no number of sockets takes the processors from everybody
// else.
func (k *socket) nextTransitions(ctx context.Context) (list []stream.Message, more bool, err error) {
	select {
	case k.sockets.replays <- struct{}{}:
	case <-ctx.Done():
		return nil, false, ctx.Err()
	}
	defer func() { <-k.sockets.replays }()
	since := k.query.since
	err = k.sockets.store.ViewEvents(func(tx *store.Tx) error {
		_, newest := tx.EventBounds()
		list, k.query.since, err = k.transitions(tx, since, replayPiece)
		more = k.query.since < newest
		return err
	})
	return list, more, err
}

// transitions returns the messages of the transitions for this socket among the limit ones after since, and
// the seq of the last one of them. If some after since are no longer stored, the first message is a
// gap.
func (k *socket) transitions(tx *store.Tx, since uint64, limit int) (list []stream.Message, upTo uint64, err error) {
	if oldest, newest := tx.EventBounds(); since > newest || since+1 < oldest {
		since = oldest - 1
		list = append(list, stream.GapMessage(oldest, k.sockets.store.Incarnations.Epoch(), time.Now()))
	}
	for e, err := range tx.Events(since) {
		if err != nil || limit == 0 {
			return list, since, err
		}
		if k.includes(e) {
			list = append(list, k.messageFor(e))
		}
		since, limit = e.Seq, limit-1
	}
	return list, since, nil
}

// includes reports whether a transition is for this socket: those of an earlier
// container of the same internal_id are not for a token that is limited to this one.
func (k *socket) includes(e v1.Event) bool {
	return k.container == "" || (e.Container == k.container || slices.Contains(e.UserIDs(), k.container)) && k.caller.CanSee(e)
}

// present returns the transitions that replay has not sent, a message with the
// state of each container, and the seq of the newest transition that they include.
// All of them come from one view of the store.
func (k *socket) present() (messages []stream.Message, newest uint64, err error) {
	err = k.sockets.store.ViewEvents(func(tx *store.Tx) error {
		messages = nil
		_, newest = tx.EventBounds()
		if k.query.replay {
			messages, _, err = k.transitions(tx, k.query.since, int(newest-min(newest, k.query.since)))
			if err != nil {
				return err
			}
		}
		states, err := k.states(tx)
		messages = append(messages, states...)
		return err
	})
	return messages, newest, err
}

func (k *socket) states(tx *store.Tx) (messages []stream.Message, err error) {
	var list []v1.Container
	if k.container == "" {
		list = store.Containers.List(tx)
	} else {
		var o v1.Container
		o, err = store.Containers.Get(tx, k.container)
		list = []v1.Container{o}
	}
	for _, o := range list {
		name := ""
		if k.container == "" {
			name = o.Meta.ID
		}
		at := o.Status.Since
		if at.IsZero() {
			at = o.Meta.CreatedAt
		}
		state := v1.Event{Time: at, Container: name, Event: v1.EventState, Data: string(reportedPhase(o)), Actor: o.Status.Actor}
		if state.Seq = o.Status.Seq; state.Seq != 0 {
			state.Epoch = k.sockets.store.Incarnations.Epoch()
		}
		messages = append(messages, k.stateMessage(state))
	}
	return messages, err
}

// stateMessage returns the message of a current state. If no logs message follows, it has the
// cursor from which the client can resume.
func (k *socket) stateMessage(state v1.Event) stream.Message {
	message := k.messageFor(state)
	if k.container != "" && k.query.tail == 0 && !k.query.resume {
		message.Line = k.listener.Line().String()
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
