package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/spf13/cobra"

	v1 "berth/api/v1"
)

// errReported ends the process with status 1 when everything was said already.
var errReported = errors.New("faults were reported")

// newConfigCommand is `berth config`.
func newConfigCommand(l *loader) *cobra.Command {
	return group(&cobra.Command{Use: "config", Short: "Write, check and show the configuration"},
		newConfigInit(l), newConfigCheck(l), newConfigShow(l), newConfigCurl(l))
}

func newConfigInit(l *loader) *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use:   "init [path]",
		Short: "Write a commented configuration with a fresh token",
		Long: "Write a commented configuration with a fresh token, mode 0600. A file that stands there is never\n" +
			"overwritten; with --force it is kept beside the new one, as <path>.bak.",
		Args:         cobra.MaximumNArgs(1),
		SilenceUsage: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			path := l.path()
			if len(args) == 1 {
				path = args[0]
			}
			err := writeConfig(path, l.dataPath(), force)
			if errors.Is(err, fs.ErrExist) {
				return fmt.Errorf("%s exists: it is not overwritten (--force keeps it as %s.bak)", path, path)
			}
			if err != nil {
				return err
			}
			return answer(cmd, map[string]string{"path": path}, "wrote "+path)
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "write anew, and keep the old file as <path>.bak")
	return cmd
}

// report is what `berth config check` found.
type report struct {
	Path     string         `json:"path"`
	Valid    bool           `json:"valid"`
	Faults   v1.FieldErrors `json:"faults"`
	Warnings []string       `json:"warnings"`
}

func newConfigCheck(l *loader) *cobra.Command {
	return l.keyFlags(&cobra.Command{
		Use:          "check [path]",
		Short:        "Name everything that is wrong with the configuration",
		Args:         cobra.MaximumNArgs(1),
		SilenceUsage: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				l.configFlag = args[0]
			}
			got, err := l.load()
			r := report{Path: l.path(), Valid: err == nil, Faults: v1.FieldErrors{}, Warnings: append([]string{}, got.warnings...)}
			if err != nil && !errors.As(err, &r.Faults) {
				r.Faults = v1.FieldErrors{{Message: err.Error()}}
			}
			if err := answer(cmd, r, r.text()); err != nil || r.Valid {
				return err
			}
			cmd.SilenceErrors = true
			return errReported
		},
	})
}

// text is the report, a line for each thing.
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

// answer prints data as JSON where -o json asks for it, else text.
func answer(cmd *cobra.Command, data any, text string) error {
	if f := cmd.Flag("output"); f == nil || f.Value.String() != "json" {
		_, err := io.WriteString(cmd.OutOrStdout(), text+"\n")
		return err
	}
	encoder := json.NewEncoder(cmd.OutOrStdout())
	encoder.SetIndent("", "  ")
	return encoder.Encode(data)
}
