package e2e_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"berth/hack/test/berthtest"
)

// TestOutputBeforeExit: a socket receives all output of a run or an
// installation before the event of its end.
func TestOutputBeforeExit(t *testing.T) {
	t.Parallel()
	b := berthtest.Start(t, berthtest.Options{})
	for i, tty := range []bool{true, false} {
		id := fmt.Sprintf("mc-%d", i)
		b.Made(t, id, berthtest.Spec{"tty": tty, "restart_policy": map[string]any{"mode": "never"},
			"startup_command": "sh -c 'echo hello; seq 1 200; echo bye'", "install_script": "echo first"})
		s := b.Listen(t, "/ws/"+id+"?tail=0")
		_, next := s.Event(t, 0, id, "ready")
		for range rounds(5, 50) {
			for verb, want := range map[string]struct{ state, words string }{
				"start": {"exit", "bye"}, "reinstall": {"ready", "second"},
			} {
				b.Must(t, "POST", "/containers/"+id+"/"+verb, map[string]any{"start": nil, "reinstall": map[string]any{"install_script": "echo second"}}[verb])
				var m berthtest.Message
				from := next
				m, next = s.Event(t, from, id, want.state)
				said := s.Messages()[from:next]
				require.True(t, slices.ContainsFunc(said, func(m berthtest.Message) bool {
					return m.Event == "console" && strings.Contains(m.Data, want.words)
				}), "%s after %s: %v", m.Data, verb, said)
			}
		}
	}
}
