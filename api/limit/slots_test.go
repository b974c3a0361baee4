package limit

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func fixed(b Bounds) func() Bounds { return func() Bounds { return b } }

func (s *Slots) must(t *testing.T, tenant, object string) func() {
	t.Helper()
	leave, err := s.Enter(t.Context(), Claim{Tenant: tenant, Object: object})
	require.NoError(t, err)
	return leave
}

// queued claims a slot, and returns once the claim is queued.
func (s *Slots) queued(t *testing.T, ctx context.Context, tenant, object string) <-chan func() {
	t.Helper()
	before := s.Waiting()
	got := make(chan func(), 1)
	go func() {
		defer close(got)
		if leave, err := s.Enter(ctx, Claim{Tenant: tenant, Object: object}); err == nil {
			got <- leave
		}
	}()
	require.Eventually(t, func() bool { return s.Waiting() == before+1 }, time.Minute, time.Millisecond)
	return got
}

func (s *Slots) empty(t *testing.T) {
	t.Helper()
	require.Empty(t, s.held)
	require.Empty(t, s.waiting)
}

// TestSlotsInTurn: a freed slot goes to the first one that fits.
func TestSlotsInTurn(t *testing.T) {
	s := NewSlots(fixed(Bounds{All: 3, Tenant: 1, Object: 2, Wait: 1}))
	ctx := t.Context()
	a, b := s.must(t, "", "v"), s.must(t, "", "v")
	third := s.queued(t, ctx, "", "v")
	_, err := s.Enter(ctx, Claim{Object: "v"})
	require.ErrorIs(t, err, ErrObject, "the places are bounded")
	c := s.must(t, "t", "w")
	ofTenant := s.queued(t, ctx, "t", "x")
	_, err = s.Enter(ctx, Claim{Tenant: "t", Object: "z"})
	require.ErrorIs(t, err, ErrTenant)
	other := s.queued(t, ctx, "", "y")

	a()
	a() // again does nothing
	leave := <-third
	b()
	(<-other)() // the tenant's is before it, and may not yet
	select {
	case <-ofTenant:
		t.Fatal("one more than its tenant may have")
	default:
	}
	c()
	(<-ofTenant)()
	leave()
	s.empty(t)
}

// TestSlotForTwo: all who fit where one claim was go on.
func TestSlotForTwo(t *testing.T) {
	s := NewSlots(fixed(Bounds{All: 2, Tenant: 2, Wait: 3}))
	leave, err := s.Enter(t.Context(), Claim{N: 2})
	require.NoError(t, err)
	first, second, third := s.queued(t, t.Context(), "", ""), s.queued(t, t.Context(), "", ""), s.queued(t, t.Context(), "", "")
	leave()
	require.Equal(t, 2, s.Used())
	require.Equal(t, 1, s.Waiting())
	(<-first)()
	(<-second)()
	(<-third)()
	s.empty(t)
}

// TestSlotsForget: a claim whose request has ended leaves the queue, and a slot that it was
// given meanwhile is free again.
func TestSlotsForget(t *testing.T) {
	s := NewSlots(fixed(Bounds{All: 1, Tenant: 1, Wait: 9}))
	first := s.must(t, "", "")
	ctx, cancel := context.WithCancel(t.Context())
	left := s.queued(t, ctx, "a", "")
	next := s.queued(t, t.Context(), "b", "")
	cancel()
	_, granted := <-left
	require.False(t, granted)
	first()
	(<-next)()
	s.empty(t)
}

// TestSlotsOfTheAdministrator: tenants leave a tenth of all to the administrator, whom no
// bound of a tenant holds.
func TestSlotsOfTheAdministrator(t *testing.T) {
	s := NewSlots(fixed(Bounds{All: 40, Tenant: 10, Object: 20, Kept: 4}))
	var leaves []func()
	for i := range 36 {
		leaves = append(leaves, s.must(t, fmt.Sprint("t", i/10), ""))
	}
	refused := func(c Claim) error {
		_, err := s.Enter(t.Context(), c)
		return err
	}
	require.ErrorIs(t, refused(Claim{Tenant: "t0"}), ErrTenant)
	require.ErrorIs(t, refused(Claim{Tenant: "new"}), ErrAll)
	require.ErrorIs(t, refused(Claim{N: 5}), ErrAll)
	leave, err := s.Enter(t.Context(), Claim{N: 4})
	require.NoError(t, err)
	leave()
	for _, leave := range leaves {
		leave()
	}
	for i := range 16 {
		leaves[i] = s.must(t, fmt.Sprint("t", i/10), "mc")
	}
	require.ErrorIs(t, refused(Claim{Tenant: "t2", Object: "mc"}), ErrObject)
	s.must(t, "", "mc")()
	for _, leave := range leaves[:16] {
		leave()
	}
	s.empty(t)
}

