package store

import (
	"errors"
	"iter"
	"slices"

	v1 "berth/api/v1"
)

// migrateChunk is the number of keys that one update of a migration writes: far
// fewer than a batch takes.
const migrateChunk = 1000

// oldPool is a PoolSpec of version 1, which contains its claims.
type oldPool struct {
	v1.PoolSpec
	Claims map[int]string `json:"claims,omitempty"` // port to internal_id
}

// splitClaims gives every claim of a port, and every use of a volume, a key of its
// own. A pool keeps its claims until all of them have their keys, so that the
// migration can be interrupted anywhere, and run again.
func splitClaims(s *Store) error {
	var pools, containers []string
	err := s.View(func(tx *Tx) error {
		pools, containers = Pools.IDs(tx), Containers.IDs(tx)
		return nil
	})
	if err != nil {
		return err
	}
	for _, id := range pools {
		if err := moveClaims(s, id); err != nil {
			return err
		}
	}
	return inChunks(s, slices.Values(containers), indexContainer)
}

func moveClaims(s *Store, id string) error {
	var old record[oldPool]
	err := s.View(func(tx *Tx) (err error) {
		old, _, err = recordToChange[oldPool](tx, Pools.specKey(id))
		return err
	})
	if errors.Is(err, ErrDamaged) {
		s.log.Error("cannot read a pool; it is not migrated", "pool", id, "err", err)
		return nil
	}
	if err != nil || len(old.Value.Claims) == 0 {
		return err
	}
	var ports v1.PortSet
	for port := range old.Value.Claims {
		ports.Add(port)
	}
	err = inChunks(s, ports.All(), func(tx *Tx, port int) error {
		c := v1.Claim{Container: old.Value.Claims[port], InUse: old.Value.Flagged.Has(port)}
		return SetClaim(tx, id, port, c)
	})
	if err != nil {
		return err
	}
	return s.Update(func(tx *Tx) error {
		return Pools.SetSpec(tx, id, func(p *v1.PoolSpec) error {
			p.Flagged = p.Flagged.Without(ports)
			return nil
		})
	})
}

// indexContainer adds a container to the index of its volume.
func indexContainer(tx *Tx, id string) error {
	r, _, err := recordToChange[v1.ContainerSpec](tx, Containers.specKey(id))
	if errors.Is(err, ErrDamaged) {
		tx.store.log.Error("cannot read a container; it is not migrated", "container", id, "err", err)
		return nil
	}
	if err != nil {
		return err
	}
	return specIndex(Containers.kind()).move(tx, id, "", specRef(r.Value))
}

// inChunks calls fn with every item, migrateChunk of them per update.
func inChunks[V any](s *Store, items iter.Seq[V], fn func(*Tx, V) error) error {
	for chunk := range slices.Chunk(slices.Collect(items), migrateChunk) {
		err := s.Update(func(tx *Tx) error {
			for _, item := range chunk {
				if err := fn(tx, item); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
