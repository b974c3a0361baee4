package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"berth/cmd/berth/cli"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: go run ./hack/manual VERSION DIRECTORY")
		os.Exit(2)
	}
	if err := write(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "manual:", err)
		os.Exit(1)
	}
}

func write(version, dir string) error {
	root := cli.NewRoot(cli.Options{Version: version})
	root.DisableAutoGenTag = true // it has a date of its own
	for _, sub := range []string{"man/man1", "bash-completion/completions", "zsh/site-functions", "fish/vendor_completions.d"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			return err
		}
	}
	header := &doc.GenManHeader{Title: "BERTH", Section: "1", Source: "berth " + version, Manual: "berth"}
	if err := doc.GenManTree(root, header, filepath.Join(dir, "man/man1")); err != nil {
		return err
	}
	return writeCompletions(root, dir)
}

func writeCompletions(root *cobra.Command, dir string) error {
	if err := root.GenBashCompletionFileV2(filepath.Join(dir, "bash-completion/completions/berth"), true); err != nil {
		return err
	}
	if err := root.GenZshCompletionFile(filepath.Join(dir, "zsh/site-functions/_berth")); err != nil {
		return err
	}
	return root.GenFishCompletionFile(filepath.Join(dir, "fish/vendor_completions.d/berth.fish"), true)
}
