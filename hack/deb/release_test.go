package deb

import (
	"debug/buildinfo"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"berth/api/ui"
)

// TestReleaseIsReproducible builds the last commit in two directories: every file must be
// the same. Then it looks into the files. BERTH_LONG builds all architectures, not only this
// machine's, and compresses the packages as a release does.
func TestReleaseIsReproducible(t *testing.T) {
	const version = "9.8.7"
	archs, compression := []string{run(t, nil, "go", "env", "GOHOSTARCH")}, "none"
	if os.Getenv("BERTH_LONG") != "" {
		archs, compression = []string{"amd64", "arm64"}, "xz"
	}
	var sums []string
	var out string
	clone := run(t, nil, "git", "rev-parse", "--show-toplevel")
	for range 2 {
		from := clone // the second one is a clone of the first, so that both have the same commit
		clone = filepath.Join(t.TempDir(), "clone")
		run(t, nil, "git", "clone", "--quiet", "--no-local", "--depth=1", "file://"+from, clone)
		out = filepath.Join(t.TempDir(), "dist")
		run(t, []string{"VERSION=" + version, "ARCHS=" + strings.Join(archs, " "), "DEB_COMPRESSION=" + compression}, filepath.Join(clone, "hack/release.sh"), "release", out)
		text, err := os.ReadFile(filepath.Join(out, "SHA256SUMS"))
		require.NoError(t, err)
		sums = append(sums, string(text))
	}
	require.Equal(t, sums[0], sums[1])
	t.Log(sums[0])
	commit := run(t, nil, "git", "-C", clone, "rev-parse", "HEAD")
	for _, arch := range archs {
		binary := filepath.Join(out, "berth_"+version+"_linux_"+arch)
		info, err := buildinfo.ReadFile(binary)
		require.NoError(t, err)
		settings := map[string]string{}
		for _, s := range info.Settings {
			settings[s.Key] = s.Value
		}
		require.Equal(t, arch, settings["GOARCH"])
		require.Equal(t, "0", settings["CGO_ENABLED"], "it is static")
		require.Equal(t, commit, settings["vcs.revision"])
		require.Equal(t, "false", settings["vcs.modified"])
		require.Contains(t, sums[0], filepath.Base(binary)+".cdx.json")
		require.Contains(t, sums[0], "berth_"+version+"_"+arch+".deb")
		require.Contains(t, sums[0], "berth-keeper_"+version+"_linux_"+arch)
		page, err := ui.Libraries()
		require.NoError(t, err)
		checkBill(t, binary, len(info.Deps), len(page))
		bridge := filepath.Join(out, "berth-wings_"+version+"_linux_"+arch)
		info, err = buildinfo.ReadFile(bridge)
		require.NoError(t, err)
		checkBill(t, bridge, len(info.Deps), 0)
		require.Contains(t, sums[0], filepath.Base(bridge)+"\n")
	}
	native := filepath.Join(out, "berth_"+version+"_linux_"+run(t, nil, "go", "env", "GOHOSTARCH"))
	require.Contains(t, run(t, nil, native, "version", "--client"), version+" (commit "+commit+", go")
	run(t, nil, "sh", "-c", "cd "+out+" && sha256sum --check --strict SHA256SUMS")
}

// checkBill checks that the SBOM of a binary names each of its modules.
func checkBill(t *testing.T, binary string, modules, page int) {
	t.Helper()
	text, err := os.ReadFile(binary + ".cdx.json")
	require.NoError(t, err)
	var bill struct {
		Format     string `json:"bomFormat"`
		Metadata   struct{ Component struct{ Version string } }
		Components []struct{ Name, Version, Purl string }
	}
	require.NoError(t, json.Unmarshal(text, &bill))
	require.Equal(t, "CycloneDX", bill.Format)
	require.Equal(t, "9.8.7", bill.Metadata.Component.Version)
	require.Len(t, bill.Components, modules+1+page, "and Go itself, and the libraries of the page")
	kinds := map[string]int{}
	for _, c := range bill.Components {
		kind, ok := strings.CutSuffix(c.Purl, "/"+c.Name+"@"+strings.ReplaceAll(c.Version, "+", "%2B"))
		require.True(t, ok, c.Purl)
		kinds[kind]++
		require.NotEmpty(t, c.Version, c.Name)
	}
	want := map[string]int{"pkg:golang": modules + 1}
	if page > 0 {
		want["pkg:npm"] = page
	}
	require.Equal(t, want, kinds)
}
