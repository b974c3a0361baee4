package server

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"berth/api/limit"
	v1 "berth/api/v1"
	"berth/store"
)

// keyed sends a POST with an idempotency key.
func keyed(h *harness, token, key, path, body string) answer {
	h.t.Helper()
	return h.do(request{method: "POST", path: path, body: body, token: token, header: http.Header{"Idempotency-Key": {key}}})
}

func TestReplay(t *testing.T) {
	h := newHarness(t)
	volume := h.volume()
	container := `{"internal_id":"mc","image":"busybox:1","volume_id":"` + volume + `"}`
	requests := []struct {
		path, body string
		status     int
	}{
		{"/volumes", `{"size_limit":1000000}`, 201},
		{"/containers", container, 200},
		{"/containers/mc/start", "", 200},
		{"/containers/mc/reinstall", "", 200},
		{"/containers/mc/command", `{"command":"hi"}`, 200},
		{"/network/ports", `{"ip":"127.0.0.1","port":4000,"protocol":"tcp"}`, 200},
		{"/network/ports/bulk-delete", `{"ports":[{"ip":"127.0.0.1","port":4000}]}`, 200},
		{"/containers/none/stop", "", 404},
		{"/volumes", `{"size_limit":-1}`, 400},
	}
	for i, q := range requests {
		key := strings.Repeat("k", i+1)
		first := keyed(h, "", key, q.path, q.body)
		require.Equal(t, q.status, first.status, first.raw)
		require.Empty(t, first.header.Get("Idempotent-Replayed"))
		before := h.store.Revision()
		second := keyed(h, "", key, q.path, q.body)
		require.Equal(t, []any{first.status, first.raw, first.header.Get("X-Error-Code")},
			[]any{second.status, second.raw, second.header.Get("X-Error-Code")}, q.path)
		require.Equal(t, "true", second.header.Get("Idempotent-Replayed"))
		require.Equal(t, before, h.store.Revision(), "%s is not carried out again", q.path)
		entries := audited(h, 0)
		require.Equal(t, entries[len(entries)-2], entries[len(entries)-1], "the entry of a repetition names the same")
		require.NotContains(t, entries[len(entries)-1], "||OK")
		other := keyed(h, "", key, q.path+"/", q.body)
		require.Equal(t, 422, other.status)
		require.Equal(t, "Idempotency-Key was used with another request: use a new key", other.json["error"])
	}
	require.Len(t, h.console.all(), 1)
	power := h.mint(object{"scopes": []string{"power"}})
	require.Equal(t, 404, keyed(h, power, "k", "/containers/other/start", "").status, "keys are those of one token")
	for _, key := range []string{"", strings.Repeat("k", 256), "a\u00e9"} {
		require.Equal(t, 400, keyed(h, "", key, "/volumes", "").status, "%q", key)
	}
	require.Equal(t, 200, keyed(h, "", strings.Repeat("~", 255), "/containers/mc/stop", "").status)
}

// TestReplayOfToken: the secret of a token is neither stored nor sent again.
func TestReplayOfToken(t *testing.T) {
	h := newHarness(t)
	first := keyed(h, "", "k", "/auth/tokens", "")
	require.Equal(t, 200, first.status)
	second := keyed(h, "", "k", "/auth/tokens", "")
	require.Equal(t, 409, second.status)
	require.Equal(t, "idempotency_outcome_unknown", second.header.Get("X-Error-Code"))
	require.Len(t, h.must("GET", "/auth/tokens", nil).json["tokens"], 1)
}

// TestTicketIsNotStored: the secret of a ticket is in no file, so its key is not repeated.
func TestTicketIsNotStored(t *testing.T) {
	h := newHarness(t)
	first, second := keyed(h, "", "k", "/auth/tickets", ""), keyed(h, "", "k", "/auth/tickets", "")
	require.Equal(t, 200, first.status, first.raw)
	require.Equal(t, 200, second.status, "%s %s", first.raw, second.raw)
	require.Empty(t, second.header.Get("Idempotent-Replayed"))
	require.NotEqual(t, first.raw, second.raw)
}

// TestOutcomesThatAreNotKept: a failure that may pass is carried out again.
func TestOutcomesThatAreNotKept(t *testing.T) {
	h := newHarness(t)
	power := h.mint(object{"scopes": []string{"power"}})
	require.Equal(t, 403, keyed(h, power, "k", "/volumes", "").status)
	h.container("away", h.volume())
	require.Equal(t, 503, keyed(h, "", "k", "/containers/away/command", `{"command":"x"}`).status)
	again := keyed(h, "", "k", "/containers/away/command", `{"command":"x"}`)
	require.Equal(t, 503, again.status)
	require.Empty(t, again.header.Get("Idempotent-Replayed"))
}

// TestOutcomeInTheCommit: the outcome is stored with the change, so a kill before the
// response loses neither.
func TestOutcomeInTheCommit(t *testing.T) {
	h := newHarness(t)
	stored := func() (o store.Outcome) {
		o, err := store.FindOutcome(h.store.Read(), store.Outcome{TokenID: "administrator", Quota: "administrator", Key: digest("k", "")})
		require.NoError(t, err)
		return o
	}
	a := keyed(h, "", "k", "/volumes", "")
	o := stored()
	require.Equal(t, []any{201, a.raw}, []any{o.Status, string(o.Body)})
	r := store.NewRequest(h.store, v1.Actor{}, v1.Audit{Action: "volume.create", Object: "what the path names"})
	r.Outcome = &store.Outcome{TokenID: "administrator", Quota: "administrator", Key: digest("k2"), Status: 409}
	r.Body = func(object string) []byte { return []byte(object) }
	require.NoError(t, r.Update(func(tx *store.Tx) error { return store.Volumes.Create(tx, "id", v1.VolumeSpec{}) }))
	{
		// no Finish
		o, err := store.FindOutcome(h.store.Read(), store.Outcome{TokenID: "administrator", Quota: "administrator", Key: digest("k2")})
		require.Equal(t, []any{200, "id"}, []any{o.Status, string(o.Body)})
		require.NoError(t, err)
	}
	require.Equal(t, a.raw, keyed(h, "", "k", "/volumes", "").raw, "it is not carried out again")
}

