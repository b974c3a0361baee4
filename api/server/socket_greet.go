package server

import (
	"context"
	"errors"
	"fmt"
	"time"

	"berth/api/stream"
	v1 "berth/api/v1"
	"berth/store"
)

// snapshot sends the messages that come before the first live one.
type snapshot struct{ *socket }

// errSnapshot is an internal error before the first live message.
var errSnapshot = errors.New("could not send the initial state to a WebSocket")

// replayPiece is how many transitions are read in one view of the store.
const replayPiece = 500

// deliver sends the missed transitions, the current state, and the last console
// lines. The listener exists already, so no message is lost between the snapshot
// and the live ones.
func (k snapshot) deliver(ctx context.Context) error {
	if err := k.missed(); err != nil {
		return err
	}
	current, newest, err := k.current()
	if err != nil {
		return fmt.Errorf("%w: %w", errSnapshot, err)
	}
	k.listener.After(newest)
	for _, message := range current {
		if err := k.send(message); err != nil {
			return err
		}
	}
	if k.container == "" || k.tail == 0 {
		return nil
	}
	waiting, cancel := context.WithTimeout(ctx, historyWait)
	defer cancel()
	history, err := k.listener.ReadHistory(waiting, k.tail)
	if errors.Is(err, stream.ErrBusy) {
		return errHistory
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errSnapshot, err)
	}
	return k.sendHistory(ctx, "", history)
}

// missed sends the stored transitions after since, if the client asked for them.
// Transitions that are stored meanwhile are left to current.
func (k snapshot) missed() error {
	if !k.replay {
		return nil
	}
	since, gap, err := k.replayFrom()
	if err != nil {
		return fmt.Errorf("%w: %w", errSnapshot, err)
	}
	if gap != nil {
		if err := k.send(gap); err != nil {
			return err
		}
	}
	for {
		list, err := k.events(since)
		if err != nil {
			return fmt.Errorf("%w: %w", errSnapshot, err)
		}
		if len(list) == 0 {
			k.since = since
			return nil
		}
		since = list[len(list)-1].Seq
		if err := k.sendEvents(list); err != nil {
			return err
		}
	}
}

// replayFrom returns the seq after which the replay starts, and a gap message if
// transitions before it are no longer stored.
func (k snapshot) replayFrom() (since uint64, gap []byte, err error) {
	var oldest, newest uint64
	err = k.server.store.View(func(tx *store.Tx) error {
		oldest, newest = keptEvents(tx)
		return nil
	})
	epoch := k.server.store.History.Epoch()
	if k.since+1 >= oldest && k.since <= newest && (k.epoch == "" || k.epoch == epoch) {
		return k.since, nil, err
	}
	return oldest - 1, stream.EncodeGap(oldest, epoch, time.Now()), err
}

func (k snapshot) events(since uint64) (list []v1.Event, err error) {
	err = k.server.store.View(func(tx *store.Tx) error {
		list, err = readEvents(tx, since, replayPiece)
		return err
	})
	return list, err
}

func (k snapshot) sendEvents(list []v1.Event) error {
	for _, e := range list {
		if k.container != "" && e.Container != k.container {
			continue
		}
		if err := k.send(stream.EncodeEvent(e, k.container == "")); err != nil {
			return err
		}
	}
	return nil
}

// current returns the transitions that missed has not sent, a message with the
// state of each container, and the seq of the newest transition that they include.
// All of them come from one view of the store.
func (k snapshot) current() (messages [][]byte, newest uint64, err error) {
	err = k.server.store.View(func(tx *store.Tx) error {
		_, newest = keptEvents(tx)
		if k.replay {
			list, err := readEvents(tx, k.since, int(newest-min(newest, k.since)))
			if err != nil {
				return err
			}
			for _, e := range list {
				if k.container == "" || e.Container == k.container {
					messages = append(messages, stream.EncodeEvent(e, k.container == ""))
				}
			}
		}
		states, err := k.states(tx)
		messages = append(messages, states...)
		return err
	})
	return messages, newest, err
}

func (k snapshot) states(tx *store.Tx) (messages [][]byte, err error) {
	var list []v1.Container
	if k.container == "" {
		list, err = store.Containers.List(tx)
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
		state := v1.Event{Time: at, Container: name, Event: v1.EventState, Data: string(reportedPhase(o))}
		if state.Seq = o.Status.Seq; state.Seq != 0 {
			state.Epoch = k.server.store.History.Epoch()
		}
		messages = append(messages, stream.EncodeEvent(state, k.container == ""))
	}
	return messages, err
}

// reportedPhase returns the phase of the last stored transition.
func reportedPhase(o v1.Container) v1.Phase {
	if o.Status.Phase == "" {
		return v1.Installing
	}
	return o.Status.Phase
}
