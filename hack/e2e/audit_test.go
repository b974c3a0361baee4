package e2e_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/hack/berthtest"
)

// auditWorkers is the number of clients of TestAuditSurvivesKills, each with a token of
// its own.
const auditWorkers = 8

// auditClient sends mutating requests, each with an id of its own, and records the
// answers.
type auditClient struct {
	b           *berthtest.Berth
	name, token string
	volume      string
	next        int
	answered    map[string]answered // by request id
}

// answered is what the audit log must say about an answered request.
type answered struct {
	status         int
	action, object string
}

// send sends one request of many kinds, and reports whether it was answered.
func (k *auditClient) send() bool {
	k.next++
	id, n := fmt.Sprintf("%s-%d", k.name, k.next), k.next
	file := fmt.Sprintf("%s-%d.txt", k.name, n%10)
	kinds := []struct {
		method, path string
		body         any
		want         answered
	}{
		{"PUT", "/volumes/" + k.volume + "/files/content?path=" + file, "text " + id, answered{200, "file.write", k.volume + "/" + file}},
		{"POST", "/containers/mc/stop", nil, answered{200, "container.stop", "mc"}},
		{"POST", "/containers/none/start", nil, answered{404, "container.start", "none"}},
		{"POST", "/volumes", nil, answered{403, "volume.create", ""}},
		{"PUT", "/network/ports/127.0.0.1/4000/use?protocol=tcp", map[string]any{"in_use": n%2 == 0}, answered{200, "port.use", "127.0.0.1:4000/tcp"}},
		{"PATCH", "/volumes", nil, answered{405, "request.patch", "/volumes"}},
		{"POST", "/containers/mc/kill", nil, answered{200, "container.kill", "mc"}},
	}
	q := kinds[n%len(kinds)]
	answer, err := k.b.Try(context.Background(), q.method, q.path, q.body, "Authorization", "Bearer "+k.token, "X-Request-Id", id)
	if err != nil {
		return false
	}
	q.want.status = answer.Status
	k.answered[id] = q.want
	return true
}

// TestAuditSurvivesKills kills the daemon while clients send mutating requests: every
// answered one has exactly one entry, with its actor and its outcome, and the others
// have at most one.
func TestAuditSurvivesKills(t *testing.T) {
	t.Parallel()
	b := berthtest.Start(t, berthtest.Options{})
	requests, kills := rounds(2000, 10_000), rounds(4, 20)
	b.Post(t, "/network/ports", map[string]any{"ip": "127.0.0.1", "port": 4000, "protocol": "tcp"})
	b.Made(t, "mc", nil)
	volume := b.Container(t, "mc").VolumeID
	var clients []*auditClient
	actors := map[string]v1.Actor{}
	for i := range auditWorkers {
		name := fmt.Sprint("client", i)
		m := mint(t, b, fmt.Sprintf(`{"name":%q,"containers":["mc"],"scopes":["power","files","network"]}`, name))
		if i%2 == 0 {
			m = mint(t, b, fmt.Sprintf(`{"name":%q,"scopes":["power","files","network"]}`, name))
		}
		clients = append(clients, &auditClient{b: b, name: name, token: m.Token, volume: volume, answered: map[string]answered{}})
		actors[name] = v1.Actor{TokenID: m.ID, Name: name, Via: v1.ViaHTTP, Address: "127.0.0.1"}
	}
	began := time.Now()
	sendUnderKills(t, b, clients, requests, kills)
	t.Logf("%d answered requests and %d kills in %s", requests, kills, time.Since(began).Round(time.Second))
	checkAudit(t, b, clients, actors)
}

// sendUnderKills lets the clients send until so many requests are answered, and kills
// the daemon now and then.
func sendUnderKills(t *testing.T, b *berthtest.Berth, clients []*auditClient, requests, kills int) {
	var count atomic.Int64
	var all sync.WaitGroup
	for _, k := range clients {
		all.Go(func() {
			for count.Load() < int64(requests) {
				if k.send() {
					count.Add(1)
				}
			}
		})
	}
	for i := range kills {
		berthtest.Until(t, time.Minute, "more answers", func() bool { return count.Load() > int64((i+1)*requests/(kills+1)) })
		b.Kill9(t)
		b.Run(t)
		b.Answers(t, "/healthz")
	}
	all.Wait()
}

// checkAudit compares the audit log with what the clients have received.
func checkAudit(t *testing.T, b *berthtest.Berth, clients []*auditClient, actors map[string]v1.Actor) {
	entries := map[string]v1.AuditEntry{}
	for since := uint64(0); ; {
		var body struct{ Entries []v1.AuditEntry }
		b.Get(t, fmt.Sprintf("/audit?limit=5000&since=%d", since), &body)
		if len(body.Entries) == 0 {
			break
		}
		for _, e := range body.Entries {
			since++
			require.Equal(t, since, e.Seq, "no gap")
			require.NotContains(t, entries, e.RequestID, "one entry for each request")
			entries[e.RequestID] = e
		}
	}
	for _, k := range clients {
		for id, want := range k.answered {
			e, found := entries[id]
			require.True(t, found, "%s was answered and has no entry", id)
			require.Equal(t, actors[k.name], e.Actor)
			require.Equal(t, want, answered{e.Status, e.Action, e.Object}, id)
			delete(entries, id)
		}
	}
	unanswered := 0
	for id, e := range entries {
		if name, _, ours := strings.Cut(id, "-"); ours {
			unanswered++
			require.Equal(t, actors[name], e.Actor, "of a request without an answer")
		}
	}
	t.Logf("%d entries of requests that were cut off", unanswered)
}
