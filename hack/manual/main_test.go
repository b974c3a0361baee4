package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestManual: the pages have the version and the date of the commit, and equal sources give equal pages.
func TestManual(t *testing.T) {
	t.Chdir("../..")
	t.Setenv("SOURCE_DATE_EPOCH", "1000000000")
	first, second := t.TempDir(), t.TempDir()
	require.NoError(t, write("1.2.3", first))
	require.NoError(t, write("1.2.3", second))
	out, err := exec.Command("diff", "-r", first, second).CombinedOutput()
	require.NoError(t, err, "%s", out)
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
