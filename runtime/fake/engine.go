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

// Engine is a container engine in memory. Create it with New. Set OnStart and
// OnInput before the first use of the engine. They are called without a lock
// held, so they may call the engine and its World.
type Engine struct {
	Outside *World // acts on the engine as others do
	core    *core

	// OnStart, if set, is called after each start. It may print lines with Say
	// and end the run with Exit.
	OnStart func(s runtime.Spec)
	// OnInput, if set, is called with each input of a container.
	OnInput func(n runtime.Name, data []byte)
}

// World lets a test act on containers and images from outside the engine. Its
// methods ignore names that do not exist.
type World struct{ core *core }

// core holds the state that Engine and World share.
type core struct {
	now func() time.Time

	mu         sync.Mutex
	containers map[runtime.Name]*container
	names      map[string]runtime.Name // of containers, by the engine's id
	foreign    map[runtime.Name]bool   // names of unmanaged containers
	images     map[string]string       // ids of those on the host, by reference
	oomKills   bool                    // processes are killed whatever a spec says
	pushed     map[string]int          // how often the tag of an image was moved in its registry
	pulls      map[string]pull         // behaviour of pulls; a missing entry succeeds
	otherArch  string                  // see World.Foreign
	ports      map[runtime.Port]bool   // taken by processes
	missing    map[string]bool         // mount sources that do not exist
	bad        map[string]bool         // programs that cannot be run
	watchers   map[*watcher]bool
	ops        []Op
	reads      map[string]int // calls of methods that change nothing
	failing    Fault
	losing     Fault
	down       error
	closing    error // for new connections
	instance   int
	nameless   bool
	created    int       // number of containers created so far, for their ids
	last       time.Time // the newest time returned by tick
}

// Op is one call of a method that changes something, successful or not.
type Op struct {
	Op   string // the method's name in lower case
	Name runtime.Name
}

// container is one container.
type container struct {
	spec           runtime.Spec
	state          runtime.State
	lines          []runtime.Line
	signals        []string
	ignoresSignals bool          // to signals other than KILL
	held           bool          // its starts go on until World.ReleaseStart
	lost           bool          // its machine does not answer
	changed        chan struct{} // closed at every change, then replaced
}

// New returns an engine without containers and images. Every pull succeeds unless
// World.RefusePull was called for the image. now is its clock; nil means time.Now.
func New(now func() time.Time) *Engine {
	if now == nil {
		now = time.Now
	}
	c := &core{
		now:        now,
		containers: map[runtime.Name]*container{},
		names:      map[string]runtime.Name{},
		foreign:    map[runtime.Name]bool{},
		images:     map[string]string{},
		pushed:     map[string]int{},
		pulls:      map[string]pull{},
		ports:      map[runtime.Port]bool{},
		missing:    map[string]bool{},
		bad:        map[string]bool{},
		watchers:   map[*watcher]bool{},
		reads:      map[string]int{},
	}
	return &Engine{Outside: &World{c}, core: c}
}

// do runs an operation: the fault before it, its work under the lock, the fault
// after it.
func (e *Engine) do(ctx context.Context, op string, n runtime.Name, work func() error) error {
	if err := e.core.before(ctx, op, n); err != nil {
		return err
	}
	e.core.mu.Lock()
	err := work()
	e.core.mu.Unlock()
	if err != nil {
		return fmt.Errorf("%s %s: %w", op, n, err)
	}
	return e.core.after(op, n)
}

// reads lists the operations that change nothing; Ops leaves them out.
const reads = " instance inspect list hasimage logs stats watch probe account "

func (c *core) record(op string, n runtime.Name) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if strings.Contains(reads, " "+op+" ") {
		c.reads[op]++
		return
	}
	c.ops = append(c.ops, Op{op, n})
}

// Inspect returns the state of n.
func (e *Engine) Inspect(ctx context.Context, n runtime.Name) (s runtime.State, err error) {
	err = e.do(ctx, "inspect", n, func() error {
		b, ok := e.core.containers[n]
		if !ok {
			return runtime.ErrNotFound
		}
		s = b.state
		return b.reach()
	})
	return s, err
}

// reach returns the error of a call that has to reach the machine of a container.
func (b *container) reach() error {
	if b.lost && (b.state.Running || b.state.Starting) {
		return runtime.ErrLost
	}
	return nil
}

// List returns this store's containers, sorted by name.
func (e *Engine) List(ctx context.Context) (found []runtime.Found, err error) {
	err = e.do(ctx, "list", runtime.Name{}, func() error {
		found = e.core.list()
		return nil
	})
	if err != nil {
		return nil, err
	}
	return found, nil
}

func (c *core) list() []runtime.Found {
	found := make([]runtime.Found, 0, len(c.containers))
	for n, b := range c.containers {
		one := runtime.Found{Name: n, State: b.state}
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

// tick returns the current time, and always a later one than before: the times of
// an engine differ although a test's clock may stand still.
func (c *core) tick() time.Time {
	t := c.now()
	if !t.After(c.last) {
		t = c.last.Add(time.Nanosecond)
	}
	c.last = t
	return t
}

// change wakes the readers of n's output and all watchers.
func (c *core) change(n runtime.Name) {
	if b, ok := c.containers[n]; ok {
		close(b.changed)
		b.changed = make(chan struct{})
	}
	for sub := range c.watchers {
		sub.add(n)
	}
}
