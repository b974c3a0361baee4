package intent

import (
	"errors"

	v1 "berth/api/v1"
	"berth/store"
)

// checkPorts says whether container id may bind ports: each is in the pool, and
// no other container holds it.
func checkPorts(tx *store.Tx, id string, ports []v1.Port) error {
	pools := map[string]v1.PoolSpec{}
	var bound error
	for _, p := range ports {
		key := v1.PoolID(p.IP, p.Protocol)
		pool, known := pools[key]
		if !known {
			o, err := store.Pools.Get(tx, key)
			if err != nil && !errors.Is(err, store.ErrNotFound) {
				return err
			}
			pool = o.Spec
			pools[key] = pool
		}
		if !pool.Ports.Has(p.Port) {
			return v1.ErrPortNotInPool
		}
		if holder := pool.Claims[p.Port]; holder != "" && holder != id && bound == nil {
			bound = errPortBound(holder)
		}
	}
	return bound
}

// claim moves the claims of container id from the ports it had to those it is
// to have, and the flags with them. The ports passed checkPorts in the same
// transaction.
func claim(tx *store.Tx, id string, had, has []v1.Port) error {
	type change struct{ release, take []int }
	pools := map[string]change{}
	for _, p := range had {
		c := pools[v1.PoolID(p.IP, p.Protocol)]
		c.release = append(c.release, p.Port)
		pools[v1.PoolID(p.IP, p.Protocol)] = c
	}
	for _, p := range has {
		c := pools[v1.PoolID(p.IP, p.Protocol)]
		c.take = append(c.take, p.Port)
		pools[v1.PoolID(p.IP, p.Protocol)] = c
	}
	for key, c := range pools {
		err := store.Pools.SetSpec(tx, key, func(s *v1.PoolSpec) error {
			move(s, id, c.release, c.take)
			return nil
		})
		if err != nil && (!errors.Is(err, store.ErrNotFound) || len(c.take) > 0) {
			return err
		}
	}
	return nil
}

// move changes one pool's claims and flags.
func move(s *v1.PoolSpec, id string, release, take []int) {
	for _, port := range release {
		if s.Claims[port] == id {
			delete(s.Claims, port)
			s.Flagged.Remove(port)
		}
	}
	for _, port := range take {
		if s.Claims == nil {
			s.Claims = map[int]string{}
		}
		s.Claims[port] = id
		s.Flagged.Add(port)
	}
}
