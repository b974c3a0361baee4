package e2e_test

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"berth/hack/test/berthtest"
)

// swapScript exchanges, as fast as a shell can, a folder and a link to outside
// under one name, and a file, a link and a FIFO under another.
const swapScript = `
echo mine > file; tar -cf made.tar file
while :; do
	rm -rf swap entry
	mkdir -p folder; echo mine > folder/secret; cp made.tar folder; echo mine > plain
	[ -L link ] || ln -s ../OTHER link; [ -L filelink ] || ln -s ../OTHER/secret filelink; [ -p fifo ] || mkfifo fifo
	for i in 1 2 3 4 5 6 7 8; do
		mv folder swap; mv swap folder; mv link swap; mv swap link
		mv plain entry; mv entry plain; mv filelink entry; mv entry filelink; mv fifo entry; mv entry fifo
		echo >> swaps
	done
done
`

// The number of calls and swaps after which a race ends. A time limit would be too
// short on a busy host.
func raceCalls() int64 { return int64(rounds(300, 20_000)) }
func raceSwaps() int   { return rounds(6, 400) }

const raceWait = 5 * time.Minute

// TestTenantSwapsLinks lets 8 clients use every endpoint for files while the
// tenant's container exchanges the files at their paths.
func TestTenantSwapsLinks(t *testing.T) {
	t.Parallel()
	w := newTenant(t, swapScript)
	berthtest.Until(t, wait, "it swaps", func() bool { return w.container.Count("swaps") > 0 })
	before := w.around(t)
	random := dice(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var group sync.WaitGroup
	var calls, done atomic.Int64
	for range 8 {
		own := rand.New(rand.NewPCG(random.Uint64(), 0))
		group.Go(func() {
			for ctx.Err() == nil && !t.Failed() {
				calls.Add(1)
				done.Add(w.race(t, own))
			}
		})
	}
	begun := w.container.Count("swaps")
	over := berthtest.Within(raceWait, func() bool {
		return t.Failed() || calls.Load() > raceCalls() && done.Load() > 20 && w.container.Count("swaps") > begun+raceSwaps()
	})
	cancel()
	group.Wait()
	swaps := w.container.Count("swaps")
	w.Verb(t, "tenant", "kill")
	w.State(t, "tenant", "exit")
	t.Logf("%d calls, %d of them answered 200, %d swaps", calls.Load(), done.Load(), swaps*10)
	require.True(t, over, "the race reaches its number of calls and swaps, and some calls succeed")
	w.noSecret(t)
	require.Empty(t, cmp.Diff(before, w.around(t)))
}

// racePaths are the paths that the tenant exchanges.
var racePaths = []string{"swap", "swap/secret", "swap/new", "swap/new/deep", "swap/made.tar", "entry", "entry/x", "folder/secret"}

// race makes one call and returns 1 if it was answered with 200.
func (w *tenant) race(t *testing.T, random *rand.Rand) int64 {
	c := throughCalls[random.IntN(len(throughCalls))]
	p := racePaths[random.IntN(len(racePaths))]
	answer, err := w.call(t.Context(), c, p)
	if c.name == "read" && errors.Is(err, io.ErrUnexpectedEOF) { // the tenant has truncated it meanwhile
		return 0
	}
	if err != nil {
		t.Errorf("%s of %s: %v", c.name, p, err)
		return 0
	}
	if !slices.Contains([]int{200, 400, 404, 409}, answer.Status) {
		t.Errorf("%s of %s: %d %s", c.name, p, answer.Status, answer.Body)
	}
	if answer.Status != 200 {
		return 0
	}
	for _, made := range []string{"taken", "taken.tar"} {
		_, err = w.call(t.Context(), fileCall{name: "clean", request: "DELETE files?path=P"}, made)
		if err != nil {
			t.Errorf("cleaning up: %v", err)
		}
	}
	return 1
}
