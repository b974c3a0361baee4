package container

import (
	"context"
	"hash/maphash"
	"sync"

	"berth/runtime"
	"berth/store"
)

// settled remembers the containers for which Plan returned Rest, and what it was given.
// Plan is pure: while that stays the same, the container needs nothing. A resync then
// inspects it, and neither reads the store nor plans. A container with disk pressure is
// not remembered. The zero value works.
type settled struct {
	mu    sync.Mutex
	seed  maphash.Seed
	basis map[string]basis // by internal_id
}

// basis identifies what Plan was given for a container.
type basis struct {
	rev    uint64 // of the store before the container and its volume were loaded
	volume string
	host   uint64 // hash of an observedHost
}

// observedHost is what Plan is given about a container at rest that is not in the store.
// Its timers do not run, it has no installer, and its start pattern has matched.
type observedHost struct {
	server runtime.State
	surroundings
}

// surroundings is the part of an observedHost that needs no call of the engine.
type surroundings struct {
	engine    string
	root      RootUsage
	rootLimit int64
}

func (r *Reconciler) surroundings(id string) surroundings {
	return surroundings{r.Outage.last(), r.Roots.last(id), r.Roots.limit()}
}

// rests reports whether a container needs nothing, as when it was planned last. If it may
// need something, it returns the state of its server, or nil if that was not inspected.
func (r *Reconciler) rests(ctx context.Context, id string) (bool, *runtime.State, error) {
	was, known := r.settled.take(id)
	if !known || !store.Unchanged(store.Containers, r.Store, id, was.rev) || !store.Unchanged(store.Volumes, r.Store, was.volume, was.rev) {
		return false, nil, nil
	}
	server, err := r.inspect(ctx, serverName(id))
	if err != nil {
		return false, nil, err
	}
	if r.settled.hash(observedHost{server, r.surroundings(id)}) != was.host || server.Running && !r.Console.Reading(id, server.ContainerID, server.StartedAt) {
		return false, &server, nil
	}
	r.settled.put(id, was)
	return true, nil, nil
}

// remember records that a container needs nothing.
func (s *settled) remember(x execution) {
	if underDiskPressure(x.c) || exists(x.o.Install) {
		return
	}
	id := x.c.Meta.ID
	s.put(id, basis{x.rev, x.c.Spec.VolumeID, s.hash(observedHost{x.o.Server, x.before})})
}

// take removes the basis of a container and returns it.
func (s *settled) take(id string) (b basis, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, known = s.basis[id]
	delete(s.basis, id)
	return b, known
}

func (s *settled) put(id string, b basis) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.basis == nil {
		s.basis = map[string]basis{}
	}
	s.basis[id] = b
}

func (s *settled) hash(o observedHost) uint64 {
	s.mu.Lock()
	if s.seed == (maphash.Seed{}) {
		s.seed = maphash.MakeSeed()
	}
	seed := s.seed
	s.mu.Unlock()
	return maphash.Comparable(seed, o)
}
