package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

const (
	maxTypos   = 2 // between a word and one that may have been meant
	maxSimilar = 3 // words that are suggested
)

// similar returns the words that may have been meant by text: those that differ by a few
// characters, or begin with it.
func similar(text string, words []string) (meant []string) {
	for _, word := range words {
		// cobra compares names of commands in the same way
		parent, child := &cobra.Command{SuggestionsMinimumDistance: maxTypos}, &cobra.Command{Use: word, Run: func(*cobra.Command, []string) {}}
		parent.AddCommand(child)
		if len(meant) < maxSimilar && len(parent.SuggestionsFor(text)) > 0 {
			meant = append(meant, word)
		}
	}
	return meant
}

// didYouMean returns the end of an error that names what may have been meant, or "".
func didYouMean(meant []string) string {
	if len(meant) == 0 {
		return ""
	}
	return "; did you mean " + strings.Join(meant, ", ") + "?"
}

// noCommand refuses a command that does not exist. It names those that may have been
// meant: of the same level, and of the levels below if they have exactly this name.
func noCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	cmd.SuggestionsMinimumDistance = maxTypos
	meant := pathsBelow(cmd, args[0])
	for _, name := range cmd.SuggestionsFor(args[0]) {
		meant = append(meant, cmd.CommandPath()+" "+name)
	}
	return fmt.Errorf("unknown command %q for %q%s", args[0], cmd.CommandPath(), didYouMean(slices.Compact(meant)))
}

// noArguments refuses arguments of a command that takes none.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return fmt.Errorf("%s takes no arguments, but received %q", cmd.CommandPath(), args[0])
}

// pathsBelow returns the paths of the commands with this name below the subcommands of cmd.
func pathsBelow(cmd *cobra.Command, name string) (paths []string) {
	for _, child := range cmd.Commands() {
		for _, grandchild := range child.Commands() {
			if grandchild.Name() == name {
				paths = append(paths, grandchild.CommandPath())
			}
		}
		paths = append(paths, pathsBelow(child, name)...)
	}
	return paths
}
