package e2e_test

import (
	"bytes"
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/hack/test/berthtest"
)

// stamper is a server that appends a line to a file each 10 ms, and prints it once it is written. It does not exit between
// the two files, whose contents have to agree.
const stamper = "echo Done; n=$(cat last 2>/dev/null || echo 0); trap 'stop=1' TERM; " +
	"while [ -z \"$stop\" ]; do n=$((n+1)); echo $n >> stamps; echo $n > last; echo stamp-$n; sleep 0.01; done"

// nodes are two daemons with two stores on one engine.
type nodes struct {
	a, b *berthtest.Berth
}

func startNodes(t *testing.T) nodes {
	return nodes{berthtest.Start(t, berthtest.Options{}), berthtest.Start(t, berthtest.Options{})}
}

// token mints a token of the scope arrive.
func (n nodes) token(t *testing.T, b *berthtest.Berth) string {
	var made v1.NewToken
	b.Post(t, "/auth/tokens", map[string]any{"scopes": []string{"arrive"}, "ttl": "1h"}).Decode(t, &made)
	return made.Token
}

// move begins a transfer from one node to the other.
func (n nodes) move(t *testing.T, from, to *berthtest.Berth, more map[string]any) (id string) {
	body := map[string]any{"url": "http://" + to.Addr, "token": n.token(t, to), "keep": "0s"}
	for k, v := range more {
		body[k] = v
	}
	var made struct {
		TransferID string `json:"transfer_id"`
	}
	from.Post(t, "/containers/mc/transfer", body).Decode(t, &made)
	return made.TransferID
}

func transferOf(t *testing.T, b *berthtest.Berth, id string) (v v1.TransferView) {
	b.Get(t, "/transfers/"+id, &v)
	return v
}

// ended waits until a transfer has ended.
func ended(t *testing.T, b *berthtest.Berth, id string) v1.TransferView {
	var v v1.TransferView
	berthtest.Until(t, 3*time.Minute, "the transfer ends", func() bool {
		v = transferOf(t, b, id)
		return v.State.Finished()
	})
	return v
}

// running returns how many of the nodes run the container, as the engine says.
func (n nodes) running(t *testing.T) int {
	return len(n.a.Processes(t)) + len(n.b.Processes(t))
}

// stamps returns the lines of the file of the stamper.
func stamps(t *testing.T, b *berthtest.Berth, volume string) []string {
	text, err := os.ReadFile(filepath.Join(b.Data, "volumes", volume, "stamps"))
	require.NoError(t, err)
	return strings.Fields(string(text))
}

// TestTransfer moves a container that writes all the time: it runs on the other node afterwards, with everything
// that it had written, its schedules and its policy, and is gone from this one.
func TestTransfer(t *testing.T) {
	t.Parallel()
	n := startNodes(t)
	volume := n.a.Volume(t)
	n.a.Started(t, "mc", berthtest.Spec{"volume_id": volume, "start_pattern": "Done", "startup_command": stamper,
		"install_script": "echo $RANDOM > installed; chmod 640 installed", "env": map[string]string{"X": "1"}})
	dir := filepath.Join(n.a.Data, "volumes", volume)
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "deep", "er"), 0o750))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "deep", "er", "big"), make([]byte, 3<<20), 0o604))
	require.NoError(t, os.Link(filepath.Join(dir, "deep", "er", "big"), filepath.Join(dir, "hard")))
	require.NoError(t, os.Symlink("deep/er", filepath.Join(dir, "soft")))
	n.a.Must(t, "PUT", "/containers/mc/schedules/nightly", map[string]any{"cron": "@yearly", "steps": []map[string]any{{"command": "x"}}})
	n.a.Must(t, "PUT", "/volumes/"+volume+"/backup-policy", map[string]any{"every": "1d", "keep": 2})
	installed, err := os.ReadFile(filepath.Join(dir, "installed"))
	require.NoError(t, err)

	id := n.move(t, n.a, n.b, nil)
	v := ended(t, n.a, id)
	require.Equal(t, v1.TransferCompleted, v.State, v.Message)
	berthtest.Until(t, time.Minute, "the container runs there", func() bool { return len(n.b.Processes(t)) == 1 })
	require.Empty(t, n.a.Processes(t))
	berthtest.Until(t, time.Minute, "the container is gone here", func() bool {
		answer, err := n.a.Try(context.Background(), "GET", "/containers/mc", nil)
		return err == nil && answer.Status == 404
	})
	there := filepath.Join(n.b.Data, "volumes", volume)
	again, err := os.ReadFile(filepath.Join(there, "installed"))
	require.NoError(t, err)
	require.Equal(t, installed, again, "it is not installed again")
	big, err := os.Stat(filepath.Join(there, "deep", "er", "big"))
	require.NoError(t, err)
	hard, err := os.Stat(filepath.Join(there, "hard"))
	require.NoError(t, err)
	require.True(t, os.SameFile(big, hard))
	target, err := os.Readlink(filepath.Join(there, "soft"))
	require.NoError(t, err)
	require.Equal(t, "deep/er", target)
	checkStamps(t, n.b, volume)
	n.b.Must(t, "GET", "/containers/mc/schedules/nightly", nil)
	n.b.Must(t, "GET", "/volumes/"+volume+"/backup-policy", nil)
	berthtest.Until(t, time.Minute, "the volume is deleted here", func() bool {
		answer, err := n.a.Try(context.Background(), "GET", "/volumes/"+volume, nil)
		return err == nil && answer.Status == 404
	})

	v = ended(t, n.b, n.move(t, n.b, n.a, map[string]any{"start": false}))
	require.Equal(t, v1.TransferCompleted, v.State, v.Message)
	n.a.State(t, "mc", "ready")
	require.Zero(t, n.running(t), "it is not started where it goes back to")
	again, err = os.ReadFile(filepath.Join(dir, "installed"))
	require.NoError(t, err)
	require.Equal(t, installed, again)
	checkStamps(t, n.a, volume)
}

