package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
)

// asJSON reports whether -o json was given.
func asJSON(cmd *cobra.Command) bool { return cmd.Flag("output").Value.String() == "json" }

// checkOutput returns an error for an unknown output format.
func checkOutput(cmd *cobra.Command, _ []string) error {
	if f := cmd.Flag("output"); f != nil && f.Value.String() != "text" && f.Value.String() != "json" {
		return fmt.Errorf("-o must be text or json, not %q", f.Value)
	}
	return nil
}

// show prints raw, the daemon's response, with -o json, and a table otherwise.
func show(cmd *cobra.Command, raw []byte, fill func(*table)) error {
	if asJSON(cmd) {
		return printJSON(cmd.OutOrStdout(), raw)
	}
	t := &table{w: tabwriter.NewWriter(cmd.OutOrStdout(), 0, 8, 2, ' ', 0)}
	fill(t)
	return t.w.Flush()
}

func printJSON(out io.Writer, raw []byte) error {
	var b bytes.Buffer
	if err := json.Indent(&b, raw, "", "  "); err != nil {
		return err
	}
	b.WriteByte('\n')
	_, err := b.WriteTo(out)
	return err
}

// printLine prints raw with -o json, and one line of text otherwise.
func printLine(cmd *cobra.Command, raw []byte, format string, args ...any) error {
	return show(cmd, raw, func(t *table) { t.row(fmt.Sprintf(format, args...)) })
}

// table is text in aligned columns.
type table struct{ w *tabwriter.Writer }

// row adds a row. An empty cell shows as a dash, so that the columns stay apart.
func (t *table) row(cells ...string) {
	for i, c := range cells {
		// A tab or newline in a container's text would break the table.
		c = strings.Map(func(r rune) rune {
			if r < ' ' || r == 0x7f {
				return ' '
			}
			return r
		}, c)
		if c == "" {
			c = "-"
		}
		cells[i] = c
	}
	fmt.Fprintln(t.w, strings.Join(cells, "\t"))
}

// field adds a name and its value unless the value is empty.
func (t *table) field(name, value string) {
	if value != "" {
		t.row(name+":", value)
	}
}

// age returns the time since then in at most two units.
func age(since time.Time, now time.Time) string {
	d := now.Sub(since)
	switch {
	case since.IsZero():
		return ""
	case d < time.Minute:
		return fmt.Sprintf("%ds", max(0, int(d.Seconds())))
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd", int(d.Hours())/24)
}
