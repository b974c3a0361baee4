package cli

import (
	"io"
	"strings"
	"unicode"

	"github.com/mattn/go-runewidth"
	"github.com/spf13/cobra"
)

// gap separates two columns.
const gap = "  "

// column describes a column of a table.
type column struct {
	title string
	wide  bool                     // only shown with -o wide
	min   int                      // cells that remain when the terminal is too narrow; 0: the column is never narrower
	wrap  bool                     // a cell that is too long continues on the next lines; else it is truncated
	style func(cell string) string // the SGR parameters of a cell, "" for none; nil: none
}

// maxWrapped is how many lines a wrapped cell takes.
const maxWrapped = 4

// table is text in aligned columns, or lines of fields. On a terminal, columns that do
// not fit become narrower, the leftmost first; elsewhere they do not.
type table struct {
	wide   bool
	colour bool
	width  int // of the terminal, in cells; 0: no limit

	headless bool               // without titles and the lines above them
	only     func(row int) bool // the rows to print; nil: all

	above   []string // lines above the table
	columns []column
	rows    [][]string // the first one has the titles, if there are columns
}

func newTable(cmd *cobra.Command) *table {
	t := &table{wide: format(cmd) == formatWide, colour: colored(cmd)}
	if !t.wide {
		t.width = terminalWidth(cmd.OutOrStdout())
	}
	return t
}

// head declares the columns. It is called before the first row.
func (t *table) head(columns ...column) {
	t.columns = columns
	titles := make([]string, len(columns))
	for i, c := range columns {
		titles[i] = c.title
	}
	t.rows = append(t.rows, titles)
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
	shown := t.shown()
	widths := t.fit(shown)
	var b strings.Builder
	for _, line := range t.above {
		if !t.headless {
			b.WriteString(line + "\n")
		}
	}
	for i, row := range t.rows {
		if !t.prints(i) {
			continue
		}
		t.writeRow(&b, i, row, shown, widths)
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// prints reports whether a row is printed. The others count for the widths of the
// columns.
func (t *table) prints(row int) bool {
	if len(t.columns) == 0 {
		return true
	}
	if row == 0 {
		return !t.headless
	}
	return t.only == nil || t.only(row-1)
}

// shown returns the indexes of the columns that are printed.
func (t *table) shown() (list []int) {
	most := 0
	for _, row := range t.rows {
		most = max(most, len(row))
	}
	for i := range most {
		if i >= len(t.columns) || t.wide || !t.columns[i].wide {
			list = append(list, i)
		}
	}
	return list
}

// fit returns the widths of the shown columns. If they are wider than the terminal, the
// columns with a min lose cells, each down to its min, the leftmost first.
func (t *table) fit(shown []int) []int {
	widths, total := make([]int, len(shown)), len(gap)*max(0, len(shown)-1)
	for at, index := range shown {
		for _, row := range t.rows {
			if index < len(row) {
				widths[at] = max(widths[at], runewidth.StringWidth(row[index]))
			}
		}
		total += widths[at]
	}
	for at, index := range shown {
		if t.width == 0 || total <= t.width || index >= len(t.columns) || t.columns[index].min == 0 {
			continue
		}
		less := max(0, min(total-t.width, widths[at]-max(t.columns[index].min, len(t.columns[index].title))))
		widths[at] -= less
		total -= less
	}
	return widths
}

// writeRow writes a row, on several lines if a cell is wrapped.
func (t *table) writeRow(b *strings.Builder, i int, row []string, shown, widths []int) {
	cells, height := make([][]string, 0, len(shown)), 1
	for at, index := range shown {
		if index >= len(row) {
			break
		}
		cells = append(cells, t.cell(index, row[index], widths[at]))
		height = max(height, len(cells[at]))
	}
	for line := range height {
		padding := 0
		for at, cell := range cells {
			if line < len(cell) && cell[line] != "" {
				b.WriteString(strings.Repeat(" ", padding) + t.styled(i, shown[at], cell[line]))
				padding = -runewidth.StringWidth(cell[line])
			}
			padding += widths[at] + len(gap)
		}
		b.WriteByte('\n')
	}
}

// cell returns the lines of a cell.
func (t *table) cell(index int, text string, width int) []string {
	if runewidth.StringWidth(text) <= width {
		return []string{text}
	}
	if index < len(t.columns) && t.columns[index].wrap {
		return wrapped(text, width)
	}
	return []string{runewidth.Truncate(text, width, "…")}
}

// wrapped returns a text in lines of at most width cells, broken at blanks if possible.
func wrapped(text string, width int) (lines []string) {
	for len(lines) < maxWrapped-1 && runewidth.StringWidth(text) > width {
		line := runewidth.Truncate(text, width, "")
		if at := strings.LastIndexByte(line, ' '); at > 0 && text[len(line)] != ' ' {
			line = line[:at]
		}
		text = strings.TrimLeft(text[len(line):], " ")
		lines = append(lines, strings.TrimRight(line, " "))
	}
	return append(lines, runewidth.Truncate(text, width, "…"))
}

// styled returns a line of a cell in its colour.
func (t *table) styled(row, index int, text string) string {
	if !t.colour || row == 0 || index >= len(t.columns) || t.columns[index].style == nil {
		return text
	}
	if style := t.columns[index].style(text); style != "" {
		return "\x1b[" + style + "m" + text + "\x1b[0m"
	}
	return text
}