// checkStamps fails unless the stamps are 1, 2, 3, …: none is lost, and none is written twice.
func checkStamps(t *testing.T, b *berthtest.Berth, volume string) int {
	t.Helper()
	all := stamps(t, b, volume)
	for i, s := range all {
		if i == len(all)-1 {
			break // it may be half written
		}
		require.Equal(t, fmt.Sprint(i+1), s, "line %d of %d", i+1, len(all))
	}
	return len(all)
}

// TestTransferGuards: a token of the scope arrive opens nothing else; a container that is being moved cannot be moved, and is not
// created at the destination; a cancelled one runs on.
func TestTransferGuards(t *testing.T) {
	t.Parallel()
	n := startNodes(t)
	volume := n.a.Volume(t)
	n.a.Started(t, "mc", berthtest.Spec{"volume_id": volume, "start_pattern": "Done", "startup_command": stamper})
	arrive := n.token(t, n.b)
	for _, path := range []string{"/containers", "/volumes", "/node", "/transfers", "/arrivals"} {
		require.Equal(t, 403, n.b.Do(t, "GET", path, nil, "Authorization", "Bearer "+arrive).Status, path)
	}
	require.Equal(t, 403, n.b.Do(t, "POST", "/containers", map[string]any{"internal_id": "x"}, "Authorization", "Bearer "+arrive).Status)
	require.Equal(t, 400, n.b.Do(t, "POST", "/auth/tokens", map[string]any{"scopes": []string{"arrive"}, "containers": []string{"mc"}}).Status)

	// The node itself, and a token that is none, are refused, and the container runs on.
	own := n.a.Do(t, "POST", "/containers/mc/transfer", map[string]any{"url": "http://" + n.a.Addr, "token": n.token(t, n.a)})
	require.Equal(t, 400, own.Status)
	require.Contains(t, string(own.Body), "the node itself")
	_, port, err := net.SplitHostPort(n.a.Addr)
	require.NoError(t, err)
	for _, body := range []map[string]any{{"url": "http://localhost:" + port, "token": n.token(t, n.a)}, {"token": berthtest.NewToken()}} {
		v := ended(t, n.a, n.move(t, n.a, n.b, body))
		require.Equal(t, v1.TransferFailed, v.State)
		require.Contains(t, v.Message, "The destination")
	}
	require.Equal(t, 409, n.a.Do(t, "POST", "/arrivals", map[string]any{"arrival_id": "d0c7a1de-3f57-4c11-9a58-6d2b0f6b1c2e", "volume": map[string]any{},
		"container": map[string]any{"internal_id": "mc", "image": "busybox", "volume_id": volume}}).Status)

	// While the destination is away, the transfer waits and can be cancelled.
	n.b.Kill9(t)
	var made struct {
		TransferID string `json:"transfer_id"`
	}
	n.a.Post(t, "/containers/mc/transfer", map[string]any{"url": "http://" + n.b.Addr, "token": arrive}).Decode(t, &made)
	require.Equal(t, 409, n.a.Do(t, "POST", "/containers/mc/transfer", map[string]any{"url": "http://" + n.b.Addr, "token": arrive}).Status)
	berthtest.Until(t, time.Minute, "an attempt has failed", func() bool { return transferOf(t, n.a, made.TransferID).Message != "" })
	n.a.Must(t, "DELETE", "/transfers/"+made.TransferID, nil)
	require.Equal(t, v1.TransferCancelled, transferOf(t, n.a, made.TransferID).State)
	require.Len(t, n.a.Processes(t), 1)
	n.b.Run(t)
	n.b.Ready(t)
}

