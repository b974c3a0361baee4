package fake

import (
	"context"

	"berth/runtime"
)

// Fault returns the error of an operation; nil lets it succeed. It is called
// without a lock held, so it may call the engine and its World. op is the method's
// name in lower case.
type Fault func(op string, n runtime.Name) error

// Fail sets the function that is called before every operation. If it returns an
// error, the operation fails and has no effect. Nil removes the function.
func (w *World) Fail(f Fault) {
	w.core.mu.Lock()
	defer w.core.mu.Unlock()
	w.core.failing = f
}

// After sets the function that is called after every successful operation. If it
// returns an error, the operation fails although it took effect. Nil removes the
// function.
func (w *World) After(f Fault) {
	w.core.mu.Lock()
	defer w.core.mu.Unlock()
	w.core.losing = f
}

func (c *core) before(ctx context.Context, op string, n runtime.Name) error {
	c.record(op, n)
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := c.fault(&c.failing, op, n); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.down
}

func (c *core) after(op string, n runtime.Name) error { return c.fault(&c.losing, op, n) }

// fault returns the error of an injected fault.
func (c *core) fault(f *Fault, op string, n runtime.Name) error {
	c.mu.Lock()
	fault := *f
	c.mu.Unlock()
	if fault == nil {
		return nil
	}
	return fault(op, n)
}
