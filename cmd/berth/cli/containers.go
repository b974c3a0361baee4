package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"berth/api/client"
	v1 "berth/api/v1"
)

func newContainersCommand(c *connector) *cobra.Command {
	var labels []string
	var spec bool
	cmd := c.listCommand(&cobra.Command{
		Use:   "containers [id]...",
		Short: "List the containers, or show some in detail",
		Example: "  berth containers --label game=chess\n  berth containers survival\n" +
			"  berth containers survival --spec > survival.yaml",
		Args: cobra.ArbitraryArgs,
	}, func(cmd *cobra.Command, d *daemon, _ []string) (listing, error) {
		list, err := d.Containers().List(cmd.Context(), labels...)
		return listContainers(d.raw, list, labels), err
	})
	addLabelFlag(cmd, &labels)
	cmd.Flags().BoolVar(&spec, "spec", false, "print the stored specs of these containers, without their install scripts, for berth apply")
	list := cmd.RunE
	cmd.RunE = c.run(func(cmd *cobra.Command, d *daemon, ids []string) error {
		switch {
		case spec && len(ids) == 0:
			return withCode(exitUsage, errors.New("--spec needs the id of a container"))
		case len(ids) == 0:
			return list(cmd, ids)
		case spec:
			return d.each(cmd.Context(), ids, func(id string) error { return printStored(cmd, d, id, len(ids) > 1) })
		}
		return d.each(cmd.Context(), ids, func(id string) error { return describeContainer(cmd, d, id, len(ids) > 1) })
	})
	return cmd
}

func addLabelFlag(cmd *cobra.Command, labels *[]string) {
	cmd.Flags().StringArrayVarP(labels, "label", "l", nil, "only containers with this label, name=value or name; can be repeated")
}

// labelText returns the end of a sentence about a list that labels limit.
func labelText(labels []string) string {
	if len(labels) == 0 {
		return ""
	}
	return " with the label " + strings.Join(labels, " and ")
}

// listContainers returns the listing of the containers that have labels. raw is its JSON.
func listContainers(raw []byte, list []v1.ContainerSummary, labels []string) listing {
	l := listing{raw: raw, names: names(list, func(s v1.ContainerSummary) string { return s.InternalID })}
	l.fill = func(t *table) {
		if len(list) == 0 {
			t.line("There are no containers" + labelText(labels) + ".")
			return
		}
		t.head("CONTAINER", "STATE", "SINCE",
			"POWER*", "RESTARTS*", "VOLUME*",
			"IMAGE", "PORTS", "MESSAGE")
		now := time.Now()
		for _, s := range list {
			t.row(s.InternalID, string(s.State), age(s.StateSince, now), string(s.Power), strconv.Itoa(s.RestartCount), s.VolumeID,
				s.Image, portList(s.Ports), why(s.ContainerState, now))
		}
	}
	return l
}

// overview is the output of `berth ps -o json`.
type overview struct {
	URL        string                `json:"url"`
	Ready      bool                  `json:"ready"`
	Reason     string                `json:"reason"` // why the daemon is not ready
	Containers []v1.ContainerSummary `json:"containers"`
}

func newPsCommand(c *connector) *cobra.Command {
	var labels []string
	cmd := c.listCommand(&cobra.Command{
		Use:     "ps",
		Aliases: []string{"status"},
		Short:   "List the containers with their states, and report whether the daemon is ready",
		Long: "List the containers with their states, and why those that should run do not. SINCE is the time in the state.\n" +
			"A line above the table reports whether the daemon is ready; if it is not, the exit code is 7.",
		Example: "  berth ps\n  berth ps --label game=chess\n" +
			"  berth ps -o json | jq -r '.containers[] | select(.state == \"failed\").internal_id'",
	}, func(cmd *cobra.Command, d *daemon, _ []string) (listing, error) {
		reason, err := d.unready(cmd.Context())
		if err != nil {
			return listing{}, err
		}
		list, err := d.Containers().List(cmd.Context(), labels...)
		if err != nil {
			return listing{}, err
		}
		raw, err := json.Marshal(overview{URL: d.URL(), Ready: reason == "", Reason: reason, Containers: list})
		l := listContainers(raw, list, labels)
		l.above = "berth at " + d.URL() + ": ready"
		if reason != "" {
			l.above = "berth at " + d.URL() + " is not ready: " + reason + "; berth doctor names what to do"
			l.err = withCode(exitUnavailable, ErrReported)
		}
		return l, err
	})
	addLabelFlag(cmd, &labels)
	return cmd
}

