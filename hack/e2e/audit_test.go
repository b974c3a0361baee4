package e2e_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/hack/test/berthtest"
)

// auditWorkers is the number of tokens of TestAuditSurvivesKills. Each sends requests by
// HTTP and changes files by SFTP.
const auditWorkers = 6

// answered is what the audit log must say about an answered request.
type answered struct {
	status         int
	action, object string
}

// auditRun is a run of TestAuditSurvivesKills.
type auditRun struct {
	*sftpNode
	mirror   *mirror
	image    string
	count    atomic.Int64 // acknowledged requests and changes
	goal     int64
	kills    []time.Time
	requests []*auditClient
	changes  []*auditChanger
	actors   map[string]v1.Actor // by the client's name, without Via
}

// TestAuditSurvivesKills kills the daemon while clients send mutating requests of every
// kind and change files by SFTP: everything that was acknowledged has exactly one entry,
// with its actor and its outcome, and the rest has at most one. Only entries of SFTP that waited
// in memory are lost with a kill.
func TestAuditSurvivesKills(t *testing.T) {
	t.Parallel()
	kills := rounds(3, 20)
	r := newAuditRun(t, rounds(4500, 10_000))
	var all sync.WaitGroup
	for i := range r.requests {
		all.Go(func() { r.requests[i].run(r) })
		all.Go(func() { r.changes[i].run(r) })
	}
	began := time.Now()
	for i := range kills {
		berthtest.Until(t, 5*time.Minute, "more answers", func() bool { return r.count.Load() > int64(i+1)*r.goal/int64(kills+1) })
		r.Kill9(t)
		r.kills = append(r.kills, time.Now())
		r.Run(t)
		r.Answers(t, "/healthz")
	}
	all.Wait()
	t.Logf("%d acknowledged and %d kills in %s", r.count.Load(), kills, time.Since(began).Round(time.Second))
	r.check(t)
}

func newAuditRun(t *testing.T, goal int) *auditRun {
	t.Helper()
	r := &auditRun{sftpNode: newSFTPNode(t, "files: {pull: true, pull_private: true}"), mirror: newMirror(t), image: berthtest.Busybox(t), goal: int64(goal), actors: map[string]v1.Actor{}}
	r.Post(t, "/network/ports", map[string]any{"ip": "127.0.0.1", "port": 4000, "protocol": "tcp"})
	r.Made(t, "mc", berthtest.Spec{"volume_id": r.volume})
	for i := range auditWorkers {
		name := fmt.Sprint("client", i)
		body := fmt.Sprintf(`{"name":%q,"containers":["mc"],"scopes":["power","files"]}`, name)
		if i%2 == 0 {
			body = fmt.Sprintf(`{"name":%q,"scopes":["admin"]}`, name)
		}
		m := mint(t, r.Berth, body)
		r.actors[name] = v1.Actor{TokenID: m.ID, Name: name, Address: "127.0.0.1"}
		r.requests = append(r.requests, &auditClient{name: name, token: m.Token, number: i, answered: map[string]answered{}})
		r.changes = append(r.changes, &auditChanger{name: name, token: m.Token, acknowledged: map[string]time.Time{}})
	}
	return r
}

// done reports whether enough was acknowledged.
func (r *auditRun) done() bool { return r.count.Load() >= r.goal }

// entries returns the audit log, that of requests by their id and that of changes by SFTP
// by action and object. No key has two.
func (r *auditRun) entries(t *testing.T) (requests, changes map[string]v1.AuditEntry) {
	t.Helper()
	requests, changes = map[string]v1.AuditEntry{}, map[string]v1.AuditEntry{}
	for since := uint64(0); ; {
		var body struct{ Entries []v1.AuditEntry }
		r.Get(t, fmt.Sprintf("/audit?limit=5000&since=%d", since), &body)
		if len(body.Entries) == 0 {
			return requests, changes
		}
		for _, e := range body.Entries {
			since++
			require.Equal(t, since, e.Seq, "no gap")
			switch {
			case e.Action == "session.open":
			case e.Actor.Via == v1.ViaSFTP:
				key := e.Action + " " + strings.TrimPrefix(e.Object, r.volume+"/")
				require.NotContains(t, changes, key, "one entry for each change")
				changes[key] = e
			default:
				require.NotContains(t, requests, e.RequestID, "one entry for each request")
				requests[e.RequestID] = e
			}
		}
	}
}

// check compares the audit log with what the clients have received.
func (r *auditRun) check(t *testing.T) {
	t.Helper()
	requests, changes := r.entries(t)
	kinds := map[string]int{}
	var stored []time.Time
	for _, e := range requests {
		stored = append(stored, e.Time)
	}
	for _, k := range r.requests {
		for id, want := range k.answered {
			e, found := requests[id]
			require.True(t, found, "%s was answered and has no entry: %v", id, want)
			require.Equal(t, r.actor(k.name, v1.ViaHTTP), e.Actor)
			require.Equal(t, want, answered{e.Status, e.Action, e.Object}, id)
			kinds[fmt.Sprint(e.Action, " ", e.Status)]++
			delete(requests, id)
		}
	}
	lost := 0
	for _, k := range r.changes {
		for key, at := range k.acknowledged {
			e, found := changes[key]
			if !found && r.waited(at, stored) {
				lost++
				continue
			}
			require.True(t, found, "%s was acknowledged and has no entry", key)
			require.Equal(t, r.actor(k.name, v1.ViaSFTP), e.Actor)
			require.Equal(t, 200, e.Status)
			kinds[e.Action+" by SFTP"]++
			delete(changes, key)
		}
	}
	t.Logf("%v; %d entries of SFTP waited when the daemon was killed", kinds, lost)
	cut := 0
	for id, e := range requests {
		if name, _, ours := strings.Cut(id, "-"); ours && strings.HasPrefix(name, "client") {
			cut++
			require.Equal(t, r.actor(name, v1.ViaHTTP), e.Actor, "of a request without an answer")
		}
	}
	t.Logf("%d requests and %d changes were cut off and have entries", cut, len(changes))
}

// waited reports whether the entry of a change that was acknowledged may have been in memory alone
// when the daemon was killed: it is there for 100 ms, and for a commit. That waits for the disk, as those of all
// requests do: stored are the times of their entries. A client may read an acknowledgement after the kill.
func (r *auditRun) waited(at time.Time, stored []time.Time) bool {
	return slices.ContainsFunc(r.kills, func(kill time.Time) bool {
		return at.Before(kill.Add(300*time.Millisecond)) && !slices.ContainsFunc(stored, func(other time.Time) bool {
			return other.After(at.Add(300*time.Millisecond)) && other.Before(kill.Add(-200*time.Millisecond))
		})
	})
}

func (r *auditRun) actor(name string, via v1.Via) v1.Actor {
	a := r.actors[name]
	a.Via = via
	return a
}
