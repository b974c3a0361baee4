package fake

import (
	"context"
	"errors"
	"fmt"

	"berth/runtime"
)

// Host is the machine under an engine, for what a test does to it.
type Host struct{ w *World }

// Host returns the machine under the engine.
func (w *World) Host() Host { return Host{w} }

// Shutdown is the moment at which an engine is told to end: it takes no new
// connection from now on, so Instance fails. Then it stops its containers, which
// a test does with World.Exit, while watches go on; calls are answered over the
// connections that are open, as Docker 20.10 does, unless answers is false. Down
// ends it, and Boot begins the next one.
func (h Host) Shutdown(answers bool) {
	h.set(func() {
		h.w.closing = runtime.ErrUnavailable
		if !answers {
			h.w.down = runtime.ErrUnavailable
		}
	})
}

// Boot starts an engine after Shutdown and Down, as another instance.
func (h Host) Boot() {
	h.set(func() {
		h.w.down, h.w.closing = nil, nil
		h.w.instance++
	})
}

// Nameless makes the engine one that does not name its instance.
func (h Host) Nameless() { h.set(func() { h.w.nameless = true }) }

// Down makes every operation fail with an error that wraps
// runtime.ErrUnavailable until Up is called. Watches end.
func (h Host) Down() {
	h.w.mu.Lock()
	h.w.down = runtime.ErrUnavailable
	h.w.mu.Unlock()
	h.w.BreakWatch()
}

// Up ends Down.
func (h Host) Up() { h.set(func() { h.w.down = nil }) }

// TakePort lets a process of the host bind a port.
func (h Host) TakePort(ip string, port int, protocol string) {
	h.set(func() { h.w.ports[runtime.Port{IP: ip, Port: port, Protocol: protocol}] = true })
}

// FreePort ends TakePort.
func (h Host) FreePort(ip string, port int, protocol string) {
	h.set(func() { delete(h.w.ports, runtime.Port{IP: ip, Port: port, Protocol: protocol}) })
}

// LoseDirectory makes a mount source missing.
func (h Host) LoseDirectory(source string) { h.set(func() { h.w.missing[source] = true }) }

// RestoreDirectory ends LoseDirectory.
func (h Host) RestoreDirectory(source string) { h.set(func() { delete(h.w.missing, source) }) }

// BreakProgram makes every command whose first word is program one that cannot be run.
func (h Host) BreakProgram(program string) { h.set(func() { h.w.bad[program] = true }) }

// Foreign gives the engine's name of n to a container that is not of this store.
func (h Host) Foreign(n runtime.Name) { h.set(func() { h.w.foreign[n] = true }) }

func (h Host) set(change func()) {
	h.w.mu.Lock()
	defer h.w.mu.Unlock()
	change()
}

// Instance is an operation of the engine: it identifies the engine that runs
// now; see Host.Shutdown.
func (c *core) Instance(ctx context.Context) (id string, err error) {
	c.mu.Lock()
	fault := c.failing
	if !c.nameless {
		id = fmt.Sprintf("engine-%d", c.instance)
	}
	err = errors.Join(ctx.Err(), c.down, c.closing)
	c.mu.Unlock()
	if err == nil && fault != nil {
		err = fault("instance", runtime.Name{})
	}
	return id, err
}
