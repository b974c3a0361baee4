package main

import (
	"cmp"
	"net"
	"net/http"
	"net/url"
	"strconv"

	"github.com/spf13/cobra"
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

func newPortsCommand(c *cli) *cobra.Command {
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

func newPortsAdd(c *cli) *cobra.Command {
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
		return say(cmd, raw, "%d added", body.Added)
	})
}

func newPortsDelete(c *cli) *cobra.Command {
	var protocol string
	cmd := c.command(&cobra.Command{
		Use:     "delete <ip> <port>",
		Short:   "Delete a port from the pool that no container holds",
		Example: "  berth ports delete 0.0.0.0 25565 --protocol udp",
		Args:    cobra.ExactArgs(2),
	}, func(cmd *cobra.Command, api *client, args []string) error {
		path := "/network/ports/" + url.PathEscape(args[0]) + "/" + url.PathEscape(args[1])
		if protocol != "" {
			path += "?protocol=" + url.QueryEscape(protocol)
		}
		raw, err := api.call(cmd.Context(), http.MethodDelete, path, nil, nil)
		if err != nil {
			return err
		}
		return say(cmd, raw, "%s/%s: deleted", net.JoinHostPort(args[0], args[1]), cmp.Or(protocol, "tcp and udp"))
	})
	cmd.Flags().StringVar(&protocol, "protocol", "", "tcp or udp (default both)")
	return cmd
}
