package e2e_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/hack/test/berthtest"
	"berth/hack/test/enginetest"
)

// TestConcurrentPortClaims lets 16 clients create, rebind and delete containers over 20 ports
// while the daemon is killed: for 3 seconds, or a minute in the long form. After
// each restart and at the end, each claim belongs to exactly one active spec, no
// port has two owners, the flags agree, and every acknowledged request holds.
func TestConcurrentPortClaims(t *testing.T) {
	t.Parallel()
	b, random := berthtest.Start(t, berthtest.Options{}), dice(t)
	portPool := &portPool{b: b, volume: b.Volume(t), image: berthtest.Busybox(t)}
	for range 20 {
		portPool.ports = append(portPool.ports, b.Port(t))
	}
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	clients := make([]*poolClient, 16)
	for i := range clients {
		clients[i] = &poolClient{portPool: portPool, id: fmt.Sprintf("c%d", i), random: newDice(random.Uint64()), answers: map[int]int{}}
		wg.Go(func() { clients[i].run(ctx) })
	}
	kills, began := 0, time.Now()
	for time.Since(began) < time.Duration(rounds(3, 60))*time.Second {
		pause(time.Duration(300+random.IntN(1200)) * time.Millisecond)
		b.Kill9(t)
		b.Run(t)
		b.Ready(t)
		kills++
		portPool.audit(t)
	}
	stop()
	wg.Wait()
	traded := time.Since(began)
	answers := map[int]int{}
	for _, c := range clients {
		c.settle(t)
		for status, n := range c.answers {
			answers[status] += n
		}
	}
	portPool.audit(t)
	portPool.servers(t)
	t.Logf("%d clients for %s: %d kills, answers by status (0: none) %v, %d audits, %d violations",
		len(clients), traded.Round(time.Second), kills, answers, portPool.audits, len(portPool.violations))
	require.NotZero(t, answers[200])
	require.NotZero(t, answers[409], "there were conflicts")
	require.Empty(t, portPool.violations)
}

// portPool is a pool of ports that clients claim and release.
type portPool struct {
	b      *berthtest.Berth
	volume string
	image  string
	ports  []v1.PortRef

	open       sync.RWMutex // read-locked by requests, locked by an audit
	audits     int
	violations []string
}

// poolClient is a client with one container.
type poolClient struct {
	*portPool
	id      string
	random  *rand.Rand
	answers map[int]int // number of answers by status; 0: no answer

	sure bool         // the last request was answered
	has  bool         // if sure: the container exists
	want []v1.PortRef // if has: its ports
}

func newDice(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }

// run sends requests until ctx ends, also while the daemon is down.
func (c *poolClient) run(ctx context.Context) {
	for ctx.Err() == nil {
		ports := c.pick()
		switch c.random.IntN(4) {
		case 0, 1:
			c.ask(ctx, "POST", "/containers", berthtest.Spec{"internal_id": c.id, "image": c.image, "volume_id": c.volume,
				"startup_command": "sleep 1000", "ports": ports}, func() { c.has, c.want = true, ports })
		case 2:
			c.ask(ctx, "POST", "/containers/"+c.id+"/rebind-network", map[string]any{"ports": ports}, func() { c.has, c.want = true, ports })
		case 3:
			c.ask(ctx, "DELETE", "/containers/"+c.id, nil, func() { c.has, c.want = false, nil })
		}
	}
}

// pick returns one or two different ports of the pool.
func (c *poolClient) pick() []v1.PortRef {
	at := c.random.Perm(len(c.ports))
	ports := []v1.PortRef{c.ports[at[0]]}
	if c.random.IntN(2) == 0 {
		ports = append(ports, c.ports[at[1]])
	}
	return ports
}

// ask sends a request, which ctx does not cancel. A refusal changes nothing.
// Without an answer it is unknown whether the request was executed.
func (c *poolClient) ask(ctx context.Context, method, path string, body any, done func()) {
	c.open.RLock()
	defer c.open.RUnlock()
	answer, err := c.b.Try(context.WithoutCancel(ctx), method, path, body)
	c.answers[answer.Status]++
	switch {
	case err != nil:
		c.sure = false
		pause(5 * time.Millisecond)
	case answer.Status < 300:
		c.sure = true
		done()
	}
}