func TestKeyInUse(t *testing.T) {
	h := newHarness(t)
	keys := h.server.handlers.files.sessions.access.auditor.keys
	o := &store.Outcome{TokenID: "administrator", Key: digest("k", "")}
	require.True(t, keys.reserve(o))
	a := keyed(h, "", "k", "/volumes", "")
	require.Equal(t, []any{409, "idempotency_key_in_use"}, []any{a.status, a.header.Get("X-Error-Code")})
	keys.release(o)
	require.Equal(t, 201, keyed(h, "", "k", "/volumes", "").status)
	require.Empty(t, keys.busy)
}

// TestKeysOfToken: a tenant stores a bounded number of outcomes.
func TestKeysOfToken(t *testing.T) {
	h := newHarness(t)
	token := h.must("POST", "/auth/tokens", nil).json
	id, secret := token["id"].(string), token["token"].(string)
	child := h.do(request{method: "POST", path: "/auth/tokens", token: secret}).json["token"].(string)
	keys := h.server.handlers.files.sessions.access.auditor.keys
	most := limit.Keys().Burst
	full := []any{429, "too_many_idempotency_keys"}
	keys.minted.Count(id, most/2)
	a := keyed(h, child, "k", "/volumes", "")
	require.Equal(t, full, []any{a.status, a.header.Get("X-Error-Code")}, "half is left to the first token")
	require.Equal(t, 201, keyed(h, secret, "k", "/volumes", "").status)
	keys.minted.Count(id, most/2-1) // and the one before
	a = keyed(h, secret, "k2", "/volumes", "")
	require.Equal(t, full, []any{a.status, a.header.Get("X-Error-Code")})
	require.Equal(t, 201, keyed(h, "", "k", "/volumes", "").status)
}

// TestKeysOfEndUsers: an end user of a panel does not receive the response of another.
func TestKeysOfEndUsers(t *testing.T) {
	h := newHarness(t)
	created := map[string]bool{}
	for _, user := range []string{"alice", "bob", "alice"} {
		a := h.do(request{method: "POST", path: "/volumes", header: http.Header{"Idempotency-Key": {"1"}, "X-Berth-Actor": {user}}})
		require.Equal(t, 201, a.status, a.raw)
		require.Equal(t, len(created) == 2, a.header.Get("Idempotent-Replayed") == "true")
		created[a.json["volume_id"].(string)] = true
	}
	require.Len(t, created, 2)
}

// TestKeyOfContainerMadeAgain: a key that was used for a container is refused for a later one of its id:
// the stored response says nothing about it.
func TestKeyOfContainerMadeAgain(t *testing.T) {
	h := newHarness(t)
	volume := h.volume()
	h.container("mc", volume)
	first := keyed(h, "", "k", "/containers/mc/start", "")
	require.Equal(t, 200, first.status)
	require.Equal(t, "true", keyed(h, "", "k", "/containers/mc/start", "").header.Get("Idempotent-Replayed"))
	h.must("DELETE", "/containers/mc", nil)
	h.purge("mc")
	require.Equal(t, "true", keyed(h, "", "k", "/containers/mc/start", "").header.Get("Idempotent-Replayed"), "it was started")
	h.container("mc", volume)
	again := keyed(h, "", "k", "/containers/mc/start", "")
	require.Equal(t, "idempotency_key_reused", again.header.Get("X-Error-Code"), again.raw)
}

// TestOutcomeOfContainerTakenBack: from the commit that takes a container back, a kill of berth leaves
// neither the response that it was created, nor an entry that says so.
func TestOutcomeOfContainerTakenBack(t *testing.T) {
	h := newHarness(t)
	h.settings.change(func(c *v1.Config) { c.Reconcile.CreateWait = v1.Duration(time.Minute) })
	volume := h.volume()
	got := make(chan answer, 1)
	go func() {
		got <- keyed(h, "", "k", "/containers", `{"internal_id":"mc","image":"missing","volume_id":"`+volume+`"}`)
	}()
	find := func() (v1.Container, error) { return store.Containers.Get(h.store.Read(), "mc") }
	require.Eventually(t, func() bool { _, err := find(); return err == nil }, time.Minute, time.Millisecond)
	require.NoError(t, h.store.Update(func(tx *store.Tx) error {
		return store.Containers.SetStatus(tx, "mc", func(s *v1.ContainerStatus) {
			missing := v1.Condition{Type: v1.ImageAvailable, Status: v1.False, Reason: v1.ReasonImageNotFound}
			s.Conditions = v1.SetCondition(s.Conditions, missing, tx.Now())
		})
	}))
	require.Eventually(t, func() bool { o, err := find(); return err == nil && o.Meta.Deleted }, time.Minute, time.Millisecond)
	tx := h.store.Read()
	_, err := store.FindOutcome(tx, store.Outcome{TokenID: "administrator", Quota: "administrator", Key: digest("k", "")})
	require.ErrorIs(t, err, store.ErrNotFound)
	entries, err := store.ReadAudit(tx, 0, 100, v1.AuditFilter{Container: "mc"})
	require.Len(t, entries, 1)
	require.Equal(t, 500, entries[0].Status)
	require.NoError(t, err)
	h.purge("mc")
	require.Equal(t, 500, (<-got).status)
}
