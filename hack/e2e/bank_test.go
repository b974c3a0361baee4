package e2e_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"berth/hack/berthtest"
	"berth/hack/enginetest"
)

// TestPortBank lets eight clients create, rebind and delete over few ports while
// the daemon is killed. In the end each claim belongs to exactly one living
// spec, and what was answered is so.
func TestPortBank(t *testing.T) {
	t.Parallel()
	b, random := berthtest.Start(t, berthtest.Options{}), dice(t)
	bank := &bank{b: b, volume: b.Volume(t), image: enginetest.Busybox(t)}
	for range 12 {
		bank.ports = append(bank.ports, b.Port(t))
	}
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	clients := make([]*customer, 8)
	for i := range clients {
		clients[i] = &customer{bank: bank, id: fmt.Sprintf("c%d", i), random: newDice(random.Uint64())}
		wg.Go(func() { clients[i].trade(ctx) })
	}
	for range rounds(4, 40) {
		pause(time.Duration(300+random.IntN(1200)) * time.Millisecond)
		b.Kill9(t)
		b.Run(t)
		b.Ready(t)
	}
	stop()
	wg.Wait()
	deals := 0
	for _, c := range clients {
		c.settle(t)
		deals += c.deals
	}
	bank.audit(t)
	t.Logf("%d accepted requests by %d clients", deals, len(clients))
}

// bank is a pool of ports that customers take and give back.
type bank struct {
	b      *berthtest.Berth
	volume string
	image  string
	ports  []berthtest.Binding
}

// customer is a client with one container.
type customer struct {
	*bank
	id     string
	random *rand.Rand
	deals  int // requests that were answered 2xx

	sure bool                // the last request was answered
	has  bool                // if sure: the container is there
	want []berthtest.Binding // if has: the ports that it has
}

func newDice(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }

// trade makes requests until ctx ends. A daemon that is away is tried again.
func (c *customer) trade(ctx context.Context) {
	for ctx.Err() == nil {
		ports := c.pick()
		switch c.random.IntN(4) {
		case 0, 1:
			c.ask(ctx, "POST", "/containers", berthtest.Spec{"internal_id": c.id, "image": c.image, "volume_id": c.volume,
				"startup_command": "sleep 1000", "ports": ports}, func() { c.has, c.want = true, ports })
		case 2:
			c.ask(ctx, "POST", "/containers/"+c.id+"/rebind-network", map[string]any{"ports": ports}, func() { c.want = ports })
		case 3:
			c.ask(ctx, "DELETE", "/containers/"+c.id, nil, func() { c.has, c.want = false, nil })
		}
	}
}

// pick is one or two different ports of the bank.
func (c *customer) pick() []berthtest.Binding {
	at := c.random.Perm(len(c.ports))
	ports := []berthtest.Binding{c.ports[at[0]]}
	if c.random.IntN(2) == 0 {
		ports = append(ports, c.ports[at[1]])
	}
	return ports
}

// ask sends a request that does not end with ctx. A refusal changes nothing; no
// answer leaves it open what was done.
func (c *customer) ask(ctx context.Context, method, path string, body any, done func()) {
	answer, err := c.b.Try(context.WithoutCancel(ctx), method, path, body)
	switch {
	case err != nil:
		c.sure = false
	case answer.Status < 300:
		c.deals, c.sure = c.deals+1, true
		done()
	}
}

// settle waits until the container rests, and compares it with what was answered.
func (c *customer) settle(t *testing.T) {
	t.Helper()
	var now berthtest.Container
	there := false
	berthtest.Until(t, wait, c.id+" rests", func() bool {
		answer := c.b.Do(t, "GET", "/containers/"+c.id, nil)
		if there = answer.Status == 200; !there {
			return answer.Status == 404
		}
		answer.Decode(t, &now)
		return now.State == "ready" && now.ObservedGeneration == now.Generation
	})
	if c.sure {
		require.Equal(t, c.has, there, c.id)
	}
	if c.sure && c.has {
		require.Equal(t, c.want, now.Ports, c.id)
	}
}

// audit says whether claims and specs agree.
func (k *bank) audit(t *testing.T) {
	t.Helper()
	claimed := map[string]string{}
	var list struct{ Containers []berthtest.Container }
	k.b.Get(t, "/containers", &list)
	for _, c := range list.Containers {
		now := k.b.Container(t, c.InternalID)
		for _, p := range now.Ports {
			require.Empty(t, claimed[p.String()], "%s has two owners", p)
			claimed[p.String()] = c.InternalID
		}
		berthtest.Until(t, wait, "its server stands ready, with its ports", func() bool {
			return onlyServer(t, k.b, c.InternalID) && publishes(t, k.b, now)
		})
	}
	for name, entry := range k.b.Pool(t) {
		require.Equal(t, claimed[name], entry.Container, name)
		require.Equal(t, entry.Container != "", entry.InUse, name)
	}
	require.Len(t, k.b.Containers(t, ""), len(list.Containers), "no container without a record")
}

// publishes says whether the server container was made with the ports of its spec.
func publishes(t *testing.T, b *berthtest.Berth, c berthtest.Container) bool {
	t.Helper()
	list := b.Containers(t, c.InternalID)
	if len(list) != 1 {
		return false
	}
	one, _ := b.Engine.Inspect(t, list[0].ID)
	host, _ := one.Raw["HostConfig"].(map[string]any)
	bound, _ := host["PortBindings"].(map[string]any)
	for _, p := range c.Ports {
		if bound[fmt.Sprintf("%d/%s", p.Port, p.Protocol)] == nil {
			return false
		}
	}
	return len(bound) == len(c.Ports)
}
