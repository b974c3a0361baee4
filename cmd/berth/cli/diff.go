package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"berth/api/client"
	"berth/api/intent"
	v1 "berth/api/v1"
)

func newDiffCommand(c *connector) *cobra.Command {
	var files *[]string
	cmd := withoutNames(c.command(&cobra.Command{
		Use:   "diff -f <file>...",
		Short: "Print the changes that apply would make",
		Long: "Print the changes that apply would make: for each container the actions, and the difference of its fields. The\n" +
			"daemon does not return install_script, so only an action mentions its change.\n\n" + manifestHelp + "\n\n" +
			"The exit code is 0 if nothing would change, 1 if something would, and greater than 1 after an error.",
		Example: "  berth diff -f survival.yaml\n  berth diff -f containers/ && echo nothing would change",
	}, func(cmd *cobra.Command, d *daemon, _ []string) error {
		err := diffAll(cmd, d, *files)
		if err != nil && !errors.Is(err, ErrReported) && codeOf(err) == exitError {
			return withCode(exitUsage, d.explain(err)) // 1 is a difference
		}
		return err
	}))
	files = addFileFlag(cmd)
	return cmd
}

// diffAll prints the differences of all manifests. If there are any, the error is
// ErrReported.
func diffAll(cmd *cobra.Command, d *daemon, files []string) error {
	list, err := readManifests(files, cmd.InOrStdin())
	if err != nil {
		return err
	}
	a := &applier{cmd: cmd, d: d, list: list, changes: map[string]client.Changes{}}
	different := false
	err = a.each(func(m manifest) error {
		if err := a.dryRun(m); err != nil {
			return err
		}
		changes := a.changes[m.spec.InternalID]
		different = different || changes.Changed
		if !isText(cmd) {
			return printPlanned(cmd, m, changes)
		}
		if !changes.Changed {
			return nil
		}
		return printDiff(cmd, d, m, changes)
	})
	if err == nil && different {
		return withCode(exitError, ErrReported)
	}
	return err
}

// printDiff prints the actions and the changed fields of one manifest, as a patch.
func printDiff(cmd *cobra.Command, d *daemon, m manifest, changes client.Changes) error {
	live, err := d.Containers().Get(cmd.Context(), m.spec.InternalID)
	exists := client.StatusOf(err) != http.StatusNotFound
	if err != nil && exists {
		return err
	}
	var before string
	next := m.spec
	if exists {
		if before, err = specYAML(live.ContainerSpec); err != nil {
			return err
		}
		next = inherit(next, live.ContainerSpec)
	}
	after, err := specYAML(next)
	if err != nil {
		return err
	}
	var text strings.Builder
	for _, action := range changes.Actions {
		fmt.Fprintf(&text, "# %s: %s: %s\n", m, action.Action, action.Reason)
	}
	text.Write(diff.Diff(m.String()+" (live)", []byte(before), m.String()+" ("+m.source+")", []byte(after)))
	_, err = fmt.Fprint(cmd.OutOrStdout(), text.String())
	return err
}

// inherit returns spec with the fields that apply takes from the live container.
func inherit(spec, live client.ContainerSpec) client.ContainerSpec {
	spec.Power = cmp.Or(spec.Power, live.Power)
	spec.InstallScript = nil
	if spec.ReadOnlyRoot == nil {
		spec.ReadOnlyRoot = live.ReadOnlyRoot // the daemon's default, which it alone knows
	}
	if strings.HasPrefix(live.VolumeID, spec.VolumeID) {
		spec.VolumeID = live.VolumeID
	}
	return spec
}

// specYAML returns a spec as YAML, in the form in which the daemon stores it: with
// defaults and canonical addresses, and without empty fields.
func specYAML(spec client.ContainerSpec) (string, error) {
	script := spec.InstallScript
	tty := spec.TTY == nil || *spec.TTY
	spec.TTY = &tty
	text, err := json.Marshal(spec)
	if err != nil {
		return "", err
	}
	var stored v1.ContainerSpec
	if err := json.Unmarshal(text, &stored); err != nil {
		return "", err
	}
	var faults v1.FieldErrors // the daemon has reported those that it has
	intent.CheckContainer(&faults, intent.Policy{}, spec.InternalID, &stored)
	if text, err = json.Marshal(stored); err != nil {
		return "", err
	}
	canonical := client.ContainerSpec{InternalID: spec.InternalID}
	if err := json.Unmarshal(text, &canonical); err != nil {
		return "", err
	}
	canonical.InstallScript = script
	canonical.Power = cmp.Or(canonical.Power, v1.PowerOff)
	if text, err = json.Marshal(canonical); err != nil {
		return "", err
	}
	out, err := yaml.JSONToYAML(text)
	return string(out), err
}
