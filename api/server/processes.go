package server

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"berth/api/auth"
	"berth/api/intent"
	"berth/api/limit"
	"berth/api/server/edge"
	v1 "berth/api/v1"
	"berth/store"
)

// commandTimeout bounds how long it may take to send a command to a container or
// to read its resource usage.
const commandTimeout = 15 * time.Second

// processes reaches the processes of containers, for requests and for the messages
// of sockets.
type processes struct {
	store   *store.Store
	console Console
	sampler Stats
	paces   paces

	commands *limit.Slots // each is a connection to the engine until the container has read it
}

// find returns v1.ErrContainerNotFound unless id is a container.
func (p processes) find(tx *store.Tx, id string) error {
	if !intent.IsContainerID(id) {
		return v1.ErrContainerNotFound
	}
	_, err := intent.FindContainer(tx, id)
	return err
}

// command sends a command to a container's standard input. It calls check if it had to wait.
func (p processes) command(ctx context.Context, caller auth.Principal, id, command string, check func() error) error {
	if err := cmp.Or(caller.MayType(command), p.checkCommand(id, command)); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	leave, err := enter(ctx, limit.Claim{Tenant: id, Check: check}, p.commands)
	if errors.Is(err, context.DeadlineExceeded) {
		return edge.ErrOperations
	}
	if err != nil {
		return err
	}
	defer leave()
	return p.console.Send(ctx, id, line(command))
}

// maxTerminalLine is how many bytes of a line the kernel's terminal keeps.
const maxTerminalLine = 4095

// checkCommand refuses a command that a terminal would cut.
func (p processes) checkCommand(id, command string) error {
	if strings.ContainsRune(command, 0) {
		return v1.Errorf(v1.InvalidRequest, "command: must not hold NUL")
	}
	if len(command) <= maxTerminalLine {
		return nil
	}
	if tty, err := p.hasTerminal(id); err != nil || !tty {
		return err
	}
	for part := range strings.Lines(command) {
		if len(strings.TrimRight(part, "\r\n")) > maxTerminalLine {
			return v1.Errorf(v1.InvalidRequest,
				"command: must have at most %d bytes a line, because a terminal keeps no more: containers with tty: false take longer ones",
				maxTerminalLine)
		}
	}
	return nil
}

// hasTerminal reports whether the spec of a container has a terminal.
func (p processes) hasTerminal(id string) (tty bool, err error) {
	o, err := intent.FindContainer(p.store.Read(), id)
	return err == nil && *v1.WithDefaults(o.Spec).TTY, err
}

// resize changes the size of a container's terminal. It does nothing if it has none. It calls check if
// it had to wait.
func (p processes) resize(ctx context.Context, id string, columns, rows uint, check func() error) error {
	if tty, err := p.hasTerminal(id); err != nil || !tty {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	if err := p.paces.resizes.Wait(ctx, id, check); err != nil {
		return err
	}
	return p.console.Resize(ctx, id, columns, rows)
}

// line returns a command with exactly one line feed at its end.
func line(command string) []byte {
	return []byte(strings.TrimRight(command, "\r\n") + "\n")
}

// stats returns the latest sample of a container.
func (p processes) stats(ctx context.Context, id string) (v1.Stats, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	return p.sampler.Stats(ctx, id)
}

// power requests a run or the end of one.
func (p processes) power(w store.Writer, caller auth.Principal, id, verb string) error {
	v := intent.Verb(verb)
	if v == intent.Start || v == intent.Restart {
		if err := p.paces.start(caller, id); err != nil {
			return err
		}
	}
	return intent.Power(w, id, v)
}
