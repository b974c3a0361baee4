package fake

import (
	"context"
	"errors"
	"fmt"

	"berth/runtime"
)

// Host lets a test change the machine under an engine.
type Host struct{ w *World }

// Host returns the machine under the engine.
func (w *World) Host() Host { return Host{w} }

// Shutdown begins the shutdown of the engine: it accepts no new connections, so
// Instance fails. The test then stops the containers with World.Exit, while
// watches continue. The engine answers calls over open connections, as Docker 20.10
// does. Down ends the engine, and Boot starts the next one.
func (h Host) Shutdown() {
	h.set(func() { h.w.core.closing = runtime.ErrUnavailable })
}

// ShutdownSilently is Shutdown of an engine that answers no calls from then on.
func (h Host) ShutdownSilently() {
	h.set(func() { h.w.core.closing, h.w.core.down = runtime.ErrUnavailable, runtime.ErrUnavailable })
}

// Boot starts an engine after Shutdown and Down, as another instance.
func (h Host) Boot() {
	h.set(func() {
		h.w.core.down, h.w.core.closing = nil, nil
		h.w.core.instance++
	})
}

// Nameless makes Instance return an empty id.
func (h Host) Nameless() { h.set(func() { h.w.core.nameless = true }) }

// Down ends all watches and makes every operation fail with
// runtime.ErrUnavailable until Up is called.
func (h Host) Down() {
	h.w.core.mu.Lock()
	h.w.core.down = runtime.ErrUnavailable
	h.w.core.mu.Unlock()
	h.w.BreakWatch()
}

// Up ends the effect of Down.
func (h Host) Up() { h.set(func() { h.w.core.down = nil }) }

// TakePort makes a port taken, as by a process of the host.
func (h Host) TakePort(ip string, port int, protocol string) {
	h.set(func() { h.w.core.ports[runtime.Port{IP: ip, Port: port, Protocol: protocol}] = true })
}

// FreePort frees a port that TakePort has taken.
func (h Host) FreePort(ip string, port int, protocol string) {
	h.set(func() { delete(h.w.core.ports, runtime.Port{IP: ip, Port: port, Protocol: protocol}) })
}

// LoseDirectory makes a mount source missing.
func (h Host) LoseDirectory(source string) { h.set(func() { h.w.core.missing[source] = true }) }

// RestoreDirectory makes a mount source of LoseDirectory exist again.
func (h Host) RestoreDirectory(source string) { h.set(func() { delete(h.w.core.missing, source) }) }

// BreakProgram makes commands whose first word is program fail with
// runtime.ErrBadCommand.
func (h Host) BreakProgram(program string) { h.set(func() { h.w.core.bad[program] = true }) }

// Foreign gives the engine's name of n to a container of another store.
func (h Host) Foreign(n runtime.Name) { h.set(func() { h.w.core.foreign[n] = true }) }

func (h Host) set(change func()) {
	h.w.core.mu.Lock()
	defer h.w.core.mu.Unlock()
	change()
}

// Gateway returns the address of the host as containers see it.
func (e *Engine) Gateway(ctx context.Context) (string, error) {
	return "172.18.0.1", e.core.before(ctx, "gateway", runtime.Name{})
}

// Instance returns the id of the running engine; see Host.Shutdown. It is an
// operation of the engine.
func (e *Engine) Instance(ctx context.Context) (id string, err error) {
	e.core.mu.Lock()
	fault := e.core.failing
	if !e.core.nameless {
		id = fmt.Sprintf("engine-%d", e.core.instance)
	}
	err = errors.Join(ctx.Err(), e.core.down, e.core.closing)
	e.core.mu.Unlock()
	if err == nil && fault != nil {
		err = fault("instance", runtime.Name{})
	}
	return id, err
}
