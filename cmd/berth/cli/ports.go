package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"berth/api/client"
	"berth/api/intent"
	v1 "berth/api/v1"
)

func newPortsCommand(c *connector) *cobra.Command {
	cmd := c.listCommand(&cobra.Command{
		Use:     "ports",
		Short:   "List, add and delete ports of the pool",
		Example: "  berth ports\n  berth ports add 0.0.0.0 25565-25600 tcp",
	}, func(cmd *cobra.Command, d *daemon, _ []string) (listing, error) {
		list, err := d.Ports().List(cmd.Context())
		return listOf(d, list, v1.PoolPort.String,
			[]string{"ADDRESS", "PROTOCOL", "IN USE", "CONTAINER", "FIREWALL"},
			func(p v1.PoolPort) []string {
				rule := p.Firewall.State
				if p.Firewall.Reason != "" {
					rule += ": " + string(p.Firewall.Reason)
				}
				return []string{net.JoinHostPort(p.IP, strconv.Itoa(p.Port)), p.Protocol, yesNo(p.InUse), string(p.Container), rule}
			}).or("There are no ports; berth ports add adds some."), err
	})
	cmd.AddCommand(newPortsAdd(c), newPortsDelete(c))
	return cmd
}

func newPortsAdd(c *connector) *cobra.Command {
	return c.command(&cobra.Command{
		Use:     "add <ip> <ports> <protocol>",
		Short:   "Add ports to the pool: all of them, or none",
		Example: "  berth ports add 0.0.0.0 25565-25600,30000 tcp",
		Args:    cobra.ExactArgs(3),
	}, func(cmd *cobra.Command, d *daemon, args []string) error {
		added, err := d.Ports().AddRanges(cmd.Context(), args[0], args[1], args[2])
		if err != nil {
			return err
		}
		return printDone(cmd, d.raw, args[0]+" "+args[1], "%d added", added)
	})
}

func newPortsDelete(c *connector) *cobra.Command {
	var protocol string
	cmd := c.command(&cobra.Command{
		Use:     "delete <ip> <ports>",
		Short:   "Delete ports from the pool, except those that a container has claimed",
		Long:    "Delete ports from the pool, except those that a container has claimed. Ports that are not in the pool are ignored.",
		Example: "  berth ports delete 0.0.0.0 25565 --protocol udp\n  berth ports delete 0.0.0.0 25565-25600,30000",
		Args:    cobra.ExactArgs(2),
	}, func(cmd *cobra.Command, d *daemon, args []string) error {
		return deletePorts(cmd, d, args[0], args[1], protocol)
	})
	cmd.Flags().StringVar(&protocol, "protocol", "", "tcp or udp (default both)")
	return cmd
}

// deleteBatch is how many ports one request names, so that it fits into
// server.body_limit.
const deleteBatch = 4000

// deletePorts deletes ranges of ports. If containers have claimed some of them, it
// deletes the others and returns an error.
func deletePorts(cmd *cobra.Command, d *daemon, ip, ranges, protocol string) error {
	var f v1.FieldErrors
	set := intent.CheckPorts(&f, ip, ranges, cmp.Or(protocol, "tcp")).Ports
	if err := f.Err(); err != nil {
		return err
	}
	var ports []v1.PortRef
	for port := range set.All() {
		ports = append(ports, v1.PortRef{IP: ip, Port: port, Protocol: protocol})
	}
	total := client.DeletedPorts{Skipped: []v1.ClaimedPort{}}
	for batch := range slices.Chunk(ports, deleteBatch) {
		result, err := d.Ports().DeleteAll(cmd.Context(), batch)
		if err != nil {
			return err
		}
		total.Count += result.Count
		total.Skipped = append(total.Skipped, result.Skipped...)
	}
	if total.Count == 0 && len(total.Skipped) == 0 {
		return withCode(exitNotFound, errors.New("none of these ports is in the pool"))
	}
	raw, err := json.Marshal(total)
	if err != nil {
		return err
	}
	if err := printDone(cmd, raw, ip+" "+ranges, "%d deleted", total.Count); err != nil || len(total.Skipped) == 0 {
		return err
	}
	first := total.Skipped[0]
	return fmt.Errorf("containers use %d of these ports, which were not deleted: the first is %d/%s, used by %s",
		len(total.Skipped), first.Port, first.Protocol, first.Container)
}
