package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"berth/api/client"
	v1 "berth/api/v1"
)

// eventPage is how many stored transitions one request returns.
const eventPage = 1000

func newEventsCommand(c *connector) *cobra.Command {
	var follow bool
	var last int
	var since int64
	var filter client.EventFilter
	cmd := c.command(withoutNames(&cobra.Command{
		Use:   "events",
		Short: "Print the state transitions of containers, backups and downloads",
		Long: "Print the stored transitions, oldest first: number, time, container, and the new state or a message. Those of\n" +
			"backups, restores and downloads have the first characters of their volume instead of a container; messages\n" +
			"about the node itself, such as an engine that does not answer, have neither. With -f continue with new\n" +
			"transitions.",
		Example: "  berth events -n 20\n  berth events -f --since 1200\n  berth events --container mc",
	}), func(cmd *cobra.Command, d *daemon, _ []string) error {
		if err := checkRange(cmd, last, since); err != nil {
			return err
		}
		if since < 0 && !follow {
			return lastEvents(cmd, d, filter, last)
		}
		from, err := d.firstEvent(cmd.Context(), since, last)
		if err != nil {
			return err
		}
		if follow {
			return followEvents(cmd, d, from, filter)
		}
		return listEvents(cmd, d, from, filter)
	})
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "continue with new transitions")
	cmd.Flags().IntVarP(&last, "last", "n", 50, "number of past transitions")
	cmd.Flags().Int64Var(&since, "since", -1, "all transitions after this number")
	cmd.Flags().StringVar(&filter.Container, "container", "", "only transitions of this container")
	cmd.Flags().StringVar(&filter.Volume, "volume", "", "only transitions of this volume, and of the containers that use it")
	types := []string{v1.EventState, v1.EventMessage, v1.EventBackup, v1.EventRestore, v1.EventPull, v1.EventSchedule, v1.EventTransfer}
	cmd.Flags().Func("type",
		"only changes of state of containers (event), of backups (backup), of restores (restore), of downloads (pull) or of runs of schedules "+
			"(schedule), or only messages (daemon_message)",
		func(text string) error {
			if filter.Type = text; slices.Contains(types, text) {
				return nil
			}
			return fmt.Errorf("%q is not one of %s", text, strings.Join(types, ", "))
		})
	cmd.MarkFlagsMutuallyExclusive("last", "since")
	cmd.MarkFlagsMutuallyExclusive("follow", "volume")
	return cmd
}

// maxLast is how many entries of a log one request returns at most.
const maxLast = 10_000

// checkRange checks the flags that select the part of a log.
func checkRange(cmd *cobra.Command, last int, since int64) error {
	if last < 0 || last > maxLast {
		return withCode(exitUsage, fmt.Errorf("--last must be 0 to %d", maxLast))
	}
	if since < 0 && cmd.Flags().Changed("since") {
		return withCode(exitUsage, errors.New("--since must not be negative"))
	}
	return nil
}

// firstEvent returns the cursor after which printing begins.
func (d *daemon) firstEvent(ctx context.Context, since int64, last int) (client.Cursor, error) {
	if since >= 0 {
		return client.Cursor{Seq: uint64(since)}, nil
	}
	newest, err := d.Events().Newest(ctx)
	newest.Seq -= min(newest.Seq, uint64(last))
	return newest, err
}

// listEvents prints the stored transitions after a cursor.
func listEvents(cmd *cobra.Command, d *daemon, after client.Cursor, filter client.EventFilter) error {
	t := eventTable{cmd: cmd}
	for {
		list, err := d.Events().List(cmd.Context(), after, eventPage, filter)
		if err != nil {
			return err
		}
		if isText(cmd) {
			err = t.printPage(list.Events)
		} else {
			err = printRaw(cmd, d.raw)
		}
		if err != nil || len(list.Events) < eventPage {
			return err
		}
		after = client.Cursor{Seq: list.Events[len(list.Events)-1].Seq, Epoch: list.Epoch}
	}
}

// lastEvents prints the last n stored transitions that a filter selects.
func lastEvents(cmd *cobra.Command, d *daemon, filter client.EventFilter, n int) error {
	list, err := d.Events().Last(cmd.Context(), n, filter)
	if err != nil {
		return err
	}
	if isText(cmd) {
		return (&eventTable{cmd: cmd}).printPage(list.Events)
	}
	return printRaw(cmd, d.raw)
}

// eventTable prints transitions. Its columns have fixed widths, because transitions come
// one after the other.
type eventTable struct {
	cmd    *cobra.Command
	titled bool
}

// eventRow is the format of a row: number, time, container or volume, text.
const eventRow = "%6s  %-29s  %-16s  %s\n"

// printPage prints transitions, or on standard error that there are none.
func (t *eventTable) printPage(events []v1.Event) error {
	if len(events) == 0 && !t.titled {
		return printNone(t.cmd, "There are no such events.")
	}
	return t.print(events...)
}

