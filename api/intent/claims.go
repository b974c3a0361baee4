package intent

import (
	"errors"

	v1 "berth/api/v1"
	"berth/store"
)

// checkPorts returns an error if container id may not bind ports: a port is not in
// the pool, or another container has claimed it.
func checkPorts(tx *store.Tx, id string, ports []v1.Port) error {
	pools := map[string]v1.PortSet{}
	var bound error
	for _, p := range ports {
		pool := v1.PoolID(p.IP, p.Protocol)
		set, known := pools[pool]
		if !known {
			o, err := store.Pools.Get(tx, pool)
			if err != nil && !errors.Is(err, store.ErrNotFound) {
				return err
			}
			set = o.Spec.Ports
			pools[pool] = set
		}
		if !set.Has(p.Port) {
			return v1.ErrPortNotInPool
		}
		held, err := store.GetClaim(tx, pool, p.Port)
		if err != nil {
			return err
		}
		if held.Container != "" && held.Container != id && bound == nil {
			bound = errPortBound(held.Container)
		}
	}
	return bound
}

// claim moves the claims and in_use flags of container id from its old ports to its
// new ones. The new ports passed checkPorts in the same transaction. The cost depends
// on the two lists, not on the number of claims.
func claim(tx *store.Tx, id string, had, has []v1.Port) error {
	taken := map[string]*v1.PortSet{}
	for _, p := range has {
		pool := v1.PoolID(p.IP, p.Protocol)
		if taken[pool] == nil {
			taken[pool] = &v1.PortSet{}
		}
		taken[pool].Add(p.Port)
		if err := setClaim(tx, pool, p.Port, v1.Claim{Container: id, InUse: true}); err != nil {
			return err
		}
	}
	for _, p := range had {
		pool := v1.PoolID(p.IP, p.Protocol)
		if set := taken[pool]; set != nil && set.Has(p.Port) {
			continue
		}
		held, err := store.GetClaim(tx, pool, p.Port)
		if err == nil && held.Container == id {
			err = store.SetClaim(tx, pool, p.Port, v1.Claim{})
		}
		if err != nil {
			return err
		}
	}
	for pool, ports := range taken {
		if err := clearFlags(tx, pool, *ports); err != nil {
			return err
		}
	}
	return nil
}

// setClaim stores a claim unless it is stored already.
func setClaim(tx *store.Tx, pool string, port int, c v1.Claim) error {
	now, err := store.GetClaim(tx, pool, port)
	if err != nil || now == c {
		return err
	}
	return store.SetClaim(tx, pool, port, c)
}

// clearFlags clears the in_use flags that clients set on ports that are claimed now:
// the claim has a flag of its own, which ends with it.
func clearFlags(tx *store.Tx, pool string, ports v1.PortSet) error {
	o, err := store.Pools.Get(tx, pool)
	if err != nil || ports.Without(o.Spec.Flagged).Equal(ports) {
		return err
	}
	return store.Pools.SetSpec(tx, pool, func(s *v1.PoolSpec) error {
		s.Flagged = s.Flagged.Without(ports)
		return nil
	})
}
