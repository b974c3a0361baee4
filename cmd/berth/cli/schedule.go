package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"berth/api/client"
	"berth/api/intent"
	v1 "berth/api/v1"
	"berth/cmd/berth/config"
)

func newScheduleCommand(c *connector) *cobra.Command {
	return withSubcommands(&cobra.Command{
		Use:   "schedule",
		Short: "List, set, run and remove the schedules of containers",
		Example: "  berth schedule ls survival\n  berth schedule set survival nightly -f nightly.yaml\n" +
			"  berth schedule run survival nightly\n  berth schedule rm survival nightly",
	}, newScheduleList(c), newScheduleSet(c), newScheduleRun(c), newScheduleRemove(c))
}

func newScheduleList(c *connector) *cobra.Command {
	return c.command(&cobra.Command{
		Use:     "ls <container>",
		Aliases: []string{"list"},
		Short:   "List the schedules of a container, when they run next, and how the last run ended",
		Example: "  berth schedule ls survival -o wide",
		Args:    cobra.ExactArgs(1),
	}, func(cmd *cobra.Command, d *daemon, args []string) error {
		list, err := d.Schedules().List(cmd.Context(), args[0])
		if err != nil {
			return fmt.Errorf("%s: %w", args[0], err)
		}
		return show(cmd, d.raw, names(list, func(s v1.ScheduleView) string { return s.Name }), func(t *table) {
			t.head("NAME", "CRON", "TIMEZONE", "STEPS", "NEXT", "LAST", "RESULT", "MESSAGE")
			for _, s := range list {
				next, last, result, message := "-", "-", "-", ""
				if s.Status.NextRun != nil {
					next = date(*s.Status.NextRun)
				}
				if run := s.Status.LastRun; run != nil {
					last, result, message = date(run.StartedAt), string(run.State), run.Message
				}
				t.row(s.Name, s.Cron, s.Timezone, fmt.Sprint(len(s.Steps)), next, last, result, message)
			}
		})
	})
}

func newScheduleSet(c *connector) *cobra.Command {
	var file string
	cmd := c.command(&cobra.Command{
		Use:   "set <container> <name>",
		Short: "Set a schedule of a container from a file, in place of the one before",
		Long: "Set a schedule of a container, in place of the one before of this name. -f names a file in YAML or JSON\n" +
			"with the fields of PUT /containers/{id}/schedules/{name}, or - for standard input:\n\n" +
			"  cron: \"0 4 * * *\"\n  timezone: Europe/Berlin\n  steps:\n    - command: say restart in 1 minute\n    - wait: 1m\n" +
			"    - backup: {keep: 7}\n    - power: restart",
		Example: "  berth schedule set survival nightly -f nightly.yaml",
		Args:    cobra.ExactArgs(2),
	}, func(cmd *cobra.Command, d *daemon, args []string) error {
		text, err := readInput(file, cmd.InOrStdin())
		if err != nil {
			return err
		}
		spec, err := yaml.YAMLToJSONStrict(text)
		if err != nil {
			return fmt.Errorf("%s: %w", file, errors.New(config.YAMLError(err)))
		}
		path := "/containers/" + url.PathEscape(args[0]) + "/schedules/" + url.PathEscape(args[1])
		var s v1.ScheduleView
		// the daemon checks it, and names what is wrong
		if err := d.Call(cmd.Context(), http.MethodPut, path, json.RawMessage(spec), &s); err != nil {
			return fmt.Errorf("%s: %w", strings.Join(args, " "), err)
		}
		return printDone(cmd, d.raw, s.Name, "%s %s: %d steps, %s in %s", args[0], s.Name, len(s.Steps), s.Cron, s.Timezone)
	})
	cmd.Flags().StringVarP(&file, "file", "f", "", "`path` of a file, or - for standard input")
	_ = cmd.MarkFlagRequired("file") // the flag exists
	return cmd
}

func newScheduleRun(c *connector) *cobra.Command {
	return c.command(&cobra.Command{
		Use:   "run <container> <name>",
		Short: "Run a schedule once, now",
		Long: "Request a run of a schedule, whatever its times are. It is skipped if a run goes on, or if the container does not run\n" +
			"and the schedule needs that.",
		Example: "  berth schedule run survival nightly",
		Args:    cobra.ExactArgs(2),
	}, func(cmd *cobra.Command, d *daemon, args []string) error {
		if err := d.Schedules().Run(cmd.Context(), args[0], args[1]); err != nil {
			return fmt.Errorf("%s: %w", strings.Join(args, " "), err)
		}
		return printDone(cmd, d.raw, args[1], "%s %s: run requested", args[0], args[1])
	})
}

