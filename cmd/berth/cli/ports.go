package cli

import (
	"cmp"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"berth/api/intent"
)

type poolPort struct {
	IP        string `json:"ip"`
	Port      int    `json:"port"`
	Protocol  string `json:"protocol"`
	InUse     bool   `json:"in_use"`
	Container string `json:"container"`
	Firewall  struct {
		State  string `json:"state"`
		Reason string `json:"reason"`
	} `json:"firewall"`
}

func newPortsCommand(c *connector) *cobra.Command {
	cmd := c.command(&cobra.Command{
		Use:     "ports",
		Short:   "List, add and delete ports of the pool",
		Example: "  berth ports\n  berth ports add 0.0.0.0 25565-25600 tcp",
	}, func(cmd *cobra.Command, api *client, _ []string) error {
		var body struct{ Ports []poolPort }
		raw, err := api.get(cmd.Context(), "/network/ports", &body)
		if err != nil {
			return err
		}
		return show(cmd, raw, func(t *table) {
			t.row("ADDRESS", "PROTOCOL", "IN USE", "CONTAINER", "FIREWALL")
			for _, p := range body.Ports {
				rule := p.Firewall.State
				if p.Firewall.Reason != "" {
					rule += ": " + p.Firewall.Reason
				}
				t.row(net.JoinHostPort(p.IP, strconv.Itoa(p.Port)), p.Protocol, map[bool]string{true: "yes", false: "no"}[p.InUse],
					p.Container, rule)
			}
		})
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
	}, func(cmd *cobra.Command, api *client, args []string) error {
		var body struct {
			Added int `json:"added_count"`
		}
		request := map[string]string{"ip": args[0], "ports": args[1], "protocol": args[2]}
		raw, err := api.call(cmd.Context(), http.MethodPost, "/network/ports/bulk", request, &body)
		if err != nil {
			return err
		}
		return printLine(cmd, raw, "%d added", body.Added)
	})
}

func newPortsDelete(c *connector) *cobra.Command {
	var protocol string
	cmd := c.command(&cobra.Command{
		Use:     "delete <ip> <ports>",
		Short:   "Delete ports from the pool that no container holds",
		Long:    "Delete ports from the pool that no container holds. Of ranges, those that are not in it are passed over.",
		Example: "  berth ports delete 0.0.0.0 25565 --protocol udp\n  berth ports delete 0.0.0.0 25565-25600,30000",
		Args:    cobra.ExactArgs(2),
	}, func(cmd *cobra.Command, api *client, args []string) error {
		if strings.ContainsAny(args[1], "-,") {
			return api.deletePorts(cmd, args[0], args[1], protocol)
		}
		path := "/network/ports/" + url.PathEscape(args[0]) + "/" + url.PathEscape(args[1])
		if protocol != "" {
			path += "?protocol=" + url.QueryEscape(protocol)
		}
		raw, err := api.call(cmd.Context(), http.MethodDelete, path, nil, nil)
		if err != nil {
			return err
		}
		return printLine(cmd, raw, "%s/%s: deleted", net.JoinHostPort(args[0], args[1]), cmp.Or(protocol, "tcp and udp"))
	})
	cmd.Flags().StringVar(&protocol, "protocol", "", "tcp or udp (default both)")
	return cmd
}

// deletedAtOnce is how many ports one request names: it has to fit into
// server.body_limit.
const deletedAtOnce = 4000

// deletePorts deletes ranges. What a container holds stays, and is an error
// when the others are gone.
func (c *client) deletePorts(cmd *cobra.Command, ip, ranges, protocol string) error {
	var f intent.FieldErrors
	set := intent.CheckPorts(&f, ip, ranges, cmp.Or(protocol, "tcp")).Ports
	if err := f.Err(); err != nil {
		return err
	}
	var refs []map[string]any
	for port := range set.All() {
		ref := map[string]any{"ip": ip, "port": port}
		if protocol != "" {
			ref["protocol"] = protocol
		}
		refs = append(refs, ref)
	}
	var held []poolPort
	for part := range slices.Chunk(refs, deletedAtOnce) {
		var body struct {
			Deleted int `json:"deleted_count"`
			Skipped []poolPort
		}
		raw, err := c.call(cmd.Context(), http.MethodPost, "/network/ports/bulk-delete", map[string]any{"ports": part}, &body)
		if err == nil {
			err = printLine(cmd, raw, "%d deleted", body.Deleted)
		}
		if err != nil {
			return err
		}
		held = append(held, body.Skipped...)
	}
	if len(held) > 0 {
		return fmt.Errorf("%d are held by containers, and stay: the first is %d/%s, by %s", len(held), held[0].Port, held[0].Protocol, held[0].Container)
	}
	return nil
}
