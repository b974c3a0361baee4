package deb

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// run runs a program in the top directory and returns its output.
func run(t *testing.T, env []string, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = "../.."
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return strings.TrimSpace(string(out))
}

// TestPackage installs, upgrades, removes and purges the package in a Debian 13.
func TestPackage(t *testing.T) {
	dir := t.TempDir()
	root := run(t, nil, "hack/engines.sh", "root", "trixie")
	root = root[strings.LastIndex(root, "\n")+1:] // without the progress of its installation
	packages := []string{}
	for _, version := range []string{"0.0.1", "0.0.2"} {
		file := run(t, []string{"VERSION=" + version, "DEB_COMPRESSION=none"}, "hack/release.sh", "deb", dir)
		require.Equal(t, "berth_"+version, filepath.Base(file)[:len("berth_0.0.0")])
		packages = append(packages, file)
	}
	t.Log(run(t, nil, "unshare", "--mount", "--propagation", "private", "--net", "--pid", "--fork", "--kill-child", "--mount-proc",
		"hack/deb/lifecycle.sh", root, packages[0], packages[1]))
}
