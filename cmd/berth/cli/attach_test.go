package cli

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fasthttp/websocket"
	"github.com/stretchr/testify/require"
	"golang.org/x/term"
)

// fakeConsole is a daemon with a container whose terminal echoes each line and then
// prints "did" and the line. The line restart ends the stream, as a restart of the daemon
// does, and the line bye deletes the container.
type fakeConsole struct {
	server  *httptest.Server
	written chan string

	mu        sync.Mutex
	requested string
	lines     []string
}

func newFakeConsole(t *testing.T) *fakeConsole {
	f := &fakeConsole{written: make(chan string, 8)}
	f.server = httptest.NewServer(f)
	t.Cleanup(func() {
		f.server.Close()
		close(f.written)
	})
	return f
}

func (f *fakeConsole) env() []string {
	return []string{"BERTH_URL=" + f.server.URL, "BERTH_TOKEN=" + clientToken}
}

func (f *fakeConsole) received() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return strings.Join(f.lines, "|")
}

func (f *fakeConsole) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/containers/mc":
		_, _ = io.WriteString(w, `{"internal_id":"mc","tty":true}`)
	case "/containers/mc/command":
		var body struct{ Command string }
		if json.NewDecoder(r.Body).Decode(&body) != nil || body.Command == "refused" {
			http.Error(w, `{"error":"Container is not running"}`, http.StatusConflict)
			return
		}
		f.mu.Lock()
		f.lines = append(f.lines, body.Command)
		f.mu.Unlock()
		f.written <- body.Command
		_, _ = io.WriteString(w, `{}`)
	default:
		f.serveSocket(w, r)
	}
}

func (f *fakeConsole) serveSocket(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	first := f.requested == ""
	f.requested += r.URL.RequestURI() + " "
	f.mu.Unlock()
	upgrader := websocket.Upgrader{}
	ws, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return
	}
	defer ws.Close()
	send := func(event, data string) {
		text, _ := json.Marshal(map[string]string{"event": event, "data": data})
		_ = ws.WriteMessage(websocket.TextMessage, text)
	}
	send("event", "running")
	if first {
		send("logs", "old line\n")
	}
	for line := range f.written {
		switch line {
		case "bye", "restart":
			code := map[string]int{"bye": websocket.CloseNormalClosure, "restart": websocket.CloseGoingAway}[line]
			_ = ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, ""), time.Now().Add(time.Second))
			return
		}
		send("console", line+"\r\ndid "+line+" \x1b[2J\x1b[32mgreen\r\n")
	}
}

// attached is a running `berth attach` on a terminal.
type attached struct {
	t      *testing.T
	tty    *fakeTerminal
	before *term.State
	stop   func() error // interrupts the command
	done   func() error // waits until it has ended
}

func newAttached(t *testing.T, f *fakeConsole, args ...string) *attached {
	t.Helper()
	tty := openTerminal(t, 80, 24)
	before, err := term.GetState(int(tty.Fd()))
	require.NoError(t, err)
	a := &attached{t: t, tty: tty, before: before}
	a.stop, a.done = run(t, func(ctx context.Context) error {
		root := NewRoot(Options{Environ: f.env()})
		root.SetArgs(append([]string{"attach", "mc"}, args...))
		root.SetIn(tty.File)
		root.SetOut(Printable(tty.File))
		root.SetErr(Printable(tty.File))
		return root.ExecuteContext(ctx)
	})
	tty.until(t, "old line\r\n")
	return a
}

// press types keys.
func (a *attached) press(keys string) {
	_, err := a.tty.master.WriteString(keys)
	require.NoError(a.t, err)
}

// ended waits for the end of the command, and requires that the terminal is as before.
func (a *attached) ended(err error) error {
	a.t.Helper()
	after, stateErr := term.GetState(int(a.tty.Fd()))
	require.NoError(a.t, stateErr)
	require.Equal(a.t, a.before, after, "the terminal is restored")
	return err
}

// wait waits until the command ends by itself.
func (a *attached) wait(text string) error {
	a.t.Helper()
	a.tty.until(a.t, text)
	return a.ended(a.done())
}

func TestAttach(t *testing.T) {
	t.Parallel()
	f := newFakeConsole(t)
	a := newAttached(t, f, "--tail", "7")
	a.tty.until(t, "berth: state is running\r\n")
	a.press("say hx\x7fi\r") // a typing error
	a.tty.until(t, "did say hi \\x1b[2J\x1b[32mgreen")
	require.Equal(t, "say hi", f.received())
	a.press("half a line\x10\x11")
	require.NoError(t, a.wait("berth: detached from mc\r\n"))
	require.Equal(t, "/ws/mc?tail=7 ", f.requested)
	require.NotContains(t, f.received(), "half")
}

// TestAttachOverRestart: a person stays attached while the daemon restarts, and sees which
// line was not sent.
func TestAttachOverRestart(t *testing.T) {
	t.Parallel()
	a := newAttached(t, newFakeConsole(t))
	a.press("refused\r")
	a.tty.until(t, "berth: the line was not sent: Container is not running\r\n")
	a.press("restart\r")
	a.tty.until(t, "berth: the daemon closed the stream: ; connecting again\r\n")
	a.press("after\r")
	a.tty.until(t, "did after")
	require.NoError(t, a.ended(a.stop()))
}

// TestAttachRestoresTerminal ends an attachment in every way.
func TestAttachRestoresTerminal(t *testing.T) {
	t.Parallel()
	for name, keys := range map[string]string{"Ctrl-C": "\x03", "Ctrl-D": "\x04", "detach keys": "\x10\x11"} {
		a := newAttached(t, newFakeConsole(t))
		a.press(keys)
		require.NoError(t, a.wait("berth: detached from mc\r\n"), name)
	}
	a := newAttached(t, newFakeConsole(t))
	require.NoError(t, a.ended(a.stop()), "an interrupt is no error")

	a = newAttached(t, newFakeConsole(t))
	a.press("bye\r")
	err := a.ended(a.done())
	require.EqualError(t, err, "mc: the container is deleted")
	require.Equal(t, exitNotFound, ExitCode(err))
}

// TestAttachWithoutTerminal sends the lines of a file, and follows after its end.
func TestAttachWithoutTerminal(t *testing.T) {
	t.Parallel()
	for _, x := range []struct{ stdin, args, want string }{
		{"list\nbye\n", "", "list|bye"},
		{strings.Repeat("x", maxInput+1) + "\nbye", "", "bye"},
	} {
		f := newFakeConsole(t)
		var out, errOut syncBuffer
		root := NewRoot(Options{Environ: f.env()})
		root.SetArgs(append([]string{"attach", "mc"}, strings.Fields(x.args)...))
		root.SetIn(strings.NewReader(x.stdin))
		root.SetOut(&out)
		root.SetErr(&errOut)
		require.ErrorContains(t, root.ExecuteContext(t.Context()), "the container is deleted")
		require.Equal(t, x.want, f.received())
		require.Contains(t, out.String(), "old line\n")
		require.Equal(t, len(x.stdin) > maxInput, strings.Contains(errOut.String(), "longer than 8KiB"))
	}
}

func TestAttachFailsBeforeConsole(t *testing.T) {
	f := newFakeAPI(t, nil)
	_, _, err := command(t, f.env(), "attach", "nope")
	require.EqualError(t, err, "nope: Route not found")
}
