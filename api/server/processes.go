package server

import (
	"context"
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

// Find returns v1.ErrContainerNotFound unless id is a container.
func (p processes) Find(tx *store.Tx, id string) error {
	if !intent.IsContainerID(id) {
		return v1.ErrContainerNotFound
	}
	_, err := intent.FindContainer(tx, id)
	return err
}

// Command sends a command to a container's standard input.
func (p processes) Command(ctx context.Context, caller auth.Principal, id, command string) error {
	if err := p.checkCommand(caller, id, command); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	leave, err := p.commands.Enter(ctx, limit.Claim{Tenant: id})
	if err != nil {
		return edge.ErrOperations
	}
	defer leave()
	return p.console.Send(ctx, id, line(command))
}

// maxTerminalLine is how many bytes of a line the kernel's terminal keeps.
const maxTerminalLine = 4095

// signalKeys are the keys that a terminal takes for signals to its processes, for the end
// of their input, or for a pause of their output: Ctrl-C, D, S, Z and \.
const signalKeys = "\x03\x04\x13\x1a\x1c"

// checkCommand refuses a command that a terminal would cut, and one that acts on the
// container's power if the caller may not.
func (p processes) checkCommand(caller auth.Principal, id, command string) error {
	if strings.ContainsRune(command, 0) {
		return v1.Errorf(v1.InvalidRequest, "command: must not hold NUL")
	}
	if strings.ContainsAny(command, signalKeys) && !caller.HasScope(v1.ScopePower) {
		return v1.Errorf(v1.ScopeDenied, "Token scope does not allow this operation: control characters such as Ctrl-C need the scope power")
	}
	if len(command) <= maxTerminalLine {
		return nil
	}
	if tty, err := p.hasTerminal(id); err != nil || !tty {
		return err
	}
	for part := range strings.Lines(command) {
		if len(strings.TrimRight(part, "\r\n")) > maxTerminalLine {
			return v1.Errorf(v1.InvalidRequest, "command: must have at most %d bytes a line, because a terminal keeps no more: containers with tty: false take longer ones", maxTerminalLine)
		}
	}
	return nil
}

// hasTerminal reports whether the spec of a container has a terminal.
func (p processes) hasTerminal(id string) (tty bool, err error) {
	err = p.store.View(func(tx *store.Tx) error {
		o, err := intent.FindContainer(tx, id)
		tty = err == nil && *v1.WithDefaults(o.Spec).TTY
		return err
	})
	return tty, err
}

// Resize changes the size of a container's terminal. It does nothing if it has none.
func (p processes) Resize(ctx context.Context, id string, columns, rows uint) error {
	if tty, err := p.hasTerminal(id); err != nil || !tty {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	return p.console.Resize(ctx, id, columns, rows)
}

// line returns a command with exactly one line feed at its end.
func line(command string) []byte {
	return []byte(strings.TrimRight(command, "\r\n") + "\n")
}

// Stats returns the latest sample of a container.
func (p processes) Stats(ctx context.Context, id string) (v1.Stats, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	return p.sampler.Stats(ctx, id)
}

// Power requests a run or the end of one.
func (p processes) Power(w store.Writer, caller auth.Principal, id, verb string) error {
	v := intent.Verb(verb)
	if v == intent.Start || v == intent.Restart {
		if err := p.paces.start(caller, id); err != nil {
			return err
		}
	}
	return intent.Power(w, id, v)
}
