package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/docker/go-units"
	"github.com/spf13/cobra"

	"berth/api/client"
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
		fetch := func() (listing, error) { return o.list(cmd, d) }
		if !o.once && isText(cmd) && terminalOf(cmd.OutOrStdout()) != nil {
			w := &watch{cmd: cmd, daemon: d, fetch: fetch}
			return w.run(cmd.Context())
		}
		l, err := fetch()
		if err != nil {
			return err
		}
		reason, _ := unready(cmd.Context(), d) // without an answer, the list alone is printed
		l.err = errors.Join(l.err, warnMissing(cmd, "current usage", reason))
		return errors.Join(l.print(cmd), l.err)
	})
	cmd.Flags().StringVar(&o.sort, "sort", "cpu", "order: "+strings.Join(topOrders(), ", "))
	cmd.Flags().BoolVar(&o.once, "once", false, "print one table, also on a terminal")
	complete(cmd, "sort", func(*cobra.Command) []cobra.Completion { return topOrders() })
	return cmd
}

// list returns the usage of the running containers. If one of the requested containers
// does not exist, the listing has an error.
func (o topOptions) list(cmd *cobra.Command, d *daemon) (listing, error) {
	all, err := d.Containers().ListMeasured(cmd.Context())
	if err != nil {
		return listing{}, err
	}
	id := func(m client.Measured) string { return m.InternalID }
	l := newListing(d.raw, "containers", names(all, id))
	items := map[string]json.RawMessage{}
	for i, name := range l.names[:min(len(l.names), len(l.items))] {
		items[name] = l.items[i]
	}
	running := slices.DeleteFunc(all, func(m client.Measured) bool {
		return m.Stats == nil || len(o.ids) > 0 && !slices.Contains(o.ids, m.InternalID)
	})
	slices.SortStableFunc(running, o.compare)
	for _, requested := range o.ids {
		if _, known := items[requested]; !known {
			l.err = errors.Join(l.err, withCode(exitNotFound, errors.New(requested+": Container not found")))
		}
	}
	l.names, l.items = names(running, id), []json.RawMessage{}
	for _, name := range l.names {
		l.items = append(l.items, items[name])
	}
	l.raw, err = json.Marshal(map[string]any{"containers": l.items})
	l.fill = func(t *table) { fillTop(t, running) }
	return l, err
}

// compare orders the greatest usage first, and equal ones by name.
func (o topOptions) compare(a, b client.Measured) int {
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

func fillTop(t *table, running []client.Measured) {
	if len(running) == 0 {
		t.line("No container runs.")
		return
	}
	t.head(column{title: "CONTAINER", min: 16}, column{title: "CPU %"}, column{title: "MEMORY"}, column{title: "LIMIT"}, column{title: "MEM %"},
		column{title: "NET RX"}, column{title: "NET TX"}, column{title: "BLOCK R", wide: true}, column{title: "BLOCK W", wide: true},
		column{title: "DISK"}, column{title: "PIDS"}, column{title: "UP"})
	for _, m := range running {
		s := m.Stats
		t.row(m.InternalID, fmt.Sprintf("%.1f", s.CPUUsage), bytesText(s.MemoryUsage), bytesText(s.MemoryLimit), share(s), bytesText(s.NetworkRx),
			bytesText(s.NetworkTx), bytesText(s.BlockRead), bytesText(s.BlockWrite), diskText(s), strconv.FormatInt(s.Pids, 10),
			span(time.Duration(s.Uptime)*time.Second))
	}
}

func bytesText(n int64) string { return units.BytesSize(float64(n)) }

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
