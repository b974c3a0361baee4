package cli

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// lines returns a table as lines of text.
func lines(t *testing.T, from *table) []string {
	t.Helper()
	var b strings.Builder
	require.NoError(t, from.print(&b))
	return strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
}

func newExample() *table {
	t := &table{}
	t.line("above\tall\x1b[2J")
	t.head("ID", "STATE", "UID*", "WHY")
	t.row("long-name", "running", "u1", "")
	t.row("b", "exit", "u2", "日本\x1b]0;x\x07 a longer \u202e text")
	return t
}

func TestTable(t *testing.T) {
	require.Equal(t, []string{
		"above all [2J",
		"ID         STATE    WHY",
		"long-name  running  -",
		"b          exit     日本 ]0;x  a longer   text",
	}, lines(t, newExample()))
	wide := newExample()
	wide.wide = true
	require.Equal(t, []string{
		"above all [2J",
		"ID         STATE    UID  WHY",
		"long-name  running  u1   -",
		"b          exit     u2   日本 ]0;x  a longer   text",
	}, lines(t, wide))
	require.Empty(t, strings.Join(lines(t, &table{}), ""))
}

func TestTableColours(t *testing.T) {
	colours := newExample()
	colours.colour = true
	require.Equal(t, "long-name  \x1b[32mrunning\x1b[0m  -", lines(t, colours)[2], "the colour takes no cells")
	require.NotContains(t, lines(t, colours)[1], "\x1b")
}

func TestFieldsAlign(t *testing.T) {
	fields := &table{}
	fields.field("container", "mc")
	fields.field("empty", "")
	fields.field("up", "a text that is wider than the terminal")
	require.Equal(t, []string{"container:  mc", "up:         a text that is wider than the terminal"}, lines(t, fields))
}

// TestColor shows a running container, whose state is green where there are colours.
func TestColor(t *testing.T) {
	f := newFakeAPI(t, map[string]string{"GET /containers": `200 {"containers":[{"internal_id":"mc","state":"running"}]}`})
	const green = "\x1b[32mrunning\x1b[0m"
	for _, x := range []struct {
		variable, value, format string
		colour                  bool
	}{
		{"NO_COLOR", "", "table", true}, // https://no-color.org: not empty
		{"NO_COLOR", "1", "table", false},
		{"TERM", "dumb", "table", false},
		{"TERM", "xterm", "json", false},
	} {
		t.Setenv("NO_COLOR", "")
		t.Setenv("TERM", "xterm")
		t.Setenv(x.variable, x.value)
		tty := openTerminal(t, 100, 20)
		root := NewRoot(Options{Environ: f.env()})
		root.SetArgs([]string{"containers", "-o", x.format})
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
}
