package cli

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestColor shows a running container, whose state is green where there are colours.
func TestColor(t *testing.T) {
	f := newFakeAPI(t, map[string]string{"GET /containers": `200 {"containers":[{"internal_id":"mc","state":"running"}]}`})
	const green = "\x1b[32mrunning\x1b[0m"
	for _, x := range []struct {
		env    []string
		args   []string
		colour bool
	}{
		{nil, nil, true},
		{[]string{"NO_COLOR="}, nil, true}, // https://no-color.org: not empty
		{[]string{"NO_COLOR=1"}, nil, false},
		{[]string{"TERM=dumb"}, nil, false},
		{[]string{"NO_COLOR=1"}, []string{"--color", "always"}, true},
		{nil, []string{"--color", "never"}, false},
		{nil, []string{"-o", "json"}, false},
	} {
		tty := openTerminal(t, 100, 20)
		root := NewRoot(Options{Environ: append(f.env(), x.env...)})
		root.SetArgs(append([]string{"containers"}, x.args...))
		root.SetOut(Printable(tty.File))
		require.NoError(t, root.ExecuteContext(t.Context()))
		tty.until(t, "running")
		if x.colour {
			tty.until(t, green)
		} else {
			require.NotContains(t, tty.shown(), "\x1b", "%v", x)
		}
	}
	out, _, err := command(t, f.env(), "containers")
	require.NoError(t, err)
	require.NotContains(t, out, "\x1b", "a file has no colours")
	out, _, err = command(t, f.env(), "containers", "--color", "always")
	require.NoError(t, err)
	require.Contains(t, out, green)
}
