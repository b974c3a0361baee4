package cli

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"

	"github.com/spf13/cobra"
	"gopkg.in/yaml.v3"
)

func newApplyCommand(c *connector) *cobra.Command {
	var file string
	var dryRun bool
	cmd := c.command(&cobra.Command{
		Use:   "apply -f <file>",
		Short: "Make a container what a file says",
		Long: "Make a container what a file says, in YAML or JSON: the body of POST /containers. It is created if there\n" +
			"is none. Fields that are absent get their defaults; applied twice, the second time changes nothing.",
		Example: "  berth apply -f survival.yaml --dry-run\n  berth apply -f survival.yaml\n  berth containers survival -o json | berth apply -f -",
	}, func(cmd *cobra.Command, api *client, _ []string) error {
		id, body, err := readSpec(file, cmd.InOrStdin())
		if err != nil {
			return err
		}
		if dryRun {
			return api.dryRun(cmd, id, body)
		}
		var s state
		raw, err := api.call(cmd.Context(), http.MethodPut, containerPath(id), body, &s)
		if err != nil {
			return fmt.Errorf("%s: %w", id, err)
		}
		return printLine(cmd, raw, "%s: applied; state is %s, power is %s", id, s.State, s.Power)
	})
	cmd.Flags().StringVarP(&file, "file", "f", "", "the file; - is standard input")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only tell what would be done")
	_ = cmd.MarkFlagRequired("file") // it exists
	return cmd
}

// readSpec reads a container from a file.
func readSpec(file string, stdin io.Reader) (id string, body map[string]any, err error) {
	var text []byte
	if file == "-" {
		text, err = io.ReadAll(stdin)
	} else {
		text, err = os.ReadFile(file)
	}
	if err != nil {
		return "", nil, err
	}
	if err := yaml.Unmarshal(text, &body); err != nil { // JSON is YAML
		return "", nil, fmt.Errorf("%s: %w", file, err)
	}
	id, _ = body["internal_id"].(string)
	if id == "" {
		return "", nil, errors.New(file + ": internal_id is required: it names the container")
	}
	return id, body, nil
}

func (c *client) dryRun(cmd *cobra.Command, id string, body any) error {
	var result struct {
		Changed bool
		Actions []struct{ Action, Reason string }
	}
	raw, err := c.call(cmd.Context(), http.MethodPut, containerPath(id)+"?dry_run=true", body, &result)
	if err != nil {
		return fmt.Errorf("%s: %w", id, err)
	}
	return show(cmd, raw, func(t *table) {
		if !result.Changed {
			t.row(id + ": nothing would change")
		}
		for _, a := range result.Actions {
			t.row(id+":", a.Action, a.Reason)
		}
	})
}
