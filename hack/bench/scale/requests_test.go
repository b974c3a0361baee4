package scale

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/hack/bench/table"
	"berth/store"
)

// request is one whose time must not depend on how much the daemon manages. Its path and
// body name an object: {id} is the container's, {volume} that of its volume, {prefix} the
// beginning of that, and {n} another number for each request.
type request struct {
	method, path, body string
	limited            bool // sent with the token of the container
}

func requests() []request {
	return []request{
		{"GET", "/containers/{id}", "", false},
		{"GET", "/containers/{id}", "", true},
		{"GET", "/containers?limit=1", "", false},
		{"GET", "/containers?limit=1", "", true},
		{"PUT", "/containers/{id}?dry_run=true", `{"image":"i","volume_id":"{volume}","startup_command":"serve","limits":{"memory":{n}0000000}}`, false},
		{"POST", "/containers/{id}/start", "", false},
		{"GET", "/containers/{id}/logs?tail=1", "", true},
		{"GET", "/events?limit=1&container={id}", "", false},
		{"GET", "/events?limit=1", "", true},
		{"GET", "/volumes/{volume}", "", false},
		{"GET", "/volumes/{prefix}", "", true},
		{"GET", "/volumes?limit=1", "", false},
		{"GET", "/volumes?limit=1", "", true},
		{"PATCH", "/volumes/{volume}", `{"name":"{n}"}`, false},
		{"PUT", "/volumes/{volume}/backup-policy", `{"every":"{n}m","keep":2}`, true},
		{"GET", "/volumes/{volume}/backups", "", true},
		{"GET", "/backups?limit=1", "", false},
		{"GET", "/backups?limit=1", "", true},
		{"GET", "/network/ports?limit=1", "", false},
		{"GET", "/network/ports?limit=1", "", true},
		{"GET", "/network/ports/random", "", false},
		{"GET", "/network/ports/10.0.0.1/20000", "", false},
		{"POST", "/network/ports", `{"ip":"10.0.0.2","port":{n},"protocol":"tcp"}`, false},
		{"POST", "/auth/tokens", `{"scopes":["read"],"containers":["{id}"],"name":"{n}"}`, false},
		{"GET", "/auth/self", "", true},
		{"GET", "/auth/tokens?limit=1", "", false},
	}
}

// text returns the path and the body for an object.
func (r request) text(i, n int) (path, body string) {
	fill := strings.NewReplacer("{id}", name(i), "{volume}", volume(i), "{prefix}", volume(i)[:8], "{n}", fmt.Sprint(n)).Replace
	return fill(r.path), fill(r.body)
}

// busy is a node that is asked about its objects.
type busy struct {
	*node
	client *http.Client
	tokens []string // limited, one for each object
	sent   int
}

// BenchmarkRequests sends requests about one object while there are few, and while there are
// many: each has a container with a port, a volume with two backups, a token and transitions.
func BenchmarkRequests(b *testing.B) {
	n := &busy{node: newNode(b, b.TempDir(), newEngine(), time.Hour), client: &http.Client{}}
	defer n.client.CloseIdleConnections()
	few, many := 20, most(b)/2
	n.ask(b, token, "POST", "/network/ports/bulk", fmt.Sprintf(`{"ip":"10.0.0.1","ports":"20000-%d","protocol":"tcp"}`, 20000+2*many))
	n.grow(b, few)
	floor := n.measure(b)
	n.grow(b, many)
	for i, times := range n.measure(b) {
		r, who := requests()[i], ""
		if r.limited {
			who = ", limited"
		}
		table.Add(b, table.Row{Measure: fmt.Sprintf("%s %.36s%s: %d", r.method, r.path, who, many), Unit: "ms", Berth: times, Floor: floor[i], Goal: table.AtMost(3)})
	}
}

// grow adds objects until there are count.
func (n *busy) grow(b *testing.B, count int) {
	b.Helper()
	from := len(n.tokens)
	n.volumes(b, from, count)
	n.backups(b, from, count)
	for i := from; i < count; i++ {
		n.ask(b, token, "POST", "/containers", fmt.Sprintf(`{"internal_id":%q,"image":"i","volume_id":%q,"startup_command":"serve","power":"running",
			"ports":[{"ip":"10.0.0.1","port":%d,"protocol":"tcp"}]}`, name(i), volume(i), 20000+i))
	}
	n.await(b, 0, count, func(e v1.Event) bool { return e.Data == string(v1.Running) })
	for i := from; i < count; i++ {
		var answer struct{ Token string }
		body := n.ask(b, token, "POST", "/auth/tokens", fmt.Sprintf(`{"scopes":["read","files"],"containers":[%q]}`, name(i)))
		require.NoError(b, json.Unmarshal(body, &answer))
		n.tokens = append(n.tokens, answer.Token)
	}
}

// measure sends each request about 100 objects, and returns the times in ms.
func (n *busy) measure(b *testing.B) (times [][]float64) {
	b.Helper()
	for _, r := range requests() {
		var took []float64
		for k := range 100 {
			i, bearer := (k*7919)%len(n.tokens), token
			if r.limited {
				bearer = n.tokens[i]
			}
			n.sent++
			path, body := r.text(i, 1000+n.sent)
			began := time.Now()
			n.ask(b, bearer, r.method, path, body)
			took = append(took, time.Since(began).Seconds()*1000)
		}
		times = append(times, took)
	}
	return times
}

// backups stores two backups of each of the volumes from, from+1, … to-1.
func (n *node) backups(b *testing.B, from, to int) {
	b.Helper()
	for i := from; i < to; i++ {
		require.NoError(b, n.store.Update(func(tx *store.Tx) error {
			now := tx.Now()
			for k := range 2 {
				id := volume(2*i + k)
				if err := store.Backups.Create(tx, id, v1.BackupSpec{VolumeID: volume(i), Target: v1.TargetLocal}); err != nil {
					return err
				}
				err := store.Backups.SetStatus(tx, id, func(s *v1.BackupStatus) {
					*s = v1.BackupStatus{State: v1.JobCompleted, StartedAt: &now, FinishedAt: &now, Size: 7, Checksum: "sha256:abc"}
				})
				if err != nil {
					return err
				}
			}
			return nil
		}))
	}
}

// ask sends a request and returns the body of its response, which must be a success.
func (n *busy) ask(b *testing.B, bearer, method, path, body string) []byte {
	b.Helper()
	r, err := http.NewRequest(method, "http://"+n.addr+path, bytes.NewReader([]byte(body)))
	require.NoError(b, err)
	r.Header.Set("Authorization", "Bearer "+bearer)
	r.Header.Set("Accept", "application/vnd.berthv1+json")
	r.Header.Set("Content-Type", "application/json")
	answer, err := n.client.Do(r)
	require.NoError(b, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	require.NoError(b, err)
	require.Less(b, answer.StatusCode, 300, "%s %s %s: %s", method, path, body, text)
	return text
}