// gate is a proxy in front of a node that loses requests, or their answers.
type gate struct {
	*httptest.Server
	lose   atomic.Pointer[string] // a part of the paths of requests that are not passed on; nil: none
	answer atomic.Pointer[string] // of requests that are passed on, and whose answers are lost
	seen   atomic.Int64           // requests that were lost, or their answers
}

func openGate(t *testing.T, b *berthtest.Berth) *gate {
	to, err := url.Parse("http://" + b.Addr)
	require.NoError(t, err)
	proxy := httputil.NewSingleHostReverseProxy(to)
	proxy.ErrorLog = log.New(io.Discard, "", 0)
	g := &gate{}
	hits := func(p *atomic.Pointer[string], path string) bool {
		part := p.Load()
		return part != nil && strings.Contains(path, *part)
	}
	g.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case hits(&g.lose, r.Method+r.URL.Path):
			g.seen.Add(1)
			w.WriteHeader(http.StatusBadGateway)
		case hits(&g.answer, r.Method+r.URL.Path):
			g.seen.Add(1)
			proxy.ServeHTTP(httptest.NewRecorder(), r)
			w.WriteHeader(http.StatusGatewayTimeout)
		default:
			proxy.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(g.Close)
	return g
}

func (g *gate) set(p *atomic.Pointer[string], part string) {
	if part == "" {
		p.Store(nil)
		return
	}
	p.Store(&part)
}

// TestTransferOfALargeFile: a file that is larger than what a connection carries before it is cut arrives.
func TestTransferOfALargeFile(t *testing.T) {
	t.Parallel()
	n := startNodes(t)
	volume := n.a.Volume(t)
	n.a.Started(t, "mc", berthtest.Spec{"volume_id": volume, "start_pattern": "Done", "startup_command": stamper})
	world := noise(40 << 20)
	require.NoError(t, os.WriteFile(filepath.Join(n.a.Data, "volumes", volume, "world"), world, 0o640))
	var through carried
	v := ended(t, n.a, n.move(t, n.a, n.b, map[string]any{"url": cutting(t, n.b, &through, every(12<<20))}))
	require.Equal(t, v1.TransferCompleted, v.State, v.Message)
	there, err := os.ReadFile(filepath.Join(n.b.Data, "volumes", volume, "world"))
	require.NoError(t, err)
	require.True(t, bytes.Equal(world, there))
	require.Greater(t, through.cuts.Load(), int64(2))
	t.Logf("%d connections were cut", through.cuts.Load())
}

// noise returns bytes that cannot be compressed.
func noise(size int) []byte {
	b := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{}).Read(b)
	return b
}

// cut is where a connection is cut.
type cut struct {
	behind int64         // bytes that it carries, in both directions
	stall  time.Duration // before it is cut
}

// every returns that each connection is cut behind some bytes.
func every(bytes int64) func() cut { return func() cut { return cut{behind: bytes} } }

// cutting opens a proxy in front of a node, and returns its address. next returns where the next connection is cut.
func cutting(t *testing.T, b *berthtest.Berth, through *carried, next func() cut) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	go func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer from.Close()
				to, err := net.Dial("tcp", b.Addr)
				if err != nil {
					return
				}
				defer to.Close()
				c := &cable{cut: next(), through: through}
				go func() {
					defer from.Close()
					_, _ = io.Copy(end{c, from}, to)
				}()
				_, _ = io.Copy(end{c, to}, io.TeeReader(from, through))
			}()
		}
	}()
	t.Cleanup(func() { l.Close() })
	return "http://" + l.Addr().String()
}

