package e2e_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"berth/api/stream"
	v1 "berth/api/v1"
	"berth/hack/test/berthtest"
)

// number is a whole line of digits.
var number = regexp.MustCompile(`(?m)(\d+)\r?$`)

// rates are pairs of lines per burst and microseconds between bursts: 1 to 5,000
// lines a second.
var rates = [][2]int{{1, 1_000_000}, {1, 50_000}, {10, 50_000}, {50, 50_000}, {100, 20_000}}

// numbers returns a script that prints 1, 2, 3 and so on. It ignores the hangup that a kill of its terminal's
// leader sends, because the shell would print "Hangup" for the program that it runs.
func numbers(rate [2]int) string {
	return fmt.Sprintf(`trap "" HUP; i=0; while :; do seq $((i+1)) $((i+%d)); i=$((i+%d)); usleep %d; done`, rate[0], rate[0], rate[1])
}

// TestConsoleAtAnyRate kills the daemon while containers print 1 to 5,000
// lines a second, with and without a terminal. At the end the journals have every
// line of the engine's logs.
func TestConsoleAtAnyRate(t *testing.T) {
	b, random := berthtest.Start(t, berthtest.Options{}), dice(t)
	var ids []string
	for i := range rounds(len(rates), 20) {
		id := fmt.Sprintf("c%d", i)
		b.Started(t, id, berthtest.Spec{"startup_command": numbers(rates[i%len(rates)]), "tty": i%2 == 0})
		ids = append(ids, id)
	}
	kills := rounds(3, 25)
	for range kills {
		pauseBefore(random)
		b.Restart(t)
	}
	pauseBefore(random)
	for _, id := range ids {
		b.Verb(t, id, "kill")
	}
	for _, id := range ids {
		b.State(t, id, "exit")
	}
	last := map[string]int{}
	for _, id := range ids {
		last[id] = lastNumber(t, b, id)
		awaitLine(t, b, id, last[id])
	}
	b.Kill9(t) // the journals are read by the test from here on
	lines := 0
	for id, n := range last {
		requireNumbers(t, b, id, n)
		lines += n
	}
	t.Logf("%d lines over %d kills, none missing, none doubled", lines, kills)
}

func pauseBefore(random *rand.Rand) { pause(time.Duration(100+random.IntN(900)) * time.Millisecond) }

// awaitLine waits until a number is the last line of a console.
func awaitLine(t *testing.T, b *berthtest.Berth, id string, n int) {
	t.Helper()
	var body struct{ Lines []struct{ Data string } }
	berthtest.Until(t, wait, fmt.Sprintf("%d is the last line of %s", n, id), func() bool {
		b.Get(t, "/containers/"+id+"/logs?tail=1", &body)
		return len(body.Lines) == 1 && body.Lines[0].Data == strconv.Itoa(n)
	})
}

// lastNumber returns the last number in the engine's log of a container.
func lastNumber(t *testing.T, b *berthtest.Berth, id string) int {
	t.Helper()
	one := b.Containers(t, id)[0]
	var text []byte
	if b.Cluster == nil {
		text = b.Engine.Must(t, http.MethodGet, "/containers/"+one.ID+"/logs?stdout=1&tail=2", nil)
	} else {
		_, text = b.Cluster.Call(t, http.MethodGet, "/api/v1/namespaces/"+b.Cluster.Name+"/pods/"+one.Names[0]+"/log?tailLines=2", nil)
	}
	all := number.FindAllStringSubmatch(string(text), -1)
	require.NotEmpty(t, all, "%q", text)
	n, err := strconv.Atoi(all[len(all)-1][1])
	require.NoError(t, err)
	return n
}

// requireNumbers requires 1 to n in a journal, in order and once each.
func requireNumbers(t *testing.T, b *berthtest.Berth, id string, n int) {
	t.Helper()
	journals := stream.New(filepath.Join(b.Data, "console"), stream.Options{})
	defer journals.Close()
	want := 1
	err := journals.Since(t.Context(), id, v1.ServerConsole, time.Time{}, func(l v1.Line) bool {
		require.Equal(t, strconv.Itoa(want), string(l.Data), "journal of %s", id)
		want++
		return true
	})
	require.NoError(t, err)
	require.Equal(t, n, want-1, "the last line of %s", id)
}
