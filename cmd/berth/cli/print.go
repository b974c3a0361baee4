package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"
)

// The output formats of -o.
const (
	formatTable = "table"
	formatWide  = "wide" // a table with more columns, never truncated
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