// TestSmallBounds: of fewer than ten, one is kept for the administrator, and one is left for tenants.
func TestSmallBounds(t *testing.T) {
	for all, tenants := range map[int]int{1: 1, 2: 1, 3: 2, 8: 7, 10: 9, 40: 36} {
		require.Equal(t, tenants, Bounds{All: all}.ofTenants(), all)
	}
	require.Equal(t, 2, Bounds{All: 2, Anonymous: true}.ofTenants())
	for _, b := range []Bounds{Walks(), Archives(), Lists(), Scans()} {
		require.Greater(t, b.ofTenants(), 1, "two tenants at once")
		require.Less(t, b.ofTenants(), b.All)
	}
}

// TestSpare requires that tenants leave the largest claim to the administrator.
func TestSpare(t *testing.T) {
	s := NewSlots(fixed(Bounds{All: 32, Tenant: 32, Kept: 8}))
	_, err := s.Enter(t.Context(), Claim{Tenant: "t", N: 25})
	require.ErrorIs(t, err, ErrAll)
	leave, err := s.Enter(t.Context(), Claim{Tenant: "t", N: 24})
	require.NoError(t, err)
	leaveSpare, err := s.Enter(t.Context(), Claim{N: 8})
	require.NoError(t, err)
	leave()
	leaveSpare()
	s.empty(t)
}

// TestPush requires that the oldest claim of the largest tenant ends, and none of the administrator's.
func TestPush(t *testing.T) {
	bounds := Bounds{All: 20, Tenant: 8}
	s := NewSlots(func() Bounds { return bounds })
	ended := map[string]int{}
	var order []string
	var leaves []func()
	push := func(tenant string, n int) {
		for range n {
			name := fmt.Sprint(tenant, len(order))
			order = append(order, name)
			leaves = append(leaves, s.Push(Claim{Tenant: tenant}, func() { ended[name]++ }))
		}
	}
	push("", 1)
	push("few", 2)
	push("many", 20)
	require.Len(t, ended, 12, "above the bound of a tenant")
	require.Equal(t, 1, ended[order[3]], "its oldest")
	push("", 17)
	require.Equal(t, 18, s.UsedBy(""))
	require.Equal(t, 1, s.UsedBy("few"))
	require.Equal(t, 20, s.Used())
	bounds.All = 10
	push("", 1)
	require.Equal(t, []int{10, 10}, []int{s.Used(), s.UsedBy("")}, "the bounds may change")
	for _, n := range ended {
		require.Equal(t, 1, n)
	}
	for _, leave := range leaves {
		leave()
		leave()
	}
	s.empty(t)

	proxy := NewSlots(fixed(Bounds{All: 10, Tenant: 3, Anonymous: true}))
	var closed int
	for range 10 {
		proxy.Push(Claim{Tenant: "proxy", Shared: true}, func() { closed++ })
	}
	require.Zero(t, closed, "many clients are behind it")
	proxy.Push(Claim{Tenant: "one"}, func() { t.Fatal("it has only one") })
	require.Equal(t, 1, closed)
}

func TestNetwork(t *testing.T) {
	require.Equal(t, Network("2001:db8::1"), Network("2001:db8::ffff"))
	require.NotEqual(t, Network("10.0.0.1"), Network("10.0.0.2"))
}

// TestWhatWaitedIsChecked: a claim that had to wait, for a slot or for its turn, is checked before it
// goes on, and leaves its slot if it is refused.
func TestWhatWaitedIsChecked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refused, checks := errors.New("revoked"), 0
		check := func() error { checks++; return refused }
		s := NewSlots(func() Bounds { return Bounds{All: 1, Tenant: 1, Wait: 1, Anonymous: true} })
		leave, err := s.Enter(t.Context(), Claim{Tenant: "a", Check: check})
		require.NoError(t, err)
		require.Zero(t, checks, "it has not waited")
		go func() { time.Sleep(time.Second); leave() }()
		_, err = s.Enter(t.Context(), Claim{Tenant: "a", Check: check})
		require.ErrorIs(t, err, refused)
		require.Zero(t, s.Used())
		r := NewRate(Pace{Every: time.Second, Burst: 1, Keys: 10})
		require.NoError(t, r.Wait(t.Context(), "a", check))
		require.ErrorIs(t, r.Wait(t.Context(), "a", check), refused)
		require.Equal(t, 2, checks)
	})
}
