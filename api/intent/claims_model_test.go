package intent_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"berth/api/intent"
	v1 "berth/api/v1"
	"berth/store"
)

// TestPortBank has 16 clients create, rebind, apply and delete with random
// ports, and audits the pool all the while: a claim belongs to exactly one live
// spec, and every port of a live spec is claimed by it.
func TestPortBank(t *testing.T) {
	w := newWorld(t)
	var clients sync.WaitGroup
	for n := range 16 {
		clients.Go(func() { w.client(fmt.Sprintf("c%d", n), rand.New(rand.NewPCG(1, uint64(n)))) })
	}
	done := make(chan struct{})
	go func() { clients.Wait(); close(done) }()
	for audits := 0; ; audits++ {
		require.Empty(t, w.audit())
		select {
		case <-done:
			require.Empty(t, w.audit())
			t.Logf("%d audits, %d revisions", audits, w.store.Revision())
			return
		default:
		}
	}
}

func (w *world) client(id string, r *rand.Rand) {
	for range 150 {
		ports := tcp(1000+r.IntN(10), 1000+r.IntN(10))
		if ports[0].Port == ports[1].Port {
			ports = ports[:1]
		}
		spec := w.spec()
		spec.Ports = ports
		switch r.IntN(5) {
		case 0:
			_ = intent.CreateContainer(w.store, intent.Policy{}, id, spec)
		case 1:
			_ = intent.RebindNetwork(w.store, id, ports)
		case 2:
			_, _ = intent.ApplyContainer(w.store, intent.Policy{}, id, spec, intent.ApplyOptions{})
		case 3:
			_ = intent.DeleteContainer(w.store, id)
		default: // its controller
			_ = w.store.Update(func(tx *store.Tx) error { return settle(tx, id) })
		}
	}
}

func settle(tx *store.Tx, id string) error {
	o, err := store.Containers.Get(tx, id)
	if err == nil && o.Meta.Deleted {
		return store.Containers.Purge(tx, id)
	}
	return store.Containers.SetStatus(tx, id, func(s *v1.ContainerStatus) { s.Phase, s.ObservedInstall = v1.Ready, o.Spec.InstallGeneration })
}

// audit lists what does not add up in one revision.
func (w *world) audit() (wrong []string) {
	tx := w.store.Read()
	claims := map[v1.Port]string{}
	for _, pool := range store.Pools.List(tx) {
		for port, c := range store.Claims(tx, pool.Meta.ID, 0) {
			claims[v1.Port{IP: pool.Spec.IP, Port: port, Protocol: pool.Spec.Protocol}] = c.Container
			if pool.Spec.Flagged.Has(port) {
				wrong = append(wrong, fmt.Sprintf("%d is claimed, and flagged in its pool", port))
			}
		}
	}
	for _, o := range store.Containers.List(tx) {
		for _, port := range o.Spec.Ports {
			if o.Meta.Deleted {
				continue
			}
			if claims[port] != o.Meta.ID {
				wrong = append(wrong, fmt.Sprintf("%v of %s is claimed by %q", port, o.Meta.ID, claims[port]))
			}
			delete(claims, port)
		}
	}
	for port, holder := range claims {
		wrong = append(wrong, fmt.Sprintf("%v is claimed by %s, which has no such port", port, holder))
	}
	return wrong
}
