package cli

import (
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/spf13/cobra"

	v1 "berth/api/v1"
)

func newTransferCommand(c *connector) *cobra.Command {
	return withSubcommands(&cobra.Command{
		Use:   "transfer",
		Short: "Move containers to other nodes",
		Example: "  berth transfer start survival --to https://node2:8070 --arrive-file arrive.token\n" +
			"  berth transfer ls\n  berth transfer show <id>\n  berth transfer cancel <id>",
	}, newTransferStart(c), newTransferList(c), newTransferShow(c), newTransferCancel(c))
}

func newTransferStart(c *connector) *cobra.Command {
	var to, tokenFile, keep, bandwidth string
	var ports []string
	var start, noStart, random, backups bool
	cmd := c.command(&cobra.Command{
		Use:   "start <container>",
		Short: "Move a container to another node",
		Long: "Move a container, its volume, its schedules and its backup policy to another node. The token is minted there:\n" +
			"berth token create --scope arrive --ttl 1d. It is read from a file, or from standard input with -.\n" +
			"The container runs until everything but the last changes is copied; berth transfer show has the progress.",
		Example: "  berth transfer start survival --to https://node2:8070 --arrive-file arrive.token " +
			"--port 10.0.0.1:25565/tcp=10.0.0.2:25570",
		Args: cobra.ExactArgs(1),
	}, func(cmd *cobra.Command, d *daemon, args []string) error {
		token, err := readInput(tokenFile, cmd.InOrStdin())
		if err != nil {
			return err
		}
		r := v1.TransferRequest{URL: to, Token: strings.TrimSpace(string(token)), RandomPorts: random, Backups: backups}
		for _, text := range ports {
			p, err := parseMove(text)
			if err != nil {
				return err
			}
			r.Ports = append(r.Ports, p)
		}
		if bandwidth != "" {
			size, err := v1.ParseSize(bandwidth)
			if err != nil {
				return fmt.Errorf("--bandwidth: %w", err)
			}
			r.Bandwidth = int64(size)
		}
		if start || noStart {
			r.Start = &start
		}
		if keep != "" {
			parsed, err := v1.ParseDuration(keep)
			if err != nil {
				return fmt.Errorf("--keep: %w", err)
			}
			duration := v1.Duration(parsed)
			r.Keep = &duration
		}
		id, err := d.Transfers().Start(cmd.Context(), args[0], r)
		if err != nil {
			return fmt.Errorf("%s: %w", args[0], err)
		}
		return printDone(cmd, d.raw, id, "%s: transfer %s has begun", args[0], id)
	})
	flags := cmd.Flags()
	flags.StringVar(&to, "to", "", "`URL` of the other daemon")
	flags.StringVar(&tokenFile, "arrive-file", "", "`path` of a file with a token of the scope arrive, or - for standard input")
	flags.StringArrayVar(&ports, "port", nil, "`ip:port/protocol=ip:port` of a port that is another one there; may be repeated")
	flags.BoolVar(&random, "random-ports", false, "replace all ports by free ones of the other node's pool")
	flags.StringVar(&bandwidth, "bandwidth", "", "`bytes` a second that are sent, such as 20MiB")
	flags.StringVar(&keep, "keep", "", "how long the volume stays here afterwards, a `duration` up to 30d (default 1d)")
	flags.BoolVar(&backups, "backups", false, "move completed backups of the volume too")
	flags.BoolVar(&start, "start", false, "start the container there, also if it is stopped here")
	flags.BoolVar(&noStart, "no-start", false, "do not start the container there")
	cmd.MarkFlagsMutuallyExclusive("start", "no-start")
	cmd.MarkFlagsMutuallyExclusive("port", "random-ports")
	for _, name := range []string{"to", "arrive-file"} {
		_ = cmd.MarkFlagRequired(name) // the flag exists
	}
	return cmd
}

