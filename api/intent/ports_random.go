package intent

import (
	"math/rand/v2"
	"slices"

	v1 "berth/api/v1"
	"berth/store"
)

// randomTries is the number of ports that are drawn before all claims of the pools
// are read: while a tenth of the ports is free, that is hardly ever needed.
const randomTries = 64

// RandomPort returns one of the ports that are neither flagged nor claimed, all with
// the same probability, or v1.ErrNoPorts. An empty ip or protocol means any.
func RandomPort(tx *store.Tx, ip, protocol string) (v1.PoolPort, error) {
	pools, err := store.Pools.List(tx)
	if err != nil {
		return v1.PoolPort{}, err
	}
	pools = slices.DeleteFunc(pools, func(o v1.Pool) bool {
		return ip != "" && o.Spec.IP != ip || protocol != "" && o.Spec.Protocol != protocol
	})
	sets := make([]v1.PortSet, len(pools))
	for i, o := range pools {
		sets[i] = o.Spec.Ports.Without(o.Spec.Flagged)
	}
	for range randomTries {
		i, port := draw(sets)
		if port < 0 {
			break
		}
		if e, err := claimedEntry(tx, pools[i], port); err != nil || e.Container == "" {
			return e, err
		}
	}
	for i, o := range pools {
		sets[i] = sets[i].Without(store.Claimed(tx, o.Meta.ID))
	}
	i, port := draw(sets)
	if port < 0 {
		return v1.PoolPort{}, v1.ErrNoPorts
	}
	return entry(pools[i], port, v1.Claim{}), nil
}

// draw returns a random port of sets and the index of its set. The port is -1 if all
// sets are empty.
func draw(sets []v1.PortSet) (set, port int) {
	total := 0
	for _, s := range sets {
		total += s.Len()
	}
	if total == 0 {
		return 0, -1
	}
	n := rand.IntN(total)
	for n >= sets[set].Len() {
		n -= sets[set].Len()
		set++
	}
	return set, sets[set].At(n)
}
