package e2e_test

import (
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/creack/pty"
	"github.com/stretchr/testify/require"
	"golang.org/x/term"

	v1 "berth/api/v1"
	"berth/hack/test/berthtest"
)

// TestAttachOnTerminal types into the console of a container with a terminal of its
// own. The detach keys restore the terminal, and the container runs on.
func TestAttachOnTerminal(t *testing.T) {
	t.Parallel()
	b := berthtest.Start(t, berthtest.Options{})
	b.Started(t, "mc", berthtest.Spec{"startup_command": `sh -c 'while read -r line; do echo "got <$line>"; done'`})
	master, tty, err := pty.Open()
	require.NoError(t, err)
	defer master.Close()
	defer tty.Close()
	before, err := term.GetState(int(tty.Fd()))
	require.NoError(t, err)
	cmd := berthCommand(t, b, "attach", "mc")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	require.NoError(t, cmd.Start())
	shown := newTranscript(master)
	shown.until(t, "state is running")

	shown.press(t, "hello\r")
	shown.until(t, "got <hello>")
	shown.press(t, "\x10\x11")
	require.NoError(t, cmd.Wait())
	shown.until(t, "detached from mc")
	after, err := term.GetState(int(tty.Fd()))
	require.NoError(t, err)
	require.Equal(t, before, after)
	require.Equal(t, v1.Running, b.Container(t, "mc").State)

	out, errOut, code := runCommand(t, b, "attach", "nope")
	require.Equal(t, 3, code, "%s%s", out, errOut)
}

// transcript is what a terminal has shown.
type transcript struct {
	master *os.File

	mu  sync.Mutex
	all []byte
}

// newTranscript reads from a terminal until it is closed.
func newTranscript(master *os.File) *transcript {
	s := &transcript{master: master}
	go func() {
		buffer := make([]byte, 4096)
		for {
			n, err := master.Read(buffer)
			s.mu.Lock()
			s.all = append(s.all, buffer[:n]...)
			s.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	return s
}

func (s *transcript) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return string(s.all)
}

func (s *transcript) until(t *testing.T, text string) {
	t.Helper()
	berthtest.Until(t, wait, "the terminal shows "+text, func() bool { return strings.Contains(s.text(), text) })
}

func (s *transcript) press(t *testing.T, keys string) {
	t.Helper()
	_, err := s.master.WriteString(keys)
	require.NoError(t, err)
}
