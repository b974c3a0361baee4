package intent

import (
	"errors"
	"fmt"

	v1 "berth/api/v1"
	"berth/store"
)

// PortRef names ports of the pool. An empty protocol means both.
type PortRef struct {
	IP       string
	Port     int
	Protocol string
}

// ids are the pools that a reference may be about.
func (r PortRef) ids() []string {
	if r.Protocol != "" {
		return []string{v1.PoolID(r.IP, r.Protocol)}
	}
	return []string{v1.PoolID(r.IP, protocols[0]), v1.PoolID(r.IP, protocols[1])}
}

// CheckPort notes the faults of one whole reference and makes its address canonical.
func CheckPort(f *v1.FieldErrors, r *PortRef) {
	ip := checkIP(f, "ip", r.IP)
	checkPort(f, "port", r.Port)
	checkProtocol(f, "protocol", r.Protocol)
	r.IP = ip
}

// AddPort puts one port into the pool, or is v1.ErrPortExists.
func AddPort(s *store.Store, r PortRef) error {
	var f v1.FieldErrors
	CheckPort(&f, &r)
	if err := f.Err(); err != nil {
		return err
	}
	var set v1.PortSet
	set.Add(r.Port)
	return s.Update(func(tx *store.Tx) error { return addPorts(tx, r.IP, r.Protocol, set) })
}

// CheckPorts reads ranges such as "25565-25600,30000" of an address into what
// AddPorts takes, and notes their faults.
func CheckPorts(f *v1.FieldErrors, ip, ranges, protocol string) v1.PoolSpec {
	ip = checkIP(f, "ip", ip)
	set := parseRanges(f, "ports", ranges)
	checkProtocol(f, "protocol", protocol)
	return v1.PoolSpec{IP: ip, Protocol: protocol, Ports: set}
}

// AddPorts puts every port that passed CheckPorts into the pool, or none of
// them: v1.ErrPortExists.
func AddPorts(s *store.Store, wanted v1.PoolSpec) error {
	return s.Update(func(tx *store.Tx) error {
		return addPorts(tx, wanted.IP, wanted.Protocol, wanted.Ports)
	})
}

func addPorts(tx *store.Tx, ip, protocol string, set v1.PortSet) error {
	id := v1.PoolID(ip, protocol)
	err := store.Pools.SetSpec(tx, id, func(p *v1.PoolSpec) error {
		for port := range set.All() {
			if p.Ports.Has(port) {
				return v1.ErrPortExists
			}
			p.Ports.Add(port)
		}
		return nil
	})
	if !errors.Is(err, store.ErrNotFound) {
		return err
	}
	return store.Pools.Create(tx, id, v1.PoolSpec{IP: ip, Protocol: protocol, Ports: set})
}

// UsePort sets the flag of every port that r names, or is v1.ErrPortNotFound.
func UsePort(s *store.Store, r PortRef, inUse bool) error {
	return eachPool(s, r, func(tx *store.Tx, pool v1.Pool, held v1.Claim) error {
		if held.Container != "" {
			held.InUse = inUse
			return store.SetClaim(tx, pool.Meta.ID, r.Port, held)
		}
		return store.Pools.SetSpec(tx, pool.Meta.ID, func(p *v1.PoolSpec) error {
			if inUse {
				p.Flagged.Add(r.Port)
			} else {
				p.Flagged.Remove(r.Port)
			}
			return nil
		})
	})
}

// DeletePort takes every port that r names out of the pool, or none if one is
// held by a container. Its refusals are v1.ErrPortNotFound and the code PortBound.
func DeletePort(s *store.Store, r PortRef) error {
	return eachPool(s, r, func(tx *store.Tx, pool v1.Pool, held v1.Claim) error {
		if held.Container != "" {
			return errPortBound(held.Container)
		}
		return store.Pools.SetSpec(tx, pool.Meta.ID, func(p *v1.PoolSpec) error {
			p.Ports.Remove(r.Port)
			p.Flagged.Remove(r.Port)
			return nil
		})
	})
}

// eachPool calls change, in one transaction, with each pool that has the port
// of r, and with the claim of that port.
func eachPool(s *store.Store, r PortRef, change func(*store.Tx, v1.Pool, v1.Claim) error) error {
	return s.Update(func(tx *store.Tx) error {
		found := false
		for _, id := range r.ids() {
			pool, err := store.Pools.Get(tx, id)
			if errors.Is(err, store.ErrNotFound) || err == nil && !pool.Spec.Ports.Has(r.Port) {
				continue
			}
			if err != nil {
				return err
			}
			held, err := store.GetClaim(tx, id, r.Port)
			if err != nil {
				return err
			}
			found = true
			if err := change(tx, pool, held); err != nil {
				return err
			}
		}
		if !found {
			return v1.ErrPortNotFound
		}
		return nil
	})
}

// Skipped is a port that could not be deleted because a container holds it.
type Skipped struct {
	PortRef
	Container string
}

// CheckRefs notes the faults of references, whose protocols may be empty, and
// makes their addresses canonical.
func CheckRefs(f *v1.FieldErrors, refs []PortRef) {
	for i := range refs {
		r := &refs[i]
		at := fmt.Sprintf("ports[%d].", i)
		r.IP = checkIP(f, at+"ip", r.IP)
		checkPort(f, at+"port", r.Port)
		if r.Protocol != "" {
			checkProtocol(f, at+"protocol", r.Protocol)
		}
	}
}

// DeletePorts takes out of the pool what it can of references that passed
// CheckRefs: ports that are not in the pool are ignored, those that a container
// holds are skipped.
func DeletePorts(s *store.Store, refs []PortRef) (deleted int, skipped []Skipped, err error) {
	byPool := map[string]v1.PortSet{}
	for _, r := range refs {
		for _, id := range r.ids() {
			set := byPool[id]
			set.Add(r.Port)
			byPool[id] = set
		}
	}
	err = s.Update(func(tx *store.Tx) error {
		for id, ports := range byPool {
			n, held, err := drop(tx, id, ports)
			if err != nil {
				return err
			}
			deleted += n
			skipped = append(skipped, held...)
		}
		return nil
	})
	if err != nil {
		return 0, nil, err
	}
	sortSkipped(skipped)
	return deleted, skipped, nil
}

// drop takes ports out of one pool, if there is such a pool.
func drop(tx *store.Tx, pool string, ports v1.PortSet) (deleted int, held []Skipped, err error) {
	err = store.Pools.SetSpec(tx, pool, func(p *v1.PoolSpec) error {
		for port := range ports.All() {
			c, err := store.GetClaim(tx, pool, port)
			switch {
			case err != nil:
				return err
			case c.Container != "":
				held = append(held, Skipped{PortRef{p.IP, port, p.Protocol}, c.Container})
			case p.Ports.Has(port):
				p.Ports.Remove(port)
				p.Flagged.Remove(port)
				deleted++
			}
		}
		return nil
	})
	if errors.Is(err, store.ErrNotFound) {
		err = nil
	}
	return deleted, held, err
}
