package fake

import "berth/runtime"

// Host is the machine under an engine, for what a test does to it.
type Host struct{ w *World }

// Host returns the machine under the engine.
func (w *World) Host() Host { return Host{w} }

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