// describeContainer prints a container in detail; next if others are printed too.
func describeContainer(cmd *cobra.Command, d *daemon, id string, next bool) error {
	c, err := d.Containers().Get(cmd.Context(), id)
	if err != nil {
		return fmt.Errorf("%s: %w", id, err)
	}
	if next && format(cmd) == formatYAML {
		return printNext(cmd, d.raw)
	}
	if err := show(cmd, d.raw, []string{id}, func(t *table) { describe(t, c, time.Now()) }); err != nil || !next || !isText(cmd) {
		return err
	}
	_, err = fmt.Fprintln(cmd.OutOrStdout())
	return err
}

// printStored prints the stored spec of a container; next if others are printed too.
func printStored(cmd *cobra.Command, d *daemon, id string, next bool) error {
	_, err := d.Containers().Spec(cmd.Context(), id)
	if err != nil {
		return fmt.Errorf("%s: %w", id, err)
	}
	if next && (isText(cmd) || format(cmd) == formatYAML) {
		if _, err := io.WriteString(cmd.OutOrStdout(), "---\n"); err != nil {
			return err
		}
	}
	return printManifest(cmd, d.raw, id)
}

// describe shows a container in detail.
func describe(t *table, c v1.ContainerView, now time.Time) {
	t.field("container", c.InternalID)
	t.field("state", string(c.State))
	t.field("since", age(c.StateSince, now))
	t.field("power", string(c.Power))
	t.field("installed", string(c.InstallState))
	t.field("message", why(c.ContainerState, now))
	t.field("restarts", strconv.Itoa(c.RestartCount))
	t.field("image", c.Image)
	t.field("pull policy", string(c.PullPolicy))
	t.field("command", c.StartupCommand)
	t.field("volume", c.VolumeID)
	t.field("ports", portList(c.Ports))
	t.field("memory", limit(c.Limits.Memory))
	t.field("cpu", cores(c.Limits.CPU))
	t.field("policy", c.RestartPolicy.Mode)
	for _, rule := range c.Placement.Rules() {
		t.field("placement", rule.Text)
	}
	t.field("engine's id", c.ContainerID)
	if c.Machine != "" {
		t.field("machine", string(c.Machine))
	}
	t.field("created", date(time.Unix(c.CreatedAt, 0)))
	for _, condition := range c.Conditions {
		t.field(condition.Type, fmt.Sprintf("%s, %s: %s", condition.Status, condition.Reason, condition.Message))
	}
}

func limit(bytes int64) string {
	if bytes == 0 {
		return "no limit"
	}
	return bytesText(bytes)
}

func cores(n float64) string {
	if n == 0 {
		return "no limit"
	}
	return strconv.FormatFloat(n, 'g', -1, 64) + " cores"
}

// why returns why a container is in its state, and what happens next, as far as it
// matters: nothing for one that runs and was not restarted.
func why(c v1.ContainerState, now time.Time) string {
	var parts []string
	message := string(c.Message)
	add := func(condition bool, text string) {
		if condition {
			parts = append(parts, text)
		}
	}
	add(message != "", message)
	add(c.OOMKilled && c.State != v1.Running && !strings.Contains(message, "out of memory"), "out of memory")
	add(c.State == v1.Starting && message == "", "no line has matched start_pattern yet")
	add(c.State == v1.Installing && message == "" && c.Deadline != nil, "the install script is running")
	if c.ExitCode != nil {
		code := "exit code " + strconv.Itoa(*c.ExitCode)
		ended := c.State == v1.Exit || c.State == v1.Failed
		add(ended && !strings.Contains(message, code), code)
		add(c.State == v1.Starting && c.RestartCount > 0, "last "+code)
	}
	add(c.RestartCount > 0, restarts(c))
	if c.NextRetryAt != nil && c.State != v1.Running {
		add(true, "next attempt in "+span(c.NextRetryAt.Sub(now).Round(time.Second)))
	}
	if limit := limitName(c.State); limit != "" && c.Deadline != nil {
		add(true, limit+" in "+span(c.Deadline.Sub(now).Round(time.Second)))
	}
	return strings.Join(parts, ", ")
}

// restarts returns how often the restart policy has started a container. After a start
// that failed there was no run, so it is no restart.
func restarts(c v1.ContainerState) string {
	if c.State == v1.Exit && c.StartedAt == nil && (c.ExitCode == nil || strings.HasPrefix(string(c.Message), "cannot start: ")) {
		return retryText(c.RestartCount)
	}
	return restartText(c.RestartCount)
}

func retryText(n int) string { return "start tried again " + times(n) }

func restartText(n int) string { return "restarted " + times(n) }

