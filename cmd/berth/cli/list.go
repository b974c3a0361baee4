package cli

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"
)

// listing is what a command lists.
type listing struct {
	raw   []byte // the output of -o json
	names []string
	above string // a line above the table; empty: none
	none  string // the sentence for an empty list; empty: an empty table
	fill  func(*table)
	err   error // the result of the command, after it has printed
}

// itemsOf returns the items of a field of a response, which the client has decoded before.
func itemsOf(raw []byte, field string) []json.RawMessage {
	var body map[string]json.RawMessage
	items := []json.RawMessage{}
	if json.Unmarshal(raw, &body) == nil {
		_ = json.Unmarshal(body[field], &items)
	}
	return items
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
func (c *connector) listCommand(cmd *cobra.Command, fetch func(cmd *cobra.Command, d *daemon, args []string) (listing, error)) *cobra.Command {
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
