package fake

import (
	"context"
	"fmt"
	"sort"
	"strings"
	"sync"
	"time"

	"berth/runtime"
)

// Engine is a container engine in memory. Make one with New. OnStart and OnInput
// are set before the engine is used, and are called without any lock held, so
// they may call the engine and its World.
type Engine struct {
	*World

	// OnStart, if set, is what a container does when it has been started. It
	// may make lines with Say, and end it with Exit.
	OnStart func(s runtime.Spec)
	// OnInput, if set, is what a container does with its input.
	OnInput func(n runtime.Name, data []byte)
}

// World is the host as a test sees it. Names that do not exist are ignored.
type World struct{ *core }

// core is what Engine and World share.
type core struct {
	now func() time.Time

	mu       sync.Mutex
	boxes    map[runtime.Name]*box
	foreign  map[runtime.Name]bool // names that are taken by others
	images   map[string]bool       // present on the host
	pulls    map[string]pull       // how pulls go; absent: well
	ports    map[runtime.Port]bool // taken by processes
	missing  map[string]bool       // mount sources that are gone
	bad      map[string]bool       // programs that cannot be run
	watchers map[*watcher]bool
	ops      []Op
	failing  Fault
	losing   Fault
	down     error
	closing  error // of new connections
	instance int
	nameless bool
	made     int       // containers so far, for their ids
	last     time.Time // the newest time handed out
}

// Fault is asked about an operation, and answers it with its error; nil is none.
// It is called without any lock held, so it may call the engine and its World. op
// is the method's name in lower case.
type Fault func(op string, n runtime.Name) error

// Op is one operation that was tried to change something.
type Op struct {
	Op   string // the method's name in lower case
	Name runtime.Name
}

// box is one container.
type box struct {
	spec    runtime.Spec
	state   runtime.State
	lines   []runtime.Line
	signals []string
	deaf    bool          // to signals other than KILL
	changed chan struct{} // closed at every change, then replaced
}

// New returns an engine without containers and images. Every image can be
// pulled until World.RefusePull says otherwise. now is its clock; nil is time.Now.
func New(now func() time.Time) *Engine {
	if now == nil {
		now = time.Now
	}
	return &Engine{World: &World{&core{
		now:      now,
		boxes:    map[runtime.Name]*box{},
		foreign:  map[runtime.Name]bool{},
		images:   map[string]bool{},
		pulls:    map[string]pull{},
		ports:    map[runtime.Port]bool{},
		missing:  map[string]bool{},
		bad:      map[string]bool{},
		watchers: map[*watcher]bool{},
	}}}
}

// do is every operation: asked before, done under the lock, asked after.
func (e *Engine) do(ctx context.Context, op string, n runtime.Name, work func() error) error {
	if err := e.before(ctx, op, n); err != nil {
		return err
	}
	e.mu.Lock()
	err := work()
	e.mu.Unlock()
	if err != nil {
		return fmt.Errorf("%s %s: %w", op, describe(n), err)
	}
	return e.after(op, n)
}

func (e *Engine) before(ctx context.Context, op string, n runtime.Name) error {
	e.record(op, n)
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := e.ask(&e.failing, op, n); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.down
}

func (e *Engine) after(op string, n runtime.Name) error { return e.ask(&e.losing, op, n) }

func (e *Engine) ask(f *Fault, op string, n runtime.Name) error {
	e.mu.Lock()
	fault := *f
	e.mu.Unlock()
	if fault == nil {
		return nil
	}
	return fault(op, n)
}

func describe(n runtime.Name) string {
	if n.Role == "" {
		return n.ID
	}
	return string(n.Role) + " container " + n.ID
}

// reads are the operations that change nothing; Ops leaves them out.
const reads = " instance inspect list hasimage logs stats watch "

func (c *core) record(op string, n runtime.Name) {
	if strings.Contains(reads, " "+op+" ") {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ops = append(c.ops, Op{op, n})
}

// Inspect returns what is known of n.
func (e *Engine) Inspect(ctx context.Context, n runtime.Name) (s runtime.State, err error) {
	err = e.do(ctx, "inspect", n, func() error {
		b, ok := e.boxes[n]
		if !ok {
			return runtime.ErrNotFound
		}
		s = b.state
		return nil
	})
	if err != nil {
		return runtime.State{}, err
	}
	return s, nil
}

// List returns this store's containers, sorted by name.
func (e *Engine) List(ctx context.Context) (found []runtime.Found, err error) {
	err = e.do(ctx, "list", runtime.Name{}, func() error {
		found = e.list()
		return nil
	})
	if err != nil {
		return nil, err
	}
	return found, nil
}

func (c *core) list() []runtime.Found {
	found := make([]runtime.Found, 0, len(c.boxes))
	for n, b := range c.boxes {
		one := runtime.Found{Name: n, ContainerID: b.state.ContainerID}
		for _, m := range b.spec.Mounts {
			one.Mounts = append(one.Mounts, m.Source)
		}
		found = append(found, one)
	}
	sort.Slice(found, func(i, j int) bool {
		a, b := found[i].Name, found[j].Name
		return a.ID < b.ID || a.ID == b.ID && a.Role < b.Role
	})
	return found
}

// tick returns the time, later than every one before: an engine's times differ
// although a test's clock may stand still.
func (c *core) tick() time.Time {
	t := c.now()
	if !t.After(c.last) {
		t = c.last.Add(time.Nanosecond)
	}
	c.last = t
	return t
}

// change tells everybody who waits for n.
func (c *core) change(n runtime.Name) {
	if b, ok := c.boxes[n]; ok {
		close(b.changed)
		b.changed = make(chan struct{})
	}
	for sub := range c.watchers {
		sub.add(n)
	}
}
