package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDefinitions(t *testing.T) {
	require.Equal(t, "text\n`a.b`\n:   what it is. Default: `5`. A change needs: a reload.\n\n`c`\n:   other. Default: empty. A change needs: a restart.\n\n",
		definitions("text\n| key | default | meaning | changes |\n|---|---|---|---|\n| `a.b` | `5` | what it is | live |\n| `c` | | other | restart |\n"))
}

// TestManual: every key of the configuration and every command is in the pages, and equal
// sources give equal pages.
func TestManual(t *testing.T) {
	t.Chdir("../..")
	t.Setenv("SOURCE_DATE_EPOCH", "1000000000")
	first, second := t.TempDir(), t.TempDir()
	require.NoError(t, write("1.2.3", first))
	require.NoError(t, write("1.2.3", second))
	out, err := exec.Command("diff", "-r", first, second).CombinedOutput()
	require.NoError(t, err, "%s", out)
	page, err := os.ReadFile(filepath.Join(first, "man/man5/berth.yaml.5"))
	require.NoError(t, err)
	require.NotContains(t, string(page), "A change needs: .", "each row of the table has its four cells")
	require.Contains(t, string(page), "server.port")
	require.NotContains(t, string(page), "adr/", "a reference to a document that is not installed")
	doctor, err := os.ReadFile(filepath.Join(first, "man/man1/berth-doctor.1"))
	require.NoError(t, err)
	require.Contains(t, string(doctor), "berth 1.2.3")
	require.Contains(t, string(doctor), "Sep 2001")
	for _, file := range []string{"bash-completion/completions/berth", "zsh/site-functions/_berth", "fish/vendor_completions.d/berth.fish"} {
		text, err := os.ReadFile(filepath.Join(first, file))
		require.NoError(t, err)
		require.True(t, strings.Contains(string(text), "berth"), file)
	}
}