func newScheduleRemove(c *connector) *cobra.Command {
	return c.command(&cobra.Command{
		Use:     "rm <container> <name>...",
		Aliases: []string{"remove", "delete"},
		Short:   "Remove schedules of a container, and end their runs; their backups stay",
		Example: "  berth schedule rm survival nightly",
		Args:    cobra.MinimumNArgs(2),
	}, func(cmd *cobra.Command, d *daemon, args []string) error {
		return d.each(cmd.Context(), args[1:], func(name string) error {
			if err := d.Schedules().Delete(cmd.Context(), args[0], name); err != nil {
				return fmt.Errorf("%s %s: %w", args[0], name, err)
			}
			return printDone(cmd, d.raw, name, "%s %s: removed", args[0], name)
		})
	})
}

// takeSchedules moves the schedules of a manifest out of its container's fields, and checks them: the daemon
// has no dry run of them.
func (m *manifest) takeSchedules() error {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(m.spec, &fields); err != nil || fields["schedules"] == nil {
		return err
	}
	var f v1.FieldErrors
	d := json.NewDecoder(bytes.NewReader(fields["schedules"]))
	d.DisallowUnknownFields()
	if err := d.Decode(&m.schedules); err != nil {
		return fmt.Errorf("schedules: %w", err)
	}
	if m.schedules == nil {
		m.schedules = map[string]v1.ScheduleSpec{}
	}
	for name, spec := range m.schedules {
		var own v1.FieldErrors
		intent.CheckSchedule(&own, intent.SchedulePolicy{Backups: v1.BackupsConfig{MaxPerVolume: math.MaxInt},
			Has: func(v1.Target) bool { return true }}, m.id, name, &spec)
		for _, e := range own {
			f.Add("schedules."+name+"."+e.Key, "%s", e.Message)
		}
		m.schedules[name] = spec
	}
	delete(fields, "schedules")
	var err error
	m.spec, err = json.Marshal(fields)
	return errors.Join(f.Err(), err)
}

// scheduleChanges returns what has to be done for the schedules of a manifest.
func (a *applier) scheduleChanges(m manifest) (actions []v1.Action, err error) {
	if m.schedules == nil {
		return nil, nil
	}
	list, err := a.d.Schedules().List(a.ctx(), m.id)
	if err != nil && client.StatusOf(err) != http.StatusNotFound { // the container is created first
		return nil, err
	}
	stored := map[string]v1.ScheduleSpec{}
	for _, s := range list {
		stored[s.Name] = s.ScheduleSpec
		if _, stays := m.schedules[s.Name]; !stays {
			actions = append(actions, v1.Action{Action: removeSchedule, Reason: s.Name})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m.schedules)) {
		old, there := stored[name]
		old.Container = m.id
		if !there || !equalJSON(old, m.schedules[name]) {
			actions = append(actions, v1.Action{Action: setSchedule, Reason: name})
		}
	}
	return actions, nil
}

// The actions for schedules, whose reason is the name.
const (
	setSchedule    = "set schedule"
	removeSchedule = "remove schedule"
)

func equalJSON(a, b any) bool {
	x, _ := json.Marshal(a) // plain data: it cannot fail
	y, _ := json.Marshal(b)
	return bytes.Equal(x, y)
}

// applySchedules sets and removes the schedules of a manifest, whose container exists.
func (a *applier) applySchedules(m manifest) (err error) {
	actions, err := a.scheduleChanges(m)
	for _, action := range actions {
		name := action.Reason
		if action.Action == removeSchedule {
			err = a.d.Schedules().Delete(a.ctx(), m.id, name)
		} else {
			_, err = a.d.Schedules().Set(a.ctx(), m.id, name, m.schedules[name])
		}
		if err != nil {
			return fmt.Errorf("schedule %s: %w", name, err)
		}
	}
	return err
}

// completeSchedules offers containers, and the schedules of the first of them behind it.
func (c *connector) completeSchedules(most int) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, text string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return c.offer(1, containerIDs)(cmd, args, text)
		}
		return c.offer(most, func(ctx context.Context, d *daemon) ([]string, error) {
			list, err := d.Schedules().List(ctx, args[0])
			return names(list, func(s v1.ScheduleView) string { return s.Name + "\t" + s.Cron }), err
		})(cmd, args, text)
	}
}