// cable is a connection that is cut.
type cable struct {
	cut
	carried atomic.Int64
	through *carried
}

// end is one end of a cable.
type end struct {
	*cable
	w io.Writer
}

// Write implements io.Writer.
func (e end) Write(p []byte) (int, error) {
	before := e.carried.Add(int64(len(p))) - int64(len(p))
	fits := min(int64(len(p)), max(0, e.behind-before))
	n, err := e.w.Write(p[:fits])
	if err == nil && n < len(p) {
		pause(e.stall)
		if before <= e.behind {
			e.through.cuts.Add(1)
			e.through.stalls.Add(min(1, int64(e.stall)))
		}
		err = io.ErrShortWrite
	}
	return n, err
}

// TestHandOver: once the commit was sent, the source starts the container no more, whatever is requested and even after a kill,
// until the destination has answered, or an operator has declared it gone.
func TestHandOver(t *testing.T) {
	t.Parallel()
	n := startNodes(t)
	g := openGate(t, n.b)
	volume := n.a.Volume(t)
	n.a.Started(t, "mc", berthtest.Spec{"volume_id": volume, "start_pattern": "Done", "startup_command": stamper})
	g.set(&g.lose, "/arrivals/") // nothing passes but the announcement
	id := n.move(t, n.a, n.b, map[string]any{"url": g.URL})
	berthtest.Until(t, time.Minute, "a copy was tried", func() bool { return g.seen.Load() > 0 })
	require.Equal(t, v1.TransferCopying, transferOf(t, n.a, id).State)
	require.Len(t, n.a.Processes(t), 1, "it runs while the destination cannot be reached")
	require.Equal(t, 409, n.b.Do(t, "POST", "/containers", n.b.Body(t, "mc", berthtest.Spec{})).Status, "its id is taken there")
	require.Equal(t, 409, n.b.Do(t, "DELETE", "/volumes/"+volume, nil).Status)
	require.Equal(t, 409, n.b.Do(t, "PUT", "/volumes/"+volume+"/files/content?path=x", "text").Status)

	g.set(&g.lose, "/commit")
	berthtest.Until(t, time.Minute, "the commit was tried", func() bool {
		v := transferOf(t, n.a, id)
		return v.State == v1.TransferHandingOver && v.Message != ""
	})
	guarded := func() {
		for _, r := range [][2]string{{"POST", "/containers/mc/start"}, {"POST", "/containers/mc/restart"}, {"POST", "/containers/mc/kill"},
			{"DELETE", "/containers/mc"}, {"PUT", "/volumes/" + volume + "/files/content?path=x"}} {
			answer := n.a.Do(t, r[0], r[1], nil)
			require.Equal(t, 409, answer.Status, r)
			require.Contains(t, string(answer.Body), "Container is being transferred", r)
		}
		require.Equal(t, 409, n.a.Do(t, "POST", "/containers/mc/reinstall", map[string]any{}).Status)
		require.Equal(t, 409, n.a.Do(t, "DELETE", "/volumes/"+volume, nil).Status)
		require.Zero(t, n.running(t))
	}
	guarded()
	n.a.Restart(t)
	guarded()
	g.set(&g.lose, "/arrivals/") // also the request to cancel
	answer := n.a.Do(t, "DELETE", "/transfers/"+id, nil)
	require.Equal(t, 409, answer.Status)
	require.Contains(t, string(answer.Body), "destination_is_gone")
	guarded()

	// The commit arrives, and its answer is lost: the next one is the same.
	g.set(&g.lose, "DELETE")
	g.set(&g.answer, "/commit")
	seen := g.seen.Load()
	n.a.Restart(t)
	berthtest.Until(t, time.Minute, "a request was lost", func() bool { return g.seen.Load() > seen })
	g.set(&g.answer, "")
	g.set(&g.lose, "")
	v := ended(t, n.a, id)
	if v.State == v1.TransferCompleted { // otherwise the request to cancel came first
		berthtest.Until(t, time.Minute, "it runs there", func() bool { return len(n.b.Processes(t)) == 1 })
		require.Empty(t, n.a.Processes(t))
		return
	}
	require.Equal(t, v1.TransferCancelled, v.State)
	n.a.State(t, "mc", "running")
	require.Equal(t, 1, n.running(t))
}

