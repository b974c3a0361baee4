package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

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
		n, err := d.Node(cmd.Context())
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
	for _, m := range n.Engine.Machines {
		t.field("machine "+m.Name, machineText(m))
	}
	t.field("cpus", fmt.Sprintf("%d, %s allocated", n.CPUs, strconv.FormatFloat(n.Allocated.CPU, 'g', -1, 64)))
	t.field("memory", fmt.Sprintf("%s, %s allocated", bytesText(n.Memory), bytesText(n.Allocated.Memory)))
	t.field("data", spaceText(n.Disk.Data))
	t.field("volumes", fmt.Sprintf("%s, %s allocated", spaceText(n.Disk.Volumes), bytesText(n.Allocated.Disk)))
	for _, name := range slices.Sorted(maps.Keys(n.Disk.Claims)) {
		t.field("claim "+name, spaceText(n.Disk.Claims[name]))
	}
	t.field("containers", countsText(n.Containers))
	t.field("features", featuresText(n.Features))
}

// engineText describes the engine in one line.
func engineText(e v1.NodeEngine) string {
	if e.Version == "" {
		return "unknown: it has not answered yet"
	}
	text := fmt.Sprintf("%s %s, API %s", e.Name, e.Version, e.API)
	if e.StorageDriver != "" {
		text += fmt.Sprintf(", %s, cgroup %s", e.StorageDriver, e.CgroupVersion)
	}
	if e.LiveRestore {
		text += ", live-restore"
	}
	if len(e.Lacks) > 0 {
		text += "; it lacks " + strings.Join(e.Lacks, ", ")
	}
	if !e.Reachable {
		text += "; it does not answer"
	}
	return text
}

// machineText describes a machine of a cluster in one line.
func machineText(m v1.EngineMachine) string {
	text := fmt.Sprintf("%d cpus, %s, %s", m.CPUs, bytesText(m.Memory), count(m.Containers, "container"))
	if m.Closed {
		text += ", closed: it takes no new ones"
	}
	if !m.Ready {
		text += ", not ready"
	}
	return text
}

func spaceText(d v1.DiskSpace) string {
	if d.Total == 0 {
		return "unknown"
	}
	return fmt.Sprintf("%s free of %s", bytesText(d.Free), bytesText(d.Total))
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

// versions is the output of `berth version -o json`.
type versions struct {
	Client clientVersion  `json:"client"`
	Server *serverVersion `json:"server"` // nil: not asked, or the daemon did not answer
}

type clientVersion struct {
	Version  string `json:"version"`
	Commit   string `json:"commit"` // with the suffix -dirty if files were changed; empty: unknown
	Go       string `json:"go"`
	Platform string `json:"platform"` // such as linux/amd64
}

type serverVersion struct {
	Version string `json:"version"`
	URL     string `json:"url"`
}

func newVersionCommand(c *connector, version string) *cobra.Command {
	var only bool
	cmd := c.command(withoutNames(&cobra.Command{
		Use:     "version",
		Short:   "Print the versions of this program and of the daemon",
		Example: "  berth version\n  berth version --client -o json",
	}), nil)
	cmd.Flags().BoolVar(&only, "client", false, "only the version of this program; no daemon is needed")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		v := versions{Client: clientVersion{version, commit(), runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}}
		var failed error
		if !only {
			v.Server, failed = c.serverVersion(cmd)
		}
		raw, err := json.Marshal(v)
		if err != nil {
			return err
		}
		if err := show(cmd, raw, nil, v.fill); err != nil {
			return err
		}
		return failed
	}
	return cmd
}

// commit returns the commit that this program was built from, as Go has recorded it.
func commit() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	recorded := map[string]string{}
	for _, s := range info.Settings {
		recorded[s.Key] = s.Value
	}
	if recorded["vcs.modified"] == "true" {
		return recorded["vcs.revision"] + "-dirty"
	}
	return recorded["vcs.revision"]
}

func (v versions) fill(t *table) {
	build := v.Client.Go + ", " + v.Client.Platform
	if v.Client.Commit != "" {
		build = "commit " + v.Client.Commit + ", " + build
	}
	t.field("client", v.Client.Version+" ("+build+")")
	if v.Server != nil {
		t.field("server", v.Server.Version+" ("+v.Server.URL+")")
	}
}

// serverVersion returns the version of the daemon.
func (c *connector) serverVersion(cmd *cobra.Command) (*serverVersion, error) {
	d, err := c.connect()
	if err != nil {
		return nil, err
	}
	n, err := d.Node(cmd.Context())
	if err != nil {
		return nil, d.explain(err)
	}
	return &serverVersion{n.Version, d.URL()}, nil
}