// print prints a line for each transition, with -o wide with its actor.
func (t *eventTable) print(events ...v1.Event) error {
	cmd := t.cmd
	if !t.titled && len(events) > 0 {
		t.titled = true
		if _, err := fmt.Fprintf(cmd.OutOrStdout(), eventRow, "SEQ", "TIME", "OBJECT", "EVENT"); err != nil {
			return err
		}
	}
	for _, e := range events {
		object, text := cmp.Or(e.Container, "-"), e.Data+cause(e)
		if job := e.Job(); job != "" {
			object, text = e.Volume[:min(8, len(e.Volume))], fmt.Sprintf("%s %s is %s", e.Event, job, e.Data)
		}
		if e.Event == v1.EventSchedule {
			text = fmt.Sprintf("schedule %s is %s", e.Schedule, e.Data)
		}
		if e.Event == v1.EventTransfer {
			text = fmt.Sprintf("transfer %s is %s", e.Transfer, e.Data)
		}
		if format(cmd) == formatWide && e.Actor != (v1.Actor{}) {
			text += " by " + e.Actor.String()
		}
		_, err := fmt.Fprintf(cmd.OutOrStdout(), eventRow, strconv.FormatUint(e.Seq, 10), e.Time.In(time.Local).Format(timeFormat),
			printable(object), printable(text))
		if err != nil {
			return err
		}
	}
	return nil
}

// cause returns why a container entered a state, in brackets, or "".
func cause(e v1.Event) string {
	var parts []string
	if e.Reason != "" {
		parts = append(parts, e.Reason)
	}
	if e.ExitCode != nil {
		parts = append(parts, fmt.Sprintf("exit code %d", *e.ExitCode))
	}
	switch {
	case e.RestartCount > 0 && e.ExitCode == nil: // there was no run
		parts = append(parts, retryText(e.RestartCount))
	case e.RestartCount > 0:
		parts = append(parts, restartText(e.RestartCount))
	}
	if e.NextRetryAt != nil {
		parts = append(parts, "next attempt at "+e.NextRetryAt.In(time.Local).Format(time.TimeOnly))
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

// followEvents prints the transitions after a cursor, and new ones as they happen, until
// the command is interrupted, which is not an error. A broken stream is opened again.
func followEvents(cmd *cobra.Command, d *daemon, after client.Cursor, filter client.EventFilter) error {
	d.notices = cmd.ErrOrStderr()
	t := &eventTable{cmd: cmd}
	for m, err := range d.Events().Watch(cmd.Context(), after) {
		if cmd.Context().Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%w; continue with berth events -f --since %d", err, after.Seq)
		}
		d.broken = false
		if after.Epoch != "" && m.Epoch != "" && m.Epoch != after.Epoch {
			_, _ = fmt.Fprintln(cmd.ErrOrStderr(), "berth: the daemon's store was restored: its numbers belong to another epoch now")
			after.Seq = 0
		}
		after = client.Cursor{Seq: cmp.Or(m.Seq, after.Seq), Epoch: cmp.Or(m.Epoch, after.Epoch)}
		if m.Event != client.EventGap && (filter.Container != "" && m.Container != filter.Container ||
			filter.Type != "" && m.Event != filter.Type) {
			continue
		}
		if err := printTransition(t, m); err != nil {
			return err
		}
	}
	return nil
}

func printTransition(t *eventTable, m client.Message) (err error) {
	cmd := t.cmd
	switch {
	case m.Event == client.EventGap:
		_, err = fmt.Fprintf(cmd.ErrOrStderr(), "berth: transitions before number %s are not stored any more\n", m.Data)
	case !isText(cmd):
		err = printNext(cmd, m.JSON)
	default:
		err = t.print(m.Transition)
	}
	return err
}

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
		if err := checkRange(cmd, last, since); err != nil {
			return err
		}
		var entries []v1.AuditEntry
		var err error
		if since < 0 {
			entries, err = d.Audit().Last(cmd.Context(), last, filter)
		} else {
			entries, err = auditEntries(cmd, d, uint64(since), filter)
		}
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

// auditEntries returns the entries after since that a filter selects.
func auditEntries(cmd *cobra.Command, d *daemon, since uint64, filter v1.AuditFilter) ([]v1.AuditEntry, error) {
	all := []v1.AuditEntry{}
	for {
		list, err := d.Audit().List(cmd.Context(), since, maxLast, filter)
		if err != nil {
			return nil, err
		}
		all = append(all, list...)
		if len(list) < maxLast {
			return all, nil
		}
		since = list[len(list)-1].Seq
	}
}

func tableOfAudit(t *table, entries []v1.AuditEntry) {
	t.head("SEQ", "TIME", "ACTOR", "TOKEN*", "VIA*", "ADDRESS*",
		"ACTION", "OBJECT", "STATUS", "REQUEST*")
	for _, e := range entries {
		t.row(strconv.FormatUint(e.Seq, 10), e.Time.In(time.Local).Format(timeFormat), e.Actor.String(), e.Actor.TokenID,
			string(e.Actor.Via), e.Actor.Address,
			e.Action, e.Object, strconv.Itoa(e.Status), e.RequestID)
	}
}