// TestLostCommit: the destination has committed, and every answer is lost: it is the only one that runs the container.
func TestLostCommit(t *testing.T) {
	t.Parallel()
	n := startNodes(t)
	g := openGate(t, n.b)
	volume := n.a.Volume(t)
	n.a.Started(t, "mc", berthtest.Spec{"volume_id": volume, "start_pattern": "Done", "startup_command": stamper})
	g.set(&g.answer, "/commit")
	id := n.move(t, n.a, n.b, map[string]any{"url": g.URL})
	berthtest.Until(t, time.Minute, "it runs there", func() bool { return len(n.b.Processes(t)) == 1 })
	n.a.Restart(t)
	require.Equal(t, v1.TransferHandingOver, transferOf(t, n.a, id).State)
	require.Empty(t, n.a.Processes(t))
	g.set(&g.answer, "")
	var v v1.TransferView // to cancel is too late: the answer is that it is there
	n.a.Must(t, "DELETE", "/transfers/"+id, nil).Decode(t, &v)
	require.Equal(t, v1.TransferCompleted, v.State)
	require.Empty(t, n.a.Processes(t))
	require.Len(t, n.b.Processes(t), 1)
	checkStamps(t, n.b, volume)
}

// TestDestinationIsGone: an operator gives the container back although the destination never answers.
func TestDestinationIsGone(t *testing.T) {
	t.Parallel()
	n := startNodes(t)
	g := openGate(t, n.b)
	volume := n.a.Volume(t)
	n.a.Started(t, "mc", berthtest.Spec{"volume_id": volume, "start_pattern": "Done", "startup_command": stamper})
	g.set(&g.lose, "/commit")
	id := n.move(t, n.a, n.b, map[string]any{"url": g.URL})
	berthtest.Until(t, time.Minute, "the commit was tried", func() bool { return g.seen.Load() > 0 })
	g.set(&g.lose, "/arrivals")
	var v v1.TransferView
	n.a.Must(t, "DELETE", "/transfers/"+id+"?destination_is_gone=true", nil).Decode(t, &v)
	require.Equal(t, v1.TransferCancelled, v.State)
	n.a.State(t, "mc", "running")
	checkStamps(t, n.a, volume)
	g.set(&g.lose, "") // it was not gone: what has arrived is removed
	berthtest.Until(t, time.Minute, "the arrival is removed", func() bool {
		answer, err := n.b.Try(context.Background(), "GET", "/volumes/"+volume, nil)
		return err == nil && answer.Status == 404
	})
	require.Equal(t, 1, n.running(t))
}

// moveOften moves a container that writes all the time from one node to the other and back, so many times. begin begins a transfer
// and disturbs it. At no time both nodes run the container, every transfer completes, no stamp is lost, and the trees are equal.
func (n nodes) moveOften(t *testing.T, rounds int, begin func(round int, from, to *berthtest.Berth) (id string)) {
	volume := n.a.Volume(t)
	n.a.Started(t, "mc", berthtest.Spec{"volume_id": volume, "start_pattern": "Done", "startup_command": stamper})
	old := func(b *berthtest.Berth) string { return filepath.Join(b.Data, "volumes", volume, "old") }
	prepareOld(t, filepath.Dir(old(n.a)))
	require.NoError(t, os.WriteFile(filepath.Join(old(n.a), "world"), noise(5<<20), 0o604)) // it has two parts
	stop, watched := make(chan struct{}), make(chan int, 1)
	go func() {
		both := 0
		for {
			select {
			case <-stop:
				watched <- both
				return
			default:
				before, there, after := n.a.Processes(t)["mc"], n.b.Processes(t)["mc"], n.a.Processes(t)["mc"]
				if before != "" && there != "" && before == after {
					both++
				}
			}
		}
	}()
	from, to := n.a, n.b
	for round := range rounds {
		v := ended(t, from, begin(round, from, to))
		require.Equal(t, v1.TransferCompleted, v.State, "round %d: %s", round, v.Message)
		berthtest.Until(t, time.Minute, "the container runs there", func() bool { return len(to.Processes(t)) == 1 })
		checkStamps(t, to, volume)
		written, arrived := stamps(t, from, volume), stamps(t, to, volume)
		require.LessOrEqual(t, len(written), len(arrived), "round %d", round)
		require.Equal(t, written, arrived[:len(written)], "round %d", round)
		require.Empty(t, cmp.Diff(fullTree(t, old(from)), fullTree(t, old(to))), "round %d", round)
		gone(t, from, "/containers/mc")
		from.Must(t, "DELETE", "/volumes/"+volume, nil)
		gone(t, from, "/volumes/"+volume)
		from, to = to, from
	}
	close(stop)
	require.Zero(t, <-watched, "how often both nodes ran the container")
	t.Logf("%d transfers, %d stamps", rounds, checkStamps(t, from, volume))
}

