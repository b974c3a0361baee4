package cli

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"berth/api/client"
)

func newApplyCommand(c *connector) *cobra.Command {
	var file string
	var dryRun bool
	cmd := c.command(&cobra.Command{
		Use:   "apply -f <file>",
		Short: "Create or change a container to match a file",
		Long: "Create or change a container to match a file in YAML or JSON with the fields of POST /containers. Absent\n" +
			"fields get their defaults, except that an absent install_script or power stays as it is. Applying the\n" +
			"same file again changes nothing.",
		Example: "  berth apply -f survival.yaml --dry-run\n  berth apply -f survival.yaml\n  berth containers survival -o json | berth apply -f -",
	}, func(cmd *cobra.Command, d *daemon, _ []string) error {
		spec, err := readSpec(file, cmd.InOrStdin())
		if err != nil {
			return err
		}
		if dryRun {
			return printChanges(cmd, d, spec)
		}
		c, err := d.Containers().Apply(cmd.Context(), spec, client.ApplyOptions{})
		if err != nil {
			return fmt.Errorf("%s: %w", spec.InternalID, err)
		}
		return printLine(cmd, d.raw, "%s: applied; state is %s, power is %s", spec.InternalID, c.State, c.Power)
	})
	cmd.Flags().StringVarP(&file, "file", "f", "", "path of the file; - is standard input")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only print what would change")
	_ = cmd.MarkFlagRequired("file") // the flag exists
	return cmd
}

// readSpec reads a container from a file.
func readSpec(file string, stdin io.Reader) (spec client.ContainerSpec, err error) {
	var text []byte
	if file == "-" {
		text, err = io.ReadAll(stdin)
	} else {
		text, err = os.ReadFile(file)
	}
	if err != nil {
		return spec, err
	}
	if spec, err = decodeSpec(text); err != nil {
		return spec, fmt.Errorf("%s: %w", file, err)
	}
	if spec.InternalID == "" {
		return spec, errors.New(file + ": internal_id is required: it names the container")
	}
	return spec, nil
}

func printChanges(cmd *cobra.Command, d *daemon, spec client.ContainerSpec) error {
	changes, err := d.Containers().DryRun(cmd.Context(), spec)
	if err != nil {
		return fmt.Errorf("%s: %w", spec.InternalID, err)
	}
	return show(cmd, d.raw, func(t *table) {
		if !changes.Changed {
			t.row(spec.InternalID + ": nothing would change")
		}
		for _, a := range changes.Actions {
			t.row(spec.InternalID+":", a.Action, a.Reason)
		}
	})
}
