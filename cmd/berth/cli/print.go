package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/docker/go-units"
	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"
)

// The output formats of -o.
const (
	formatTable = "table"
	formatWide  = "wide" // a table with more columns
	formatJSON  = "json" // the daemon's response
	formatYAML  = "yaml" // the same
	formatName  = "name" // the ids, one per line
)

// unnamed is the annotation of commands whose output has no ids.
const unnamed = "unnamed"

// withoutNames makes cmd refuse -o name.
func withoutNames(cmd *cobra.Command) *cobra.Command {
	cmd.Annotations = map[string]string{unnamed: "true"}
	return cmd
}

// formats returns the output formats of a command.
func formats(cmd *cobra.Command) []string {
	all := []string{formatTable, formatWide, formatJSON, formatYAML, formatName}
	if cmd.Annotations[unnamed] != "" {
		return all[:4]
	}
	return all
}

// format returns the output format.
func format(cmd *cobra.Command) string { return cmd.Flag("output").Value.String() }

// isText reports whether the output is text for people: neither JSON, YAML nor ids.
func isText(cmd *cobra.Command) bool { return format(cmd) == formatTable || format(cmd) == formatWide }

// checkOutput returns an error for an output format that a command does not have.
func checkOutput(cmd *cobra.Command) error {
	known := formats(cmd)
	if f := cmd.Flag("output"); f != nil && !slices.Contains(known, f.Value.String()) {
		return fmt.Errorf("-o must be %s or %s for %s, not %q", strings.Join(known[:len(known)-1], ", "), known[len(known)-1],
			cmd.CommandPath(), f.Value)
	}
	return nil
}

// show prints raw, the daemon's response, as JSON or YAML, the names of the objects in
// it, or the table that fill composes, as -o requests.
func show(cmd *cobra.Command, raw []byte, names []string, fill func(*table)) error {
	switch format(cmd) {
	case formatJSON, formatYAML:
		return printRaw(cmd, raw)
	case formatName:
		return printNames(cmd, names)
	}
	t := newTable(cmd)
	fill(t)
	return t.print(cmd.OutOrStdout())
}

// printNames prints one name per line. A tenant's file whose name has several lines
// would look like several files: it is left out, and reported.
func printNames(cmd *cobra.Command, names []string) error {
	for _, name := range names {
		out, line := cmd.OutOrStdout(), name
		if strings.ContainsAny(name, "\n\r") {
			out, line = cmd.ErrOrStderr(), fmt.Sprintf("berth: %q is left out: it is not one line", name)
		}
		if _, err := fmt.Fprintln(out, line); err != nil {
			return err
		}
	}
	return nil
}

// printRaw prints JSON, indented, or the same as YAML.
func printRaw(cmd *cobra.Command, raw []byte) error {
	if format(cmd) == formatYAML {
		text, err := yaml.JSONToYAML(raw)
		if err == nil {
			_, err = cmd.OutOrStdout().Write(text)
		}
		return err
	}
	var b bytes.Buffer
	if err := json.Indent(&b, raw, "", "  "); err != nil {
		return err
	}
	b.WriteByte('\n')
	_, err := b.WriteTo(cmd.OutOrStdout())
	return err
}

// printNext prints one of several JSON objects: one line of JSON, or a YAML document.
func printNext(cmd *cobra.Command, raw []byte) error {
	if format(cmd) == formatYAML {
		if _, err := io.WriteString(cmd.OutOrStdout(), "---\n"); err != nil {
			return err
		}
		return printRaw(cmd, raw)
	}
	_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s\n", bytes.TrimSpace(raw))
	return err
}

// printDone prints the response to a request for one of several objects: raw, the
// name of the object, or one line of text.
func printDone(cmd *cobra.Command, raw []byte, name, text string, args ...any) error {
	if format(cmd) == formatYAML {
		return printNext(cmd, raw)
	}
	return show(cmd, raw, []string{name}, func(t *table) { t.line(fmt.Sprintf(text, args...)) })
}