// parseMove parses a port and the one that replaces it.
func parseMove(text string) (p v1.TransferPort, err error) {
	from, to, _ := strings.Cut(text, "=")
	address, protocol, _ := strings.Cut(from, "/")
	a, err := netip.ParseAddrPort(address)
	if err == nil {
		var b netip.AddrPort
		if b, err = netip.ParseAddrPort(to); err == nil {
			p = v1.TransferPort{IP: a.Addr().String(), Port: int(a.Port()), Protocol: protocol,
				To: v1.PortAddress{IP: b.Addr().String(), Port: int(b.Port())}}
		}
	}
	if err != nil || protocol == "" {
		return p, fmt.Errorf("--port %s: must be such as 10.0.0.1:25565/tcp=10.0.0.2:25570", text)
	}
	return p, nil
}

func newTransferList(c *connector) *cobra.Command {
	return c.command(&cobra.Command{
		Use:     "ls",
		Aliases: []string{"list"},
		Short:   "List transfers to other nodes",
		Example: "  berth transfer ls",
		Args:    cobra.NoArgs,
	}, func(cmd *cobra.Command, d *daemon, _ []string) error {
		list, err := d.Transfers().List(cmd.Context())
		if err != nil {
			return err
		}
		return show(cmd, d.raw, names(list, func(t v1.TransferView) string { return t.TransferID }), func(t *table) {
			t.head("ID", "CONTAINER", "TO", "STATE", "ROUND", "SENT", "CREATED", "MESSAGE")
			for _, v := range list {
				t.row(v.TransferID, v.Container, v.URL, string(v.State), fmt.Sprint(v.Progress.Round), v1.Size(v.Progress.Bytes).String(),
					date(time.Unix(v.CreatedAt, 0)), v.Message)
			}
		})
	})
}

func newTransferShow(c *connector) *cobra.Command {
	return c.command(&cobra.Command{
		Use:     "show <transfer>",
		Short:   "Show a transfer",
		Example: "  berth transfer show d0c7a1de-3f57-4c11-9a58-6d2b0f6b1c2e",
		Args:    cobra.ExactArgs(1),
	}, func(cmd *cobra.Command, d *daemon, args []string) error {
		v, err := d.Transfers().Get(cmd.Context(), args[0])
		if err != nil {
			return fmt.Errorf("%s: %w", args[0], err)
		}
		return show(cmd, d.raw, []string{v.TransferID}, func(t *table) {
			t.field("Transfer", v.TransferID)
			t.field("Container", v.Container)
			t.field("Volume", v.VolumeID)
			t.field("To", v.URL)
			for _, p := range v.Ports {
				from, to := v1.PortRef{IP: p.IP, Port: p.Port, Protocol: p.Protocol}, v1.PortRef{IP: p.To.IP, Port: p.To.Port}
				t.field("Port", from.String()+" = "+to.String())
			}
			t.field("State", string(v.State))
			t.field("Round", fmt.Sprint(v.Progress.Round))
			t.field("Sent", v1.Size(v.Progress.Bytes).String()+" of "+v1.Size(v.Progress.Total).String())
			for _, id := range v.Backups {
				t.field("Backup", id)
			}
			for _, id := range v.BackupsKept {
				t.field("Backup that stays", id)
			}
			t.field("Message", v.Message)
		})
	})
}

func newTransferCancel(c *connector) *cobra.Command {
	var gone bool
	cmd := c.command(&cobra.Command{
		Use:   "cancel <transfer>",
		Short: "Cancel a transfer: the container stays here",
		Long: "Cancel a transfer. The container stays here, and runs as before, unless the destination has it already.\n" +
			"If the destination does not answer in the state handing_over, nobody knows whether it runs the container:\n" +
			"--destination-is-gone gives it back all the same. Only if the destination will never run it: otherwise both do.",
		Example: "  berth transfer cancel d0c7a1de-3f57-4c11-9a58-6d2b0f6b1c2e",
		Args:    cobra.ExactArgs(1),
	}, func(cmd *cobra.Command, d *daemon, args []string) error {
		text := ""
		if gone {
			text = "true"
		}
		v, err := d.Transfers().Cancel(cmd.Context(), args[0], text)
		if err != nil {
			return fmt.Errorf("%s: %w", args[0], err)
		}
		return printDone(cmd, d.raw, v.TransferID, "%s: %s", v.TransferID, v.State)
	})
	cmd.Flags().BoolVar(&gone, "destination-is-gone", false, "give the container back although the destination does not answer")
	return cmd
}
