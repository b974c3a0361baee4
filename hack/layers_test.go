package hack_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// allowed says which packages of this module each package may import; the
// table is that of the design. A trailing /... stands for all packages below.
var allowed = map[string]string{
	"api":                    "",
	"api/v1":                 "",
	"api/auth":               "api/v1 store",
	"api/intent":             "api/v1 store",
	"api/stream":             "api/v1 store store/journal",
	"api/server":             "api api/v1 api/auth api/intent api/stream api/server/edge api/server/ws store",
	"api/server/edge":        "api/v1",
	"api/server/ws":          "api/v1 api/auth api/stream store",
	"store":                  "api/v1 store/kv",
	"store/kv":               "",
	"store/journal":          "api/v1",
	"controller":             "",
	"controller/container":   "api/v1 controller runtime store",
	"controller/console":     "api/v1 controller runtime",
	"controller/stats":       "api/v1 controller runtime",
	"controller/volume":      "api/v1 controller store",
	"controller/port":        "api/v1 controller store",
	"controller/token":       "api/v1 controller store",
	"controller/event":       "api/v1 controller store",
	"controller/remote":      "api/v1 controller store",
	"runtime":                "",
	"runtime/docker":         "runtime",
	"runtime/fake":           "runtime",
	"runtime/conform":        "runtime",
	"runtime/cgroup":         "runtime",
	"runtime/volume":         "api/v1 runtime runtime/volume/archive runtime/volume/quota",
	"runtime/volume/archive": "api/v1 runtime",
	"runtime/volume/quota":   "api/v1 runtime",
	"runtime/firewall":       "runtime",
	"runtime/hostmount":      "runtime",

	"api/client":         "api/v1",
	"cmd/berth/yamlfile": "api/v1",
	"cmd/berth/config":   "api/v1 api/auth cmd/berth/yamlfile",
	"cmd/berth/cli":      "api/client api/intent api/v1 cmd/berth/config cmd/berth/yamlfile",
}

// only names the packages that may import a library.
var only = map[string]string{
	"github.com/docker/docker":    "runtime/docker",
	"github.com/dgraph-io/badger": "store/kv",
	"github.com/gofiber/fiber":    "api/server api/server/edge api/server/ws",
	"github.com/gofiber/contrib":  "api/server/ws",
	"github.com/valyala/fasthttp": "api/server/edge",
	"k8s.io/client-go":            "controller",
	"github.com/klauspost":        "runtime/volume/archive",
	"github.com/dsnet/compress":   "runtime/volume/archive",

	"github.com/spf13/cobra": "cmd/berth cmd/berth/cli",
	"gopkg.in/yaml":          "cmd/berth/yamlfile",
}

type pkg struct {
	path    string
	imports []string
}

func packages(t *testing.T) (list []pkg) {
	t.Helper()
	cmd := exec.Command("go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "berth/...")
	cmd.Dir = ".."
	out, err := cmd.Output()
	require.NoError(t, err)
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		list = append(list, pkg{strings.TrimPrefix(f[0], "berth/"), f[1:]})
	}
	require.Greater(t, len(list), 15)
	return list
}

func TestPackagesImportOnlyWhatTheDesignAllows(t *testing.T) {
	for _, p := range packages(t) {
		if p.path == "cmd/berth" || strings.HasPrefix(p.path, "hack") {
			continue
		}
		may, known := allowed[p.path]
		if !known {
			t.Errorf("%s has no row in allowed", p.path)
			continue
		}
		for _, imp := range p.imports {
			ours, is := strings.CutPrefix(imp, "berth/")
			if imp == "berth/api" {
				ours, is = "api", true
			}
			if is && !slices.Contains(strings.Fields(may), ours) {
				t.Errorf("%s may not import %s", p.path, ours)
			}
		}
	}
}

func TestLibrariesStayInTheirPackage(t *testing.T) {
	for _, p := range packages(t) {
		for lib, owner := range only {
			foreign := func(imp string) bool { return strings.HasPrefix(imp, lib) }
			if !slices.Contains(strings.Fields(owner), p.path) && !strings.HasPrefix(p.path, "hack") && slices.ContainsFunc(p.imports, foreign) {
				t.Errorf("%s may not import %s: only %s may", p.path, lib, owner)
			}
		}
	}
}

func TestTopLevelIsAsDesigned(t *testing.T) {
	cmd := exec.Command("git", "ls-files")
	cmd.Dir = ".."
	out, err := cmd.Output()
	require.NoError(t, err)
	want := []string{"Makefile", "README.md", "api", "cmd", "controller", "go.mod", "go.sum", "hack", "runtime", "store"}
	var got []string
	for file := range strings.Lines(string(out)) {
		top, _, _ := strings.Cut(strings.TrimSpace(file), "/")
		if !strings.HasPrefix(top, ".") && !slices.Contains(got, top) {
			got = append(got, top)
		}
	}
	slices.Sort(got)
	require.Equal(t, want, got)
}