// names returns the names of the elements of a list, for show.
func names[T any](list []T, name func(T) string) []string {
	all := make([]string, len(list))
	for i, element := range list {
		all[i] = name(element)
	}
	return all
}

// listing is what a command lists.
type listing struct {
	raw   []byte // the output of -o json
	names []string
	above string // a line above the table; empty: none
	none  string // the sentence for an empty list; empty: an empty table
	fill  func(*table)
	err   error // the result of the command, after it has printed
}

// listOf returns the listing of the objects in the last response. row returns the cells of
// one below the titles of heads.
func listOf[T any](d *daemon, list []T, name func(T) string, heads []string, row func(T) []string) listing {
	return listing{raw: d.raw, names: names(list, name), fill: func(t *table) {
		t.head(heads...)
		for _, one := range list {
			t.row(row(one)...)
		}
	}}
}

// or returns the listing with the sentence that is printed if it is empty.
func (l listing) or(none string) listing {
	l.none = none
	return l
}

// print prints the listing as -o requests.
func (l listing) print(cmd *cobra.Command) error {
	if isText(cmd) && len(l.names) == 0 && l.none != "" {
		return printNone(cmd, l.none)
	}
	return show(cmd, l.raw, l.names, l.compose)
}

// compose adds the listing to a table.
func (l listing) compose(t *table) {
	if l.above != "" {
		t.line(l.above)
	}
	l.fill(t)
}

// printNone prints on standard error that a list is empty.
func printNone(cmd *cobra.Command, text string) error {
	_, err := fmt.Fprintln(cmd.ErrOrStderr(), text)
	return err
}

// listCommand completes a command that prints what fetch returns.
func (c *connector) listCommand(cmd *cobra.Command,
	fetch func(cmd *cobra.Command, d *daemon, args []string) (listing, error)) *cobra.Command {
	return c.command(cmd, func(cmd *cobra.Command, d *daemon, args []string) error {
		l, err := fetch(cmd, d, args)
		if err != nil {
			return err
		}
		if err := l.print(cmd); err != nil {
			return err
		}
		return l.err
	})
}

// deleteCommand completes a command that removes each object that its arguments name; done
// is the word for that.
func (c *connector) deleteCommand(cmd *cobra.Command, done string,
	remove func(ctx context.Context, d *daemon, id string) error) *cobra.Command {
	cmd.Args = cobra.MinimumNArgs(1)
	return c.command(cmd, func(cmd *cobra.Command, d *daemon, ids []string) error {
		return d.each(cmd.Context(), ids, func(id string) error {
			if err := remove(cmd.Context(), d, id); err != nil {
				return fmt.Errorf("%s: %w", id, err)
			}
			return printDone(cmd, d.raw, id, "%s: %s", id, done)
		})
	})
}

// The absolute times that people read are local ones with their zone. JSON and YAML are the
// daemon's response, in UTC.
const (
	dateFormat = "2006-01-02 15:04:05 -0700"
	timeFormat = "2006-01-02 15:04:05.000 -0700"
)

// date returns a time as people read it, to the second.
func date(at time.Time) string { return at.In(time.Local).Format(dateFormat) }

// dateOf returns a time of a response as people read it; another text as it is.
func dateOf(text string) string {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return text
	}
	return date(at)
}

// bytesText returns a number of bytes in the largest unit that fits, such as 1.5GiB.
func bytesText(n int64) string { return units.BytesSize(float64(n)) }

// age returns the time since then in at most two units.
func age(since time.Time, now time.Time) string {
	if since.IsZero() {
		return ""
	}
	return span(now.Sub(since))
}

// span returns a duration in at most two units, such as 3m20s.
func span(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", max(0, int(d.Seconds())))
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd", int(d.Hours())/24)
}

func yesNo(yes bool) string {
	if yes {
		return "yes"
	}
	return "no"
}
