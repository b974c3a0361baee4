package cli

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/spf13/cobra"

	"berth/api/client"
	v1 "berth/api/v1"
)

func newApplyCommand(c *connector) *cobra.Command {
	var files *[]string
	var dryRun bool
	var w *waiting
	cmd := c.command(&cobra.Command{
		Use:   "apply -f <file>...",
		Short: "Create or change containers to match files",
		Long: "Create or change containers to match files. Absent fields get their defaults, except that an absent\n" +
			"install_script or power stays as it is. Applying the same file again changes nothing. Containers that\n" +
			"no file describes stay as they are.\n\n" + manifestHelp + "\n\n" +
			"Everything is validated by the daemon before anything is changed. For each container a line reports\n" +
			"created, configured or unchanged. A conflict with the current state, such as a port of another\n" +
			"container, does not keep the command from the others.",
		Example: "  berth apply -f survival.yaml --dry-run\n  berth apply -f survival.yaml -f lobby.yaml\n  berth apply -f containers/\n" +
			"  berth containers survival -o yaml | berth apply -f -",
	}, func(cmd *cobra.Command, d *daemon, _ []string) error {
		list, err := readManifests(*files, cmd.InOrStdin())
		if err != nil {
			return err
		}
		a := &applier{cmd: cmd, d: d, list: list, changes: map[string]client.Changes{}, waiting: w}
		if dryRun {
			return a.each(a.preview)
		}
		if err := a.validate(); err != nil {
			return err
		}
		return errors.Join(a.each(a.apply), a.wait())
	})
	files, w = addFileFlag(cmd), addWaitFlags(cmd)
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only print what would change")
	cmd.MarkFlagsMutuallyExclusive("dry-run", "wait")
	return cmd
}

// applier applies manifests.
type applier struct {
	cmd     *cobra.Command
	d       *daemon
	list    []manifest
	changes map[string]client.Changes // by internal id, of the dry runs that succeeded

	waiting          *waiting
	running, stopped []string // ids that were applied, by their desired power
}

func (a *applier) ctx() context.Context { return a.cmd.Context() }

// each calls do for each manifest in turn, and adds its place to its error.
func (a *applier) each(do func(m manifest) error) error {
	byName := map[string]manifest{}
	for _, m := range a.list {
		byName[m.String()] = m
	}
	return each(a.ctx(), a.d, names(a.list, manifest.String), func(name string) error {
		if err := do(byName[name]); err != nil {
			return byName[name].fail(err)
		}
		return nil
	})
}

// validate makes a dry run of every manifest. A conflict is no error: it may be one
// with a container that an earlier manifest changes.
func (a *applier) validate() error {
	return a.each(func(m manifest) error {
		err := a.dryRun(m)
		if err != nil && codeOf(err) == exitConflict {
			return nil
		}
		return err
	})
}

func (a *applier) dryRun(m manifest) error {
	changes, err := a.d.Containers().DryRun(a.ctx(), m.spec)
	if err == nil {
		a.changes[m.spec.InternalID] = changes
	}
	return err
}

func (a *applier) apply(m manifest) error {
	id := m.spec.InternalID
	if _, known := a.changes[id]; !known {
		if err := a.dryRun(m); err != nil {
			return err
		}
	}
	c, err := a.d.Containers().Apply(a.ctx(), m.spec, client.ApplyOptions{})
	if err != nil {
		return err
	}
	if c.Power == v1.PowerOn {
		a.running = append(a.running, id)
	} else {
		a.stopped = append(a.stopped, id)
	}
	if a.waiting.enabled && !isText(a.cmd) {
		return nil // wait prints the container as it is then
	}
	return printDone(a.cmd, a.d.raw, id, "%s %s", m, result(a.changes[id]))
}

// wait waits until the applied containers are installed, and run if they should.
func (a *applier) wait() error {
	if !a.waiting.enabled {
		return nil
	}
	var failed error
	if len(a.stopped) > 0 {
		failed = a.waiting.wait(a.cmd, a.d, a.stopped, goal{"installed", []v1.Phase{v1.Ready, v1.Exit}})
	}
	if len(a.running) > 0 {
		failed = errors.Join(failed, a.waiting.wait(a.cmd, a.d, a.running, goalOf(client.Start)))
	}
	return failed
}

// preview prints what applying a manifest would change.
func (a *applier) preview(m manifest) error {
	if err := a.dryRun(m); err != nil {
		return err
	}
	changes := a.changes[m.spec.InternalID]
	if !isText(a.cmd) && format(a.cmd) != formatName {
		return printPlanned(a.cmd, m, changes)
	}
	return show(a.cmd, nil, []string{m.spec.InternalID}, func(t *table) {
		t.line(m.String() + " " + result(changes) + " (dry run)")
		for _, action := range changes.Actions {
			t.line("  " + action.Action + ": " + action.Reason)
		}
	})
}

// planned is what applying a manifest would change.
type planned struct {
	Container string `json:"container"`
	Source    string `json:"source"` // file and document
	Result    string `json:"result"` // created, configured or unchanged
	client.Changes
}

// printPlanned prints one line of JSON, or a YAML document.
func printPlanned(cmd *cobra.Command, m manifest, changes client.Changes) error {
	raw, err := json.Marshal(planned{m.spec.InternalID, m.source, result(changes), changes})
	if err != nil {
		return err
	}
	return printNext(cmd, raw)
}

// result returns what applying changes does, in the words of kubectl.
func result(c client.Changes) string {
	for _, action := range c.Actions {
		if action.Action == "create" {
			return "created"
		}
	}
	if c.Changed {
		return "configured"
	}
	return "unchanged"
}
