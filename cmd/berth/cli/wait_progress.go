package cli

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"berth/api/client"
	v1 "berth/api/v1"
)

// waitProgress shows the containers that a command waits for: live on a terminal, as a
// line per change elsewhere.
type waitProgress struct {
	cmd    *cobra.Command
	daemon *daemon
	begun  time.Time
	screen *screen // nil: standard error is not a terminal

	printed map[string]string // the last line of each container
	console map[string]string // the last console line of each container
	read    time.Time         // when the console was read
}

// consoleInterval is the time between two requests for the last line of the consoles.
const consoleInterval = time.Second

// anySGR matches the sequences that set colours.
var anySGR = regexp.MustCompile(`\x1b\[[0-9;:]*m`)

func newWaitProgress(cmd *cobra.Command, d *daemon) *waitProgress {
	return &waitProgress{cmd: cmd, daemon: d, begun: time.Now(), screen: newScreen(cmd.ErrOrStderr(), false),
		printed: map[string]string{}, console: map[string]string{}}
}

// clear removes the live lines.
func (p *waitProgress) clear() {
	if p.screen != nil && p.screen.shown > 0 {
		_ = p.screen.draw(nil) // the terminal is gone
	}
}

func (p *waitProgress) show(ctx context.Context, pending []*waited) error {
	if p.screen == nil {
		return p.printChanges(pending)
	}
	if time.Since(p.read) >= consoleInterval {
		p.readConsoles(ctx, pending)
	}
	now := time.Now()
	lines := make([]string, len(pending))
	for i, w := range pending {
		parts := []string{w.id, span(now.Sub(p.begun)), string(w.last.State), why(w.last.ContainerState, now), p.console[w.id]}
		if w.err != nil {
			parts = []string{w.id, span(now.Sub(p.begun)), w.err.Error()}
		}
		lines[i] = printable(strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), gap))
	}
	return p.screen.draw(lines)
}

// readConsoles reads the last line of each console. A failure leaves the line as it is:
// it is not what the command waits for.
func (p *waitProgress) readConsoles(ctx context.Context, pending []*waited) {
	for _, w := range pending {
		o := client.LogOptions{Tail: 1, Install: w.last.State == v1.Installing}
		logs, err := p.daemon.Containers().Logs(ctx, w.id, o)
		if err == nil && len(logs.Lines) > 0 {
			p.console[w.id] = anySGR.ReplaceAllString(logs.Lines[len(logs.Lines)-1].Data, "")
		}
	}
	p.read = time.Now()
}

// printChanges prints a line for each container whose state has changed.
func (p *waitProgress) printChanges(pending []*waited) error {
	for _, w := range pending {
		line := w.id + ": " + string(w.last.State)
		if lastObserved(w.last) {
			line += " when the engine last answered"
		}
		if w.last.Message != "" {
			line += ", " + w.last.Message
		}
		if w.err != nil {
			line = w.id + ": " + w.err.Error()
		}
		if p.printed[w.id] == line {
			continue
		}
		p.printed[w.id] = line
		if _, err := fmt.Fprintln(p.cmd.ErrOrStderr(), printable(line)); err != nil {
			return err
		}
	}
	return nil
}
