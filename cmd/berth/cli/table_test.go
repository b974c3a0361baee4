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
	t.head(column{title: "ID", min: 4}, column{title: "STATE", style: stateStyle}, column{title: "UID", wide: true}, column{title: "WHY", min: 6})
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

// TestTableFitsTerminal truncates the columns that allow it, the leftmost first.
func TestTableFitsTerminal(t *testing.T) {
	for width, want := range map[int]string{
		0:   "b          exit     日本 ]0;x  a longer   text",
		100: "b          exit     日本 ]0;x  a longer   text",
		45:  "b         exit     日本 ]0;x  a longer   text",
		30:  "b     exit     日本 ]0;x  a l…",
		10:  "b     exit     日本 …",
	} {
		narrow := newExample()
		narrow.width = width
		require.Equal(t, want, lines(t, narrow)[3], width)
	}
}

// TestTableWraps shows a long cell on several lines, the last one truncated.
func TestTableWraps(t *testing.T) {
	narrow := &table{width: 24}
	narrow.head(column{title: "ID"}, column{title: "WHY", min: 10, wrap: true}, column{title: "END"})
	narrow.row("a", "one two three "+strings.Repeat("x", 16)+" five six seven eight", "z")
	narrow.row("b", "short", "")
	require.Equal(t, []string{
		"ID  WHY              END",
		"a   one two three    z",
		"    xxxxxxxxxxxxxxx",
		"    x five six",
		"    seven eight",
		"b   short            -",
	}, lines(t, narrow))
	require.Equal(t, []string{"aaaa", "aaaa", "aaaa", "aaa…"}, wrapped(strings.Repeat("a", 100), 4))
	require.Equal(t, []string{"日", "本"}, wrapped("日本", 3))
}

func TestTableColours(t *testing.T) {
	colours := newExample()
	colours.colour = true
	require.Equal(t, "long-name  \x1b[32mrunning\x1b[0m  -", lines(t, colours)[2], "the colour takes no cells")
	require.NotContains(t, lines(t, colours)[1], "\x1b")
}

func TestFieldsAlign(t *testing.T) {
	fields := &table{width: 20}
	fields.field("container", "mc")
	fields.field("empty", "")
	fields.field("up", "a text that is wider than the terminal")
	require.Equal(t, []string{"container:  mc", "up:         a text that is wider than the terminal"}, lines(t, fields))
}
