package cli

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"
)

// The values of --color.
const (
	colorAuto   = "auto" // on a terminal, unless NO_COLOR is set
	colorAlways = "always"
	colorNever  = "never"
)

// resolveColor sets --color to always or never: auto depends on the output and on the
// environment (https://no-color.org).
func resolveColor(cmd *cobra.Command, env func(name string) string) error {
	flag := cmd.Flag("color")
	if flag == nil {
		return nil
	}
	value := flag.Value.String()
	switch {
	case value == colorAlways || value == colorNever:
		return nil
	case value != colorAuto:
		return fmt.Errorf("--color must be auto, always or never, not %q", value)
	case terminalOf(cmd.OutOrStdout()) == nil || env("NO_COLOR") != "" || env("TERM") == "dumb":
		return flag.Value.Set(colorNever)
	}
	return flag.Value.Set(colorAlways)
}

// colored reports whether the output has colours.
func colored(cmd *cobra.Command) bool {
	f := cmd.Flag("color")
	return f != nil && f.Value.String() == colorAlways
}

// stateStyle returns the colour of a container's state.
func stateStyle(state string) string {
	const red, green, yellow = "31", "32", "33"
	switch {
	case state == "running":
		return green
	case state == "failed":
		return red
	case slices.Contains([]string{"installing", "starting", "stopping", "deleting"}, state):
		return yellow
	}
	return ""
}
