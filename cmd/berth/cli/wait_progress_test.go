package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestProgressOnTerminal shows state, message and the last console line of each
// container in place, and removes them in the end.
func TestProgressOnTerminal(t *testing.T) {
	t.Parallel()
	f := newFakeAPI(t, map[string]string{
		"GET /containers/a": state("a", "starting", `,"message":"waits"`), "GET /containers/b": state("b", "installing", ""),
		"GET /containers/a/logs?tail=1":         `200 {"lines":[{"data":"\u001b[1;31mloading\u001b[0m \u001b[2J\r world"}]}`,
		"GET /containers/b/install-logs?tail=1": `200 {"lines":[{"data":"unpacking ` + strings.Repeat("x", 200) + `"}]}`,
	})
	tty := openTerminal(t, 60, 10)
	done := make(chan error, 1)
	var out syncBuffer
	go func() {
		root := NewRoot(Options{Environ: f.env()})
		root.SetArgs([]string{"wait", "a", "b", "running"})
		root.SetOut(&out)
		root.SetErr(Printable(tty.File))
		done <- root.ExecuteContext(t.Context())
	}()
	tty.until(t, "a  0s  starting  waits  loading  [2J  world\x1b[K\r\n")
	tty.until(t, "b  0s  installing  unpacking xxx")
	tty.until(t, "xxx…\x1b[K\r\n\x1b[J\x1b[2A")
	f.set("GET /containers/a", state("a", "running", ""))
	tty.until(t, "\x1b[2A\x1b[J")
	require.Eventually(t, func() bool { return out.String() == "a is running\n" }, 20*time.Second, time.Millisecond)
	tty.until(t, "xxx…\x1b[K\r\n\x1b[J\x1b[1A") // b alone
	f.set("GET /containers/b", state("b", "running", ""))
	require.NoError(t, <-done)
	require.Eventually(t, func() bool { return strings.HasSuffix(tty.shown(), "\x1b[1A\x1b[J") }, 20*time.Second, time.Millisecond)
	require.Equal(t, "a is running\nb is running\n", out.String())
}

// TestProgressLines prints each change once where there is no terminal.
func TestProgressLines(t *testing.T) {
	t.Parallel()
	f := newFakeAPI(t, map[string]string{"GET /containers/mc": state("mc", "installing", `,"message":"pulls\tthe image"`)})
	_, errOut, err := command(t, f.env(), "wait", "mc", "running", "--timeout", "700ms")
	require.EqualError(t, err, "mc is not running in time: it is installing, pulls\tthe image")
	require.Equal(t, "mc: installing, pulls the image\n", errOut)
}
