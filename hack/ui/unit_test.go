package ui_test

import (
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// run runs a program in this directory.
func run(t *testing.T, program string, args ...string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// TestUnits runs the tests of the modules that need no browser.
func TestUnits(t *testing.T) { t.Parallel(); run(t, "./npm.sh", "node", "--test", "unit/") }

// TestLint checks the format and the rules of the page's code.
func TestLint(t *testing.T) { t.Parallel(); run(t, "./lint.sh") }

// TestVendorIsCurrent compares the vendored files with the packages of package-lock.json.
func TestVendorIsCurrent(t *testing.T) {
	t.Parallel()
	run(t, "./npm.sh", "node", "vendor.mjs", "--check")
}
