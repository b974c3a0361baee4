package cli

import (
	"io"
	"os"
	"slices"
	"strings"
	"unicode"

	"github.com/mattn/go-runewidth"
	"github.com/spf13/cobra"
)

// gap separates two columns.
const gap = "  "

// table is text in aligned columns, or lines of fields. text/tabwriter would count the
// bytes of a colour, and a wide character as one cell.
type table struct {
	wide   bool
	colour bool

	above []string // lines above the table
	heads []string // see head; none: lines of fields
	rows  [][]string
}

func newTable(cmd *cobra.Command) *table {
	return &table{wide: format(cmd) == formatWide, colour: colored(cmd)}
}

// head adds the titles of the columns. One that ends with * is only shown with -o wide,
// and the column STATE has colours.
func (t *table) head(titles ...string) {
	t.heads = titles
	row := make([]string, len(titles))
	for i, title := range titles {
		row[i] = strings.TrimSuffix(title, "*")
	}
	t.rows = append(t.rows, row)
}

// line adds a line above the table.
func (t *table) line(text string) { t.above = append(t.above, printable(text)) }

// row adds a row. An empty cell shows as a dash, so that the columns stay apart.
func (t *table) row(cells ...string) {
	row := make([]string, len(cells))
	for i, c := range cells {
		if row[i] = printable(c); row[i] == "" {
			row[i] = "-"
		}
	}
	t.rows = append(t.rows, row)
}

// field adds a name and its value unless the value is empty.
func (t *table) field(name, value string) {
	if value != "" {
		t.row(name+":", value)
	}
}

// printable replaces the characters in a tenant's text that would break a line or
// change the terminal by blanks.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
			return ' '
		}
		return r
	}, text)
}

// print writes the table.
func (t *table) print(out io.Writer) error {
	var widths []int
	for _, row := range t.rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], runewidth.StringWidth(cell))
		}
	}
	var b strings.Builder
	for _, line := range t.above {
		b.WriteString(line + "\n")
	}
	for n, row := range t.rows {
		padding := ""
		for i, cell := range row {
			if i < len(t.heads) && strings.HasSuffix(t.heads[i], "*") && !t.wide {
				continue
			}
			b.WriteString(padding + t.styled(n, i, cell))
			padding = strings.Repeat(" ", widths[i]-runewidth.StringWidth(cell)) + gap
		}
		b.WriteByte('\n')
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// styled returns a cell in its colour.
func (t *table) styled(row, index int, text string) string {
	if !t.colour || row == 0 || index >= len(t.heads) || t.heads[index] != "STATE" {
		return text
	}
	if style := stateStyle(text); style != "" {
		return "\x1b[" + style + "m" + text + "\x1b[0m"
	}
	return text
}

// colored reports whether the output has colours: on a terminal that has them, unless the
// environment asks for none (https://no-color.org).
func colored(cmd *cobra.Command) bool {
	return terminalOf(cmd.OutOrStdout()) != nil && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// stateStyle returns the SGR parameters of a state, "" for none.
func stateStyle(state string) string {
	const red, green, yellow = "31", "32", "33"
	switch {
	case state == "running":
		return green
	case state == "failed":
		return red
	case slices.Contains([]string{"installing", "starting", "stopping", "deleting"}, state):
		return yellow
	}
	return ""
}
