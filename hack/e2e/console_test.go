package e2e_test

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"berth/hack/test/berthtest"
)

const counting = `i=0; while :; do i=$((i+1)); echo "tick $i"; usleep 10000; done`

var tick = regexp.MustCompile(`tick (\d+)\r?\n`)

// ticks returns the numbers in a text, in order.
func ticks(text string) (list []int) {
	for _, m := range tick.FindAllStringSubmatch(text, -1) {
		n, _ := strconv.Atoi(m[1]) // digits
		list = append(list, n)
	}
	return list
}

// received returns the console output that a socket received: history and live output.
func received(s *berthtest.Socket) string {
	var b strings.Builder
	for _, m := range s.Messages() {
		if m.Event == "logs" || m.Event == "console" {
			b.WriteString(m.Data)
		}
	}
	return b.String()
}

// requireNoGap requires that the numbers increase one by one.
func requireNoGap(t *testing.T, what string, list []int) {
	t.Helper()
	for i := 1; i < len(list); i++ {
		require.Equal(t, list[i-1]+1, list[i], "%s: line %d is followed by %d", what, list[i-1], list[i])
	}
}

// requireOneRun requires that no other run has begun, which would count from 1 again.
func requireOneRun(t *testing.T, s *berthtest.Socket) {
	t.Helper()
	for _, m := range s.Messages() {
		require.False(t, m.Event == "event" && m.Data != "running", m.Raw)
	}
}

// TestConsoleKeepsEveryLine kills the daemon while containers print every 10 ms.
// Neither the journal nor a socket, which receives first the journal and then
// live lines, misses or repeats a line.
func TestConsoleKeepsEveryLine(t *testing.T) {
	t.Parallel()
	b, random := berthtest.Start(t, berthtest.Options{}), dice(t)
	for _, tty := range []bool{true, false} {
		b.Started(t, fmt.Sprintf("tty-%v", tty), berthtest.Spec{"startup_command": counting, "tty": tty})
	}
	kills := rounds(5, 30)
	for range kills {
		live := map[string]*berthtest.Socket{}
		for _, id := range []string{"tty-true", "tty-false"} {
			live[id] = b.Listen(t, "/ws/"+id+"?tail=10000")
			live[id].Await(t, "live lines", func([]berthtest.Message) bool { return len(ticks(received(live[id]))) > 0 })
		}
		pause(time.Duration(100+random.IntN(900)) * time.Millisecond)
		b.Kill9(t)
		for id, s := range live {
			require.Zero(t, s.Ended(t), "the connection breaks without a close frame")
			requireOneRun(t, s)
			list := ticks(received(s))
			requireNoGap(t, "socket of "+id, list)
			require.Equal(t, 1, list[0], "from the beginning")
		}
		b.Run(t)
		b.Ready(t)
	}
	for _, id := range []string{"tty-true", "tty-false"} {
		s := b.Listen(t, "/ws/"+id+"?tail=10000")
		s.Await(t, "live lines", func(all []berthtest.Message) bool { return len(all) > 50 })
		requireOneRun(t, s)
		b.Verb(t, id, "kill")
		b.State(t, id, "exit")
		list := journal(t, b, id)
		requireNoGap(t, "journal of "+id, list)
		require.Equal(t, 1, list[0])
		last := list[len(list)-1]
		s.Await(t, "the last line", func([]berthtest.Message) bool { l := ticks(received(s)); return l[len(l)-1] >= last })
		require.Equal(t, list, ticks(received(s)), "journal and live lines together equal the journal at the end")
		t.Logf("%s: %d lines over %d kills, none missing, none doubled", id, last, kills)
	}
}

func journal(t *testing.T, b *berthtest.Berth, id string) []int {
	t.Helper()
	var body struct{ Lines []struct{ Data string } }
	b.Get(t, "/containers/"+id+"/logs?tail=10000", &body)
	var text strings.Builder
	for _, l := range body.Lines {
		text.WriteString(l.Data + "\n")
	}
	return ticks(text.String())
}