// TestKilledTransfers kills either node at a moment of each transfer, in turns.
func TestKilledTransfers(t *testing.T) {
	t.Parallel()
	n := startNodes(t)
	n.moveOften(t, rounds(4, 100), func(round int, from, to *berthtest.Berth) string {
		id := n.move(t, from, to, map[string]any{"keep": "1h"})
		pause(time.Duration(round%16) * 150 * time.Millisecond)
		victim := from
		if round%2 == 1 {
			victim = to
		}
		victim.Kill9(t)
		victim.Run(t)
		victim.Ready(t)
		return id
	})
}

// TestCutTransfers cuts every other connection behind a few bytes of its requests and answers, many of them after a time in which
// it carries nothing. No part of a file could arrive if each connection was cut so early.
func TestCutTransfers(t *testing.T) {
	t.Parallel()
	n := startNodes(t)
	var through carried
	var connections atomic.Int64
	next := func() cut {
		if connections.Add(1)%2 == 0 {
			return cut{behind: math.MaxInt64}
		}
		c := cut{behind: 1 + rand.Int64N(3<<10)}
		if rand.IntN(3) == 0 {
			c.stall = rand.N(time.Second)
		}
		return c
	}
	front := map[*berthtest.Berth]string{n.a: cutting(t, n.a, &through, next), n.b: cutting(t, n.b, &through, next)}
	began := time.Now()
	n.moveOften(t, rounds(2, 50), func(_ int, from, to *berthtest.Berth) string {
		return n.move(t, from, to, map[string]any{"url": front[to], "keep": "1h"})
	})
	require.Positive(t, through.cuts.Load())
	t.Logf("%d of %d connections were cut, %d of them after a stall; %.1f s", through.cuts.Load(), connections.Load(), through.stalls.Load(),
		time.Since(began).Seconds())
}

// TestTransferIsGuardedByTLS: nothing is sent to a node whose certificate no authority vouches for, nor to a private address where
// transfers.private is false. A transfer that waits for either goes on after a reload.
func TestTransferIsGuardedByTLS(t *testing.T) {
	t.Parallel()
	private := "transfers: {private: false}\n"
	n := nodes{berthtest.Start(t, berthtest.Options{Config: private}), berthtest.Start(t, berthtest.Options{})}
	to, err := url.Parse("http://" + n.b.Addr)
	require.NoError(t, err)
	var requests atomic.Int64
	proxy := httputil.NewSingleHostReverseProxy(to)
	front := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { requests.Add(1); proxy.ServeHTTP(w, r) }))
	front.Config.ErrorLog = log.New(io.Discard, "", 0)
	front.StartTLS()
	t.Cleanup(front.Close)
	n.a.Made(t, "mc", nil)
	id := n.move(t, n.a, n.b, map[string]any{"url": front.URL})
	waits := func(why string) {
		t.Helper()
		berthtest.Until(t, wait, why, func() bool { return strings.Contains(transferOf(t, n.a, id).Message, why) })
		require.Zero(t, requests.Load())
	}
	waits("the address is not public: transfers.private is false")
	unknown := "transfers: {private: true}\n"
	reload(t, n.a, private, unknown)
	waits("certificate signed by unknown authority")
	ca := filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: front.Certificate().Raw}), 0o644))
	reload(t, n.a, unknown, fmt.Sprintf("transfers: {private: true, ca: %q}\n", ca))
	v := ended(t, n.a, id)
	require.Equal(t, v1.TransferCompleted, v.State, v.Message)
	require.Positive(t, requests.Load())
}
