package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// watchInterval is the time between two requests of -w.
const watchInterval = 1 * time.Second

// listing is what a command lists at one time.
type listing struct {
	raw   []byte            // the output of -o json
	items []json.RawMessage // of raw, in the order of names
	names []string
	above string // a line above the table; empty: none
	none  string // the sentence for an empty list; empty: an empty table
	fill  func(*table)
	err   error // the result of the command, after it has printed
}

// newListing returns the listing of a response whose field holds one item for each of names.
func newListing(raw []byte, field string, names []string) listing {
	var body map[string]json.RawMessage
	items := []json.RawMessage{}
	if json.Unmarshal(raw, &body) == nil { // the client has decoded it before
		_ = json.Unmarshal(body[field], &items)
	}
	return listing{raw: raw, items: items, names: names}
}

// table returns the listing as a table.
func (l listing) table(cmd *cobra.Command) *table {
	t := newTable(cmd)
	if l.above != "" {
		t.line(l.above)
	}
	l.fill(t)
	return t
}

// print prints the listing as -o requests.
func (l listing) print(cmd *cobra.Command) error {
	if !isText(cmd) {
		return show(cmd, l.raw, l.names, nil)
	}
	if len(l.names) == 0 && l.none != "" {
		return printNone(cmd, l.none)
	}
	return l.table(cmd).print(cmd.OutOrStdout())
}

// printNone prints on standard error that a list is empty.
func printNone(cmd *cobra.Command, text string) error {
	_, err := fmt.Fprintln(cmd.ErrOrStderr(), text)
	return err
}

// fetcher requests what a command lists.
type fetcher func(cmd *cobra.Command, d *daemon, args []string) (listing, error)

// listCommand completes a command that prints what fetch returns, and with -w goes on
// to print what changes.
func (c *connector) listCommand(cmd *cobra.Command, fetch fetcher) *cobra.Command {
	var watching bool
	cmd = c.command(cmd, func(cmd *cobra.Command, d *daemon, args []string) error {
		if watching {
			w := &watch{cmd: cmd, daemon: d, fetch: func() (listing, error) { return fetch(cmd, d, args) }}
			return w.run(cmd.Context())
		}
		l, err := fetch(cmd, d, args)
		if err != nil {
			return err
		}
		if err := l.print(cmd); err != nil {
			return err
		}
		return l.err
	})
	cmd.Flags().BoolVarP(&watching, "watch", "w", false, "go on: show the list anew on a terminal, print what changes elsewhere")
	return cmd
}

// watch prints a list again and again, until the command is interrupted.
type watch struct {
	cmd    *cobra.Command
	daemon *daemon
	fetch  func() (listing, error)

	screen  *screen           // nil: the output is not a terminal, or not text
	printed map[string]string // the items that were printed, by name
	begun   bool
}

func (w *watch) run(ctx context.Context) error {
	if isText(w.cmd) {
		w.screen = newScreen(w.cmd.OutOrStdout(), true)
	}
	tick := time.NewTicker(watchInterval)
	defer tick.Stop()
	for {
		l, err := w.fetch()
		if ctx.Err() != nil {
			return nil // an interrupt ends it
		}
		if err == nil {
			err = w.show(l)
		} else if code := codeOf(w.daemon.explain(err)); w.screen != nil && (code == exitUnavailable || code == exitTimeout) {
			err = w.showError(w.daemon.explain(err)) // the daemon may restart
		}
		if err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

func (w *watch) show(l listing) error {
	if w.screen != nil {
		return w.screen.drawTable(l.table(w.cmd))
	}
	return w.printChanges(l)
}

func (w *watch) showError(err error) error {
	t := newTable(w.cmd)
	for line := range strings.Lines(err.Error()) {
		t.line("berth: " + strings.TrimSuffix(line, "\n"))
	}
	return w.screen.drawTable(t)
}

// printChanges prints the items that were not printed before as they are now.
func (w *watch) printChanges(l listing) error {
	now, changed := map[string]string{}, map[string]bool{}
	for i, item := range l.items[:min(len(l.items), len(l.names))] {
		name := l.names[i]
		now[name] = string(item)
		if changed[name] = w.printed[name] != now[name]; !changed[name] || isText(w.cmd) {
			continue
		}
		if err := w.printItem(name, item); err != nil {
			return err
		}
	}
	w.printed = now
	if !isText(w.cmd) || w.begun && len(now) == 0 {
		return nil
	}
	t := l.table(w.cmd)
	t.only = func(row int) bool { return changed[l.names[row]] }
	t.headless, w.begun = w.begun, true
	return t.print(w.cmd.OutOrStdout())
}

func (w *watch) printItem(name string, item []byte) error {
	if format(w.cmd) == formatName {
		_, err := io.WriteString(w.cmd.OutOrStdout(), name+"\n")
		return err
	}
	return printNext(w.cmd, item)
}
