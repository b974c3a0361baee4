package server

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"berth/api/limit"
	v1 "berth/api/v1"
	"berth/store"
)

func TestSinceOfAnotherEpoch(t *testing.T) {
	h := newHarness(t)
	h.ready("mc")
	gap := object{"event": "gap", "data": "1"}
	c := h.open("/ws/mc?tail=0&since=2&epoch=another")
	require.Equal(t, gap, c.next())
	require.Equal(t, state(v1.Installing, 1), c.next())
	require.Equal(t, state(v1.Ready, 2), c.next())
	c = h.open("/ws/mc?tail=0&since=1&epoch=" + h.store.Incarnations.Epoch())
	require.Equal(t, state(v1.Ready, 2), c.next())

	for epoch, count := range map[string]int{"another": 2, "": 0, h.store.Incarnations.Epoch(): 0} {
		list := h.must("GET", "/events?since=2&epoch="+epoch, nil).json
		require.Len(t, list["events"], count, epoch)
		require.Equal(t, h.store.Incarnations.Epoch(), list["epoch"])
	}
	require.Contains(t, h.must("GET", "/events", nil).raw, `{"seq":1,"epoch":"`+h.store.Incarnations.Epoch()+`"`)
}

func TestListEvents(t *testing.T) {
	h := newHarness(t)
	require.JSONEq(t, `{"events":[],"epoch":"`+h.store.Incarnations.Epoch()+`","oldest":0,"newest":0}`, h.must("GET", "/events", nil).raw)
	h.container("mc", h.volume())
	for _, phase := range []v1.Phase{v1.Installing, v1.Ready, v1.Starting} {
		h.phase("mc", phase)
	}
	all := h.must("GET", "/events", nil).json["events"].([]any)
	require.Len(t, all, 3)
	first := all[0].(map[string]any)
	require.Equal(t, []any{1.0, "mc", "event", "installing"}, []any{first["seq"], first["container"], first["event"], first["data"]})
	require.Len(t, h.must("GET", "/events?since=1&limit=1", nil).json["events"], 1)
	require.Len(t, h.must("GET", "/events?since=3", nil).json["events"], 0)
	require.Len(t, h.must("GET", "/events?since=99", nil).json["events"], 0)
	_, err := h.store.TrimEvents(h.storeNow(), 1)
	require.NoError(t, err)
	trimmed := h.must("GET", "/events?since=0", nil).json
	require.Len(t, trimmed["events"], 1)
	require.Equal(t, 3.0, trimmed["oldest"])
	require.Len(t, h.must("GET", "/events?last=2", nil).json["events"], 1)
	h.refuse(400, "since: must be the seq of an event", "GET", "/events?since=-1", nil)
	h.refuse(400, "last: must be without since, epoch and limit", "GET", "/events?last=1&limit=1", nil)
	h.refuse(400, "limit: must be a number between 0 and 10000", "GET", "/events?limit=x", nil)
}

// TestLastEvents returns the newest transitions that match, in the order of all lists.
func TestLastEvents(t *testing.T) {
	h := newHarness(t)
	h.container("mc", h.volume())
	h.container("other", h.volume())
	for _, id := range []string{"mc", "other", "mc", "other", "other"} {
		h.phase(id, v1.Starting)
		h.phase(id, v1.Running)
	}
	last := func(query, token string) (seqs []any) {
		for _, e := range h.do(request{method: "GET", path: "/events?" + query, token: token}).json["events"].([]any) {
			seqs = append(seqs, e.(object)["seq"])
		}
		return seqs
	}
	require.Equal(t, []any{9.0, 10.0}, last("last=2", ""))
	require.Equal(t, []any{2.0, 5.0, 6.0}, last("last=3&container=mc", ""))
	require.Equal(t, []any{1.0, 2.0, 5.0, 6.0}, last("last=100", h.mint(object{"containers": []string{"mc"}})))
	require.Empty(t, last("last=0", ""))
}

// TestNewestAfterFilter: a response with fewer transitions than its limit is complete up to
// newest, so that a client goes on from there.
func TestNewestAfterFilter(t *testing.T) {
	h := newHarness(t)
	h.container("mc", h.volume())
	h.container("other", h.volume())
	for _, id := range []string{"mc", "other", "other"} {
		h.phase(id, v1.Starting)
		h.phase(id, v1.Running)
	}
	page := h.must("GET", "/events?container=mc&limit=3", nil).json
	require.Len(t, page["events"], 2)
	require.Equal(t, 6.0, page["newest"])
	h.phase("mc", v1.Stopping)
	page = h.must("GET", "/events?container=mc&limit=3&since=6", nil).json
	require.Len(t, page["events"], 1)
	require.Equal(t, 7.0, page["newest"])
}

