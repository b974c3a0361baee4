package cli

import (
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"berth/api/client"
)

func newContainersCommand(c *connector) *cobra.Command {
	var labels []string
	cmd := c.listCommand(&cobra.Command{
		Use:     "containers [id]...",
		Short:   "List the containers, or show some in detail",
		Example: "  berth containers --label game=chess\n  berth containers survival",
		Args:    cobra.ArbitraryArgs,
	}, func(cmd *cobra.Command, d *daemon, _ []string) (listing, error) {
		return listContainers(cmd, d, labels)
	})
	addLabelFlag(cmd, &labels)
	list := cmd.RunE
	cmd.RunE = c.run(func(cmd *cobra.Command, d *daemon, ids []string) error {
		if len(ids) == 0 {
			return list(cmd, ids)
		}
		return each(cmd.Context(), d, ids, func(id string) error { return describeContainer(cmd, d, id, len(ids) > 1) })
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

func listContainers(cmd *cobra.Command, d *daemon, labels []string) (listing, error) {
	list, err := d.Containers().List(cmd.Context(), labels...)
	if err != nil {
		return listing{}, err
	}
	l := listing{raw: d.raw, names: names(list, func(s client.Summary) string { return s.InternalID })}
	l.fill = func(t *table) {
		if len(list) == 0 {
			t.line("There are no containers" + labelText(labels) + ".")
			return
		}
		t.head(column{title: "CONTAINER"}, column{title: "STATE", style: stateStyle}, column{title: "SINCE"},
			column{title: "POWER", wide: true}, column{title: "RESTARTS", wide: true}, column{title: "VOLUME", wide: true},
			column{title: "IMAGE"}, column{title: "PORTS"}, column{title: "MESSAGE"})
		now := time.Now()
		for _, s := range list {
			t.row(s.InternalID, string(s.State), age(s.StateSince, now), string(s.Power), strconv.Itoa(s.RestartCount), s.VolumeID,
				s.Image, portList(s.Ports), why(s.ContainerState, now))
		}
	}
	return l, nil
}
