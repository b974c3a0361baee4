package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/cpuguy83/go-md2man/v2/md2man"
	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"berth/cmd/berth/cli"
)

// configuration is the document that becomes berth.yaml(5).
const configuration = "hack/docs/configuration.md"

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
	for _, sub := range []string{"man/man1", "man/man5", "bash-completion/completions", "zsh/site-functions", "fish/vendor_completions.d"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			return err
		}
	}
	header := &doc.GenManHeader{Title: "BERTH", Section: "1", Source: "berth " + version, Manual: "berth"}
	if err := doc.GenManTree(root, header, filepath.Join(dir, "man/man1")); err != nil {
		return err
	}
	if err := writeConfiguration(filepath.Join(dir, "man/man5/berth.yaml.5")); err != nil {
		return err
	}
	return writeCompletions(root, dir)
}

// writeConfiguration writes the man page of the configuration file.
func writeConfiguration(path string) error {
	text, err := os.ReadFile(configuration)
	if err != nil {
		return err
	}
	_, body, _ := strings.Cut(string(text), "\n") // without the title
	body = definitions(link.ReplaceAllString(body, ""))
	page := "berth.yaml 5 \"\" \"berth\" \"berth\"\n==================================\n\n# NAME\n\nberth.yaml - configuration of berth\n\n# DESCRIPTION\n\n" + body
	return os.WriteFile(path, md2man.Render([]byte(page)), 0o644)
}

// link matches a reference to another document, with its brackets.
var link = regexp.MustCompile(` \(\[[^]]*\]\([^)]*\)\)`)

// definitions replaces the rows of a table of keys by definitions: a terminal is too
// narrow for the table.
func definitions(body string) string {
	var b strings.Builder
	for line := range strings.Lines(body) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		switch {
		case !strings.HasPrefix(line, "|"):
			b.WriteString(line)
		case len(cells) == 4 && strings.Contains(cells[0], "`"):
			for i := range cells {
				cells[i] = strings.TrimSpace(cells[i])
			}
			if cells[1] == "" {
				cells[1] = "empty"
			}
			fmt.Fprintf(&b, "%s\n:   %s. Default: %s. A change needs: %s.\n\n", cells[0], cells[2], cells[1],
				map[string]string{"live": "a reload", "restart": "a restart"}[cells[3]])
		}
	}
	return b.String()
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
