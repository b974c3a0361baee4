package cli

import (
	"cmp"
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

func newNodeCommand(c *connector) *cobra.Command {
	return withoutNames(c.command(&cobra.Command{
		Use:   "node",
		Short: "Print the host of the daemon, its engine and the allocated resources",
		Long: "Print the host of the daemon: the system, the disks, the engine, the limits of all containers, the\n" +
			"number of containers in each state, and what the configuration switches on.",
		Example: "  berth node\n  berth node -o json",
	}, func(cmd *cobra.Command, d *daemon, _ []string) error {
		n, err := client.GetNode(cmd.Context(), d.Client)
		if err != nil {
			return err
		}
		return show(cmd, d.raw, []string{n.Node}, func(t *table) { describeNode(t, n, time.Now()) })
	}))
}

func describeNode(t *table, n v1.Node, now time.Time) {
	t.field("node", n.Node)
	t.field("berth", n.Version)
	t.field("up", age(n.StartedAt, now))
	t.field("system", fmt.Sprintf("%s, kernel %s, %s", n.OS, n.Kernel, n.Arch))
	t.field("engine", engineText(n.Engine))
	t.field("cpus", fmt.Sprintf("%d, %s allocated", n.CPUs, strconv.FormatFloat(n.Allocated.CPU, 'g', -1, 64)))
	t.field("memory", fmt.Sprintf("%s, %s allocated", units.BytesSize(float64(n.Memory)), units.BytesSize(float64(n.Allocated.Memory))))
	t.field("data", spaceText(n.Disk.Data))
	t.field("volumes", fmt.Sprintf("%s, %s allocated", spaceText(n.Disk.Volumes), units.BytesSize(float64(n.Allocated.Disk))))
	t.field("containers", countsText(n.Containers))
	t.field("features", featuresText(n.Features))
}

// engineText describes the engine in one line.
func engineText(e v1.NodeEngine) string {
	if e.Version == "" {
		return "unknown: it has not answered yet"
	}
	text := fmt.Sprintf("%s, API %s, %s, cgroup %s", e.Version, e.API, e.StorageDriver, e.CgroupVersion)
	if e.LiveRestore {
		text += ", live-restore"
	}
	if !e.Reachable {
		text += "; it does not answer"
	}
	return text
}

func spaceText(d v1.DiskSpace) string {
	if d.Total == 0 {
		return "unknown"
	}
	return fmt.Sprintf("%s free of %s", units.BytesSize(float64(d.Free)), units.BytesSize(float64(d.Total)))
}

// countsText lists the states that containers are in.
func countsText(counts map[v1.Phase]int) string {
	var list []string
	for _, p := range v1.Phases() {
		if counts[p] > 0 {
			list = append(list, fmt.Sprintf("%d %s", counts[p], p))
		}
	}
	return cmp.Or(strings.Join(list, ", "), "none")
}

// featuresText lists the features that are on.
func featuresText(features map[string]bool) string {
	var list []string
	for name, on := range features {
		if on {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return cmp.Or(strings.Join(list, ", "), "none")
}
