package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/spf13/cobra"

	v1 "berth/api/v1"
	"berth/cmd/berth/config"
)

func newConfigCommand(l *config.Loader) *cobra.Command {
	return withSubcommands(&cobra.Command{Use: "config", Short: "Write, check and show the configuration",
		Example: "  berth config init\n  berth config check && systemctl reload berth"},
		newConfigInit(l), newConfigCheck(l), newConfigShow(l), newConfigCurl(l))
}

func newConfigInit(l *config.Loader) *cobra.Command {
	var force bool
	cmd := withoutNames(&cobra.Command{
		Use:   "init [path]",
		Short: "Write a commented configuration with a fresh token",
		Long: "Write a commented configuration with a fresh token, mode 0600. An existing file is never overwritten:\n" +
			"with --force it is renamed to <path>.bak.",
		Example: "  berth config init\n  berth config init --force ~/berth.yaml",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			path := l.Path()
			if len(args) == 1 {
				path = args[0]
			}
			err := config.Write(path, l.DataPath(), force)
			if errors.Is(err, fs.ErrExist) {
				return fmt.Errorf("%s exists: it is not overwritten (--force keeps it as %s.bak)", path, path)
			}
			if err != nil {
				return err
			}
			return answer(cmd, map[string]string{"path": path}, "wrote "+path)
		},
	})
	cmd.Flags().BoolVar(&force, "force", false, "write a new file and keep the old one as <path>.bak")
	return cmd
}

// report is the result of `berth config check`.
type report struct {
	Path     string         `json:"path"`
	Valid    bool           `json:"valid"`
	Faults   v1.FieldErrors `json:"faults"`
	Warnings []string       `json:"warnings"`
}

func newConfigCheck(l *config.Loader) *cobra.Command {
	return withOverrides(l, withoutNames(&cobra.Command{
		Use:   "check [path]",
		Short: "Report every error in the configuration",
		Long: "Report every error and warning in the configuration: the file, overridden by the environment, overridden\n" +
			"by the flags. The command fails if there is an error.",
		Example: "  berth config check\n  berth config check new.yaml",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				l.File = args[0]
			}
			got, err := l.Load()
			r := report{Path: l.Path(), Valid: err == nil, Faults: v1.FieldErrors{}, Warnings: append([]string{}, got.Warnings...)}
			if err != nil && !errors.As(err, &r.Faults) {
				r.Faults = v1.FieldErrors{{Message: err.Error()}}
			}
			if err := answer(cmd, r, r.text()); err != nil || r.Valid {
				return err
			}
			return ErrReported
		},
	}))
}

// text returns the report with one line for each error and warning.
func (r report) text() string {
	text := ""
	for _, f := range r.Faults {
		text += "fault: " + f.String() + "\n"
	}
	for _, w := range r.Warnings {
		text += "warning: " + w + "\n"
	}
	if r.Valid {
		return text + r.Path + " is valid"
	}
	if len(r.Faults) == 1 {
		return text + r.Path + " has 1 fault"
	}
	return text + fmt.Sprintf("%s has %d faults", r.Path, len(r.Faults))
}

// answer prints data as JSON or YAML if -o requests it, and text otherwise.
func answer(cmd *cobra.Command, data any, text string) error {
	if isText(cmd) {
		_, err := io.WriteString(cmd.OutOrStdout(), text+"\n")
		return err
	}
	raw, err := json.Marshal(data)
	if err != nil {
		return err
	}
	return printRaw(cmd, raw)
}