// times returns "once" or "3 times".
func times(n int) string {
	if n == 1 {
		return "once"
	}
	return strconv.Itoa(n) + " times"
}

// limitName returns the field of the spec that limits the time in a state.
func limitName(state v1.Phase) string {
	switch state {
	case v1.Installing:
		return "install_timeout"
	case v1.Starting:
		return "start_timeout"
	}
	return ""
}

// portList returns published ports, such as "25565-25582/tcp,127.0.0.1:25566/tcp":
// consecutive ports of an address are one range.
func portList(ports []v1.Port) string {
	ports = slices.Clone(ports)
	slices.SortFunc(ports, func(a, b v1.Port) int {
		return cmp.Or(cmp.Compare(a.IP, b.IP), cmp.Compare(a.Protocol, b.Protocol), cmp.Compare(a.Port, b.Port))
	})
	var list []string
	for len(ports) > 0 {
		n := 1
		for n < len(ports) && follows(ports[n-1], ports[n]) {
			n++
		}
		list = append(list, portRange(ports[0], ports[n-1]))
		ports = ports[n:]
	}
	return strings.Join(list, ",")
}

// follows reports whether b extends a range of ports that ends with a.
func follows(a, b v1.Port) bool {
	return a.IP == b.IP && a.Protocol == b.Protocol && b.Port == a.Port+1 && inContainer(b) == inContainer(a)+1
}

// inContainer returns the port inside the container.
func inContainer(p v1.Port) int { return cmp.Or(p.ContainerPort, p.Port) }

func portRange(first, last v1.Port) string {
	text := numbers(first.Port, last.Port) + "/" + first.Protocol
	switch {
	case first.IP == "0.0.0.0":
	case strings.Contains(first.IP, ":"):
		text = "[" + first.IP + "]:" + text
	default:
		text = first.IP + ":" + text
	}
	if inContainer(first) != first.Port {
		text += "->" + numbers(inContainer(first), inContainer(last))
	}
	return text
}

// numbers returns "1" or "1-3".
func numbers(first, last int) string {
	if first == last {
		return strconv.Itoa(first)
	}
	return strconv.Itoa(first) + "-" + strconv.Itoa(last)
}

func newVerbCommands(c *connector) []*cobra.Command {
	return []*cobra.Command{
		newVerbCommand(c, client.Start, "Start containers",
			"Start containers. A container that is being installed starts when it is ready."),
		newVerbCommand(c, client.Stop, "Stop containers gracefully",
			"Stop containers gracefully: with their stop command or signal, and by force after its timeout."),
		newVerbCommand(c, client.Kill, "Kill containers",
			"Kill containers at once. This overrides every other request."),
		newVerbCommand(c, client.Restart, "Stop containers gracefully, then start them",
			"Stop containers gracefully, then start them. Containers that do not run are started too."),
		newVerbCommand(c, client.Reinstall, "Run the installation of containers again",
			"Stop containers and run their installation again in their volume. They stay stopped afterwards."),
	}
}

func newVerbCommand(c *connector, action client.Action, short, long string) *cobra.Command {
	var w *waiting
	cmd := c.command(&cobra.Command{
		Use:     string(action) + " <id>...",
		Short:   short,
		Long:    long + "\nThe command returns when the request is stored; with --wait when it is carried out.",
		Example: "  berth " + string(action) + " survival lobby --wait",
		Args:    cobra.MinimumNArgs(1),
	}, func(cmd *cobra.Command, d *daemon, ids []string) error {
		return w.request(cmd, d, ids, goalOf(action), func(id string) (string, error) { return d.Containers().Do(cmd.Context(), id, action) })
	})
	w = addWaitFlags(cmd)
	return cmd
}

func newDeleteCommand(c *connector) *cobra.Command {
	var o client.DeleteOptions
	var w *waiting
	cmd := c.command(&cobra.Command{
		Use:     "delete <id>...",
		Aliases: []string{"rm"},
		Short:   "Delete containers",
		Long:    "Delete containers. They are killed and their ports are released; their volumes remain unless --volume is given.",
		Example: "  berth delete survival lobby --wait",
		Args:    cobra.MinimumNArgs(1),
	}, func(cmd *cobra.Command, d *daemon, ids []string) error {
		return w.request(cmd, d, ids, goal{name: deleted}, func(id string) (string, error) { return d.Containers().Delete(cmd.Context(), id, o) })
	})
	w = addWaitFlags(cmd)
	cmd.Flags().BoolVar(&o.Volume, "volume", false, "delete its volume too, with all files")
	return cmd
}