func TestEventsOfRestrictedToken(t *testing.T) {
	h := newHarness(t)
	h.container("other", h.volume())
	h.container("mine", h.volume())
	for range 5 {
		h.phase("other", v1.Starting)
		h.phase("other", v1.Exit)
	}
	h.phase("mine", v1.Installing)
	answer := h.do(request{method: "GET", path: "/events?limit=1", token: h.mint(object{"containers": []string{"mine"}})})
	events := answer.json["events"].([]any)
	require.Len(t, events, 1)
	require.Equal(t, "mine", events[0].(map[string]any)["container"])
}

// TestEventsOfRestrictedTokenWithVolume: it receives those of the volume that its container
// uses, by each filter, and none of another one.
func TestEventsOfRestrictedTokenWithVolume(t *testing.T) {
	h := newHarness(t)
	volume, foreign := h.volume(), h.volume()
	h.container("mine", volume)
	h.container("neighbour", volume)
	h.container("other", foreign)
	require.NoError(t, h.store.Update(func(tx *store.Tx) error {
		for _, id := range []string{volume, foreign} {
			for range 4 {
				tx.Emit(v1.Event{Event: v1.EventBackup, Backup: noID, Volume: id, Data: "pending"})
			}
		}
		return nil
	}))
	token := h.mint(object{"containers": []string{"mine"}})
	for query, count := range map[string]int{"": 4, "type=backup": 4, "type=event": 0, "since=3": 1, "volume=" + volume: 4,
		"container=mine": 4, "container=neighbour": 4, "container=other": 0} {
		a := h.do(request{method: "GET", path: "/events?" + query, token: token})
		require.Len(t, a.json["events"], count, query)
	}
}

// TestScansAreLimited: requests that read more than they return wait for each other, and
// delay no other.
func TestScansAreLimited(t *testing.T) {
	h := newHarness(t)
	h.ready("mc")
	token := h.mint(object{"containers": []string{"mc"}})
	scans := h.server.handlers.events.scans
	first, err := scans.Enter(t.Context(), limit.Claim{Tenant: "a"})
	require.NoError(t, err)
	second, err := scans.Enter(t.Context(), limit.Claim{Tenant: "b"})
	require.NoError(t, err)
	kept, err := scans.Enter(t.Context(), limit.Claim{})
	require.NoError(t, err)
	var waiting sync.WaitGroup
	for range limit.Scans().Wait {
		for _, c := range []limit.Claim{{Tenant: h.tenantOf("mc"), Object: v1.Secret(token).Fingerprint()}, {Object: "administrator"}} {
			waiting.Go(func() {
				if leave, err := scans.Enter(t.Context(), c); assert.NoError(t, err) {
					leave()
				}
			})
		}
	}
	require.Eventually(t, func() bool { return scans.Waiting() == 2*limit.Scans().Wait }, time.Minute, time.Millisecond)
	h.must("GET", "/events", nil)
	h.must("GET", "/events?container=mc", nil)
	for _, r := range []request{{method: "GET", path: "/events", token: token}, {method: "GET", path: "/events?type=event"}} {
		a := h.do(r)
		require.Equal(t, []any{429, "too_many_operations"}, []any{a.status, a.header.Get("X-Error-Code")}, r.path)
	}
	first()
	second()
	kept()
	waiting.Wait()
}

func TestEventFilters(t *testing.T) {
	h := newHarness(t)
	volume := h.volume()
	h.container("a", volume)
	h.container("b", h.volume())
	h.phase("a", v1.Installing)
	require.NoError(t, h.store.Update(func(tx *store.Tx) error {
		tx.Emit(v1.Event{Container: "a", Event: v1.EventMessage, Data: "a sentence"})
		return nil
	}))
	h.phase("b", v1.Installing)
	seqs := func(query string) (list []float64) {
		for _, e := range h.must("GET", "/events?"+query, nil).json["events"].([]any) {
			list = append(list, e.(map[string]any)["seq"].(float64))
		}
		return list
	}
	require.Equal(t, []float64{1, 2, 3}, seqs(""))
	require.Equal(t, []float64{1, 2}, seqs("container=a"))
	require.Equal(t, []float64{2}, seqs("container=a&since=1"))
	require.Equal(t, []float64{1, 3}, seqs("type=event"))
	require.Equal(t, []float64{2}, seqs("type=daemon_message"))
	require.Equal(t, []float64{1, 2}, seqs("volume="+volume))
	require.Equal(t, []float64{1, 2}, seqs("volume="+volume[:8]))
	require.Empty(t, seqs("container=nobody"))
	h.refuse(400, "type: must be one of event, daemon_message, backup, restore, pull, schedule, transfer", "GET", "/events?type=x", nil)
	h.refuse(404, "Volume not found", "GET", "/events?volume=00000000", nil)
}
