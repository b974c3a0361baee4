package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mattn/go-runewidth"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	v1 "berth/api/v1"
)

// topOptions are the flags and arguments of top.
type topOptions struct {
	ids  []string // empty: all
	sort string
	once bool
}

// topOrders returns the values of --sort.
func topOrders() []string { return []string{"cpu", "memory", "network", "name"} }

func newTopCommand(c *connector) *cobra.Command {
	var o topOptions
	cmd := c.command(&cobra.Command{
		Use:   "top [id]...",
		Short: "Show the resource usage of running containers",
		Long: "Show the resource usage of running containers: live on a terminal, once elsewhere. CPU is in percent of one\n" +
			"core; NET is received and sent, BLOCK read and written since the start.",
		Example: "  berth top\n  berth top --sort memory --once",
		Args:    cobra.ArbitraryArgs,
	}, func(cmd *cobra.Command, d *daemon, ids []string) error {
		if o.ids = ids; !slices.Contains(topOrders(), o.sort) {
			return withCode(exitUsage, fmt.Errorf("--sort must be %s, not %q", strings.Join(topOrders(), ", "), o.sort))
		}
		if screen := terminalOf(cmd.OutOrStdout()); !o.once && isText(cmd) && screen != nil {
			return o.live(cmd, d, screen)
		}
		l, err := o.list(cmd, d)
		if err != nil {
			return err
		}
		return errors.Join(l.print(cmd), l.err)
	})
	cmd.Flags().StringVar(&o.sort, "sort", "cpu", "order: "+strings.Join(topOrders(), ", "))
	cmd.Flags().BoolVar(&o.once, "once", false, "print one table, also on a terminal")
	complete(cmd, "sort", func(*cobra.Command) []cobra.Completion { return topOrders() })
	return cmd
}

// live shows the usage on a terminal each second, until the command is interrupted. A
// daemon that is away is waited for.
func (o topOptions) live(cmd *cobra.Command, d *daemon, screen *os.File) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	clear := "\x1b[2J"
	for {
		t := newTable(cmd)
		l, err := o.list(cmd, d)
		if cmd.Context().Err() != nil {
			return nil // an interrupt ends it
		}
		switch {
		case err == nil:
			l.compose(t)
		case transient(err):
			for line := range strings.Lines(d.explain(err).Error()) {
				t.line("berth: " + strings.TrimSuffix(line, "\n"))
			}
		default:
			return err
		}
		if err := draw(screen, clear, t); err != nil {
			return err
		}
		clear = ""
		select {
		case <-tick.C:
		case <-cmd.Context().Done():
			return nil
		}
	}
}

// draw shows a table from the top of a terminal, as far as it fits.
func draw(screen *os.File, clear string, t *table) error {
	var text, b strings.Builder
	if err := t.print(&text); err != nil {
		return err
	}
	lines := strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n")
	width, height, err := term.GetSize(int(screen.Fd()))
	if err != nil {
		width, height = 0, 0
	}
	if height > 2 && len(lines) > height-1 { // the cursor is on a line of its own
		lines = append(lines[:height-2], "…")
	}
	b.WriteString(clear + "\x1b[H")
	for _, line := range lines {
		if width > 0 {
			line = runewidth.Truncate(line, width, "…")
		}
		b.WriteString(line + "\x1b[K\n")
	}
	_, err = io.WriteString(screen, b.String()+"\x1b[J")
	return err
}

// list returns the usage of the running containers. If one of the requested containers
// does not exist, the listing has an error.
func (o topOptions) list(cmd *cobra.Command, d *daemon) (listing, error) {
	all, err := d.Containers().ListMeasured(cmd.Context())
	if err != nil {
		return listing{}, err
	}
	var l listing
	id := func(m v1.MeasuredContainer) string { return m.InternalID }
	known := names(all, id)
	for _, requested := range o.ids {
		if !slices.Contains(known, requested) {
			l.err = errors.Join(l.err, withCode(exitNotFound, errors.New(requested+": Container not found")))
		}
	}
	running := slices.DeleteFunc(all, func(m v1.MeasuredContainer) bool {
		return m.Stats == nil || len(o.ids) > 0 && !slices.Contains(o.ids, m.InternalID)
	})
	slices.SortStableFunc(running, o.compare)
	l.names = names(running, id)
	l.raw, err = json.Marshal(map[string]any{"containers": running})
	l.fill = func(t *table) { fillTop(t, running) }
	return l, err
}

// compare orders the greatest usage first, and equal ones by name.
func (o topOptions) compare(a, b v1.MeasuredContainer) int {
	byName := cmp.Compare(a.InternalID, b.InternalID)
	switch o.sort {
	case "cpu":
		return cmp.Or(cmp.Compare(b.Stats.CPUUsage, a.Stats.CPUUsage), byName)
	case "memory":
		return cmp.Or(cmp.Compare(b.Stats.MemoryUsage, a.Stats.MemoryUsage), byName)
	case "network":
		return cmp.Or(cmp.Compare(b.Stats.NetworkRx+b.Stats.NetworkTx, a.Stats.NetworkRx+a.Stats.NetworkTx), byName)
	}
	return byName
}

func fillTop(t *table, running []v1.MeasuredContainer) {
	if len(running) == 0 {
		t.line("No container runs.")
		return
	}
	t.head("CONTAINER", "CPU %", "MEMORY", "LIMIT", "MEM %",
		"NET RX", "NET TX", "BLOCK R*", "BLOCK W*",
		"DISK", "PIDS", "UP")
	for _, m := range running {
		s := m.Stats
		t.row(m.InternalID, fmt.Sprintf("%.1f", s.CPUUsage), bytesText(s.MemoryUsage), bytesText(s.MemoryLimit), share(s), bytesText(s.NetworkRx),
			bytesText(s.NetworkTx), bytesText(s.BlockRead), bytesText(s.BlockWrite), diskText(s), strconv.FormatInt(s.Pids, 10),
			span(time.Duration(s.Uptime)*time.Second))
	}
}

// share returns the used part of the memory limit in percent.
func share(s *v1.Stats) string {
	if s.MemoryLimit == 0 {
		return ""
	}
	return fmt.Sprintf("%.1f", 100*float64(s.MemoryUsage)/float64(s.MemoryLimit))
}

func diskText(s *v1.Stats) string {
	if s.DiskUsage == nil {
		return ""
	}
	return bytesText(*s.DiskUsage)
}
