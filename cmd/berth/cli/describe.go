package cli

import (
	"fmt"
	"strconv"
	"time"

	"github.com/docker/go-units"
	"github.com/spf13/cobra"

	"berth/api/client"
)

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

// describe shows a container in detail.
func describe(t *table, c client.Container, now time.Time) {
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
	t.field("engine's id", c.ContainerID)
	t.field("created", date(time.Unix(c.CreatedAt, 0)))
	for _, condition := range c.Conditions {
		t.field(condition.Type, fmt.Sprintf("%s, %s: %s", condition.Status, condition.Reason, condition.Message))
	}
}

func limit(bytes int64) string {
	if bytes == 0 {
		return "no limit"
	}
	return units.BytesSize(float64(bytes))
}

func cores(n float64) string {
	if n == 0 {
		return "no limit"
	}
	return strconv.FormatFloat(n, 'g', -1, 64) + " cores"
}
