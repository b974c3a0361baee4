package docker

import (
	"slices"
	"sync"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"

	"berth/runtime"
)

// place is where a container writes outside its mounts, as an inspect shows it.
type place struct {
	runtime.Writable        // without Size, and without upper in Dirs
	upper            string // directory of the layer; empty: the engine reports none
}

func placeOf(c container.InspectResponse) place {
	p := place{Writable: runtime.Writable{ContainerID: c.ID}}
	for _, path := range []string{c.HostsPath, c.HostnamePath, c.ResolvConfPath} {
		if path != "" {
			p.Files = append(p.Files, path)
		}
	}
	for _, m := range c.Mounts {
		if m.Type == mount.TypeVolume && m.Source != "" {
			p.Dirs = append(p.Dirs, m.Source)
		}
	}
	p.upper = c.GraphDriver.Data["UpperDir"]
	return p
}

// places caches the places of containers, so that a measurement needs no inspect. Each
// inspect renews the place of its container, each event of a container drops it, and
// while no Watch receives the events there are none.
type places struct {
	mu      sync.Mutex
	watches int
	changes uint64 // how often something was dropped
	of      map[runtime.Name]place
}

func newPlaces() *places { return &places{of: map[runtime.Name]place{}} }

// watched begins the cache: a Watch receives the events from now on, until it calls end.
func (p *places) watched() (end func()) {
	p.dropAll(1)
	return func() { p.dropAll(-1) }
}

func (p *places) dropAll(watches int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.watches += watches
	p.changes++
	clear(p.of)
}

// drop drops the place of a container that has changed.
func (p *places) drop(n runtime.Name) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.changes++
	delete(p.of, n)
}

// begin returns what put needs to know of the time before an inspect.
func (p *places) begin() (changes uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.changes
}

// put caches the place that an inspect has shown, unless a container has changed since
// begin: the inspect may be older than the change.
func (p *places) put(n runtime.Name, at place, changes uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.watches > 0 && p.changes == changes {
		p.of[n] = at
	}
}

func (p *places) get(n runtime.Name) (at place, known bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at, known = p.of[n]
	at.Dirs = slices.Clone(at.Dirs)
	return at, known
}