// settle waits until the container is ready or gone, and compares it with the
// acknowledged request.
func (c *poolClient) settle(t *testing.T) {
	t.Helper()
	var now berthtest.Container
	there := false
	berthtest.Until(t, wait, c.id+" is ready or gone", func() bool {
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
		require.Equal(t, c.want, now.Bindings(), c.id)
	}
}

// audit records where claims, flags and specs disagree. No request is in flight
// meanwhile, and controllers change no claims.
func (k *portPool) audit(t *testing.T) {
	t.Helper()
	k.open.Lock()
	defer k.open.Unlock()
	k.audits++
	claimed := map[string]string{}
	for _, c := range k.activeContainers(t) {
		for _, p := range c.Bindings() {
			if other := claimed[p.String()]; other != "" {
				k.wrong("%s is bound by %s and by %s", p, other, c.InternalID)
			}
			claimed[p.String()] = c.InternalID
		}
	}
	pool := k.b.Pool(t)
	if len(pool) != len(k.ports) {
		k.wrong("the pool has %d ports, not %d", len(pool), len(k.ports))
	}
	for name, entry := range pool {
		if entry.Container != claimed[name] {
			k.wrong("%s is claimed by %q, and bound by %q", name, entry.Container, claimed[name])
		}
		if entry.InUse != (entry.Container != "") {
			k.wrong("%s is claimed by %q, and in_use is %v", name, entry.Container, entry.InUse)
		}
		delete(claimed, name)
	}
	for name, id := range claimed {
		k.wrong("%s of %s is not in the pool", name, id)
	}
}

func (k *portPool) wrong(format string, args ...any) {
	k.violations = append(k.violations, fmt.Sprintf(format, args...))
}

// activeContainers returns the containers that are not being deleted. The others have no claims.
func (k *portPool) activeContainers(t *testing.T) (all []berthtest.Container) {
	t.Helper()
	var list struct{ Containers []berthtest.Container }
	k.b.Get(t, "/containers", &list)
	for _, c := range list.Containers {
		answer := k.b.Do(t, "GET", "/containers/"+c.InternalID, nil)
		if answer.Status == 404 { // deleted since the list
			continue
		}
		answer.Decode(t, &c)
		if c.State != "deleting" {
			all = append(all, c)
		}
	}
	return all
}

// servers checks that the engine has exactly the containers of the specs.
func (k *portPool) servers(t *testing.T) {
	t.Helper()
	known := map[string]bool{}
	for _, c := range k.activeContainers(t) {
		known[c.InternalID] = true
		berthtest.Until(t, wait, "its server container exists, with its ports", func() bool {
			return onlyServer(t, k.b, c.InternalID) && publishes(t, k.b, c)
		})
	}
	onlyOrphans(t, k.b, slices.DeleteFunc(k.b.Containers(t, ""), func(c enginetest.Listed) bool {
		return known[c.Labels["io.berth.container"]]
	}))
}

// publishes reports whether the server container has exactly the ports of its spec.
func publishes(t *testing.T, b *berthtest.Berth, c berthtest.Container) bool {
	t.Helper()
	list := b.Containers(t, c.InternalID)
	if len(list) != 1 {
		return false
	}
	bound := published(t, b, list[0].ID)
	for _, p := range c.Ports {
		if !slices.Contains(bound, fmt.Sprintf("%d/%s", p.Port, p.Protocol)) {
			return false
		}
	}
	return len(bound) == len(c.Ports)
}

// published returns the ports of a container of the engine.
func published(t *testing.T, b *berthtest.Berth, engineID string) (list []string) {
	t.Helper()
	if b.Cluster == nil {
		one, _ := b.Engine.Inspect(t, engineID)
		host, _ := one.Raw["HostConfig"].(map[string]any)
		bound, _ := host["PortBindings"].(map[string]any)
		return slices.Collect(maps.Keys(bound))
	}
	for _, pod := range b.Cluster.Pods(t, "") {
		for _, p := range pod.Spec.Containers[0].Ports {
			if string(pod.UID) == engineID {
				list = append(list, fmt.Sprintf("%d/%s", p.HostPort, strings.ToLower(string(p.Protocol))))
			}
		}
	}
	return list
}
