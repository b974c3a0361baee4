package cli

import (
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	v1 "berth/api/v1"
)

// auditPage is how many entries one request returns.
const auditPage = 10_000

func newAuditCommand(c *connector) *cobra.Command {
	var last int
	var since int64
	var filter v1.AuditFilter
	cmd := withoutNames(c.command(&cobra.Command{
		Use:   "audit",
		Short: "Print the entries of the audit log",
		Long: "Print the entries of the audit log, oldest first: number, time, actor, action, object and the status of the\n" +
			"response. Refused requests are in it too.",
		Example: "  berth audit -n 20\n  berth audit --actor alice --container mc",
	}, func(cmd *cobra.Command, d *daemon, _ []string) error {
		if last < 0 || since < 0 && cmd.Flags().Changed("since") {
			return withCode(exitUsage, errors.New("--last and --since must not be negative"))
		}
		if since >= 0 {
			last = 0
		}
		entries, err := auditEntries(cmd, d, uint64(max(since, 0)), last, filter)
		if err != nil {
			return err
		}
		raw, err := json.Marshal(map[string]any{"entries": entries})
		if err != nil {
			return err
		}
		return show(cmd, raw, nil, func(t *table) { tableOfAudit(t, entries) })
	}))
	cmd.Flags().IntVarP(&last, "last", "n", 50, "number of past entries")
	cmd.Flags().Int64Var(&since, "since", -1, "all entries after this number")
	cmd.Flags().StringVar(&filter.Container, "container", "", "only requests that name this container")
	cmd.Flags().StringVar(&filter.Volume, "volume", "", "only requests that name this volume")
	cmd.Flags().StringVar(&filter.Actor, "actor", "", "only requests of this actor: the id or the name of a token, or an end user")
	cmd.MarkFlagsMutuallyExclusive("last", "since")
	return cmd
}

// auditEntries returns the entries after since that a filter selects, or the last ones
// of them. 0 means all.
func auditEntries(cmd *cobra.Command, d *daemon, since uint64, last int, filter v1.AuditFilter) ([]v1.AuditEntry, error) {
	all := []v1.AuditEntry{}
	for {
		list, err := d.Audit().List(cmd.Context(), since, auditPage, filter)
		if err != nil {
			return nil, err
		}
		all = append(all, list...)
		if last > 0 && len(all) > last {
			all = slices.Clone(all[len(all)-last:])
		}
		if len(list) < auditPage {
			return all, nil
		}
		since = list[len(list)-1].Seq
	}
}

func tableOfAudit(t *table, entries []v1.AuditEntry) {
	t.head(column{title: "SEQ"}, column{title: "TIME"}, column{title: "ACTOR"}, column{title: "TOKEN", wide: true}, column{title: "VIA", wide: true}, column{title: "ADDRESS", wide: true},
		column{title: "ACTION"}, column{title: "OBJECT"}, column{title: "STATUS"}, column{title: "REQUEST", wide: true})
	for _, e := range entries {
		t.row(strconv.FormatUint(e.Seq, 10), e.Time.In(time.Local).Format(timeFormat), e.Actor.String(), e.Actor.TokenID, string(e.Actor.Via), e.Actor.Address,
			e.Action, e.Object, strconv.Itoa(e.Status), e.RequestID)
	}
}
