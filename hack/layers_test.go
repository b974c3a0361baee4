package hack_test

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// allowed lists which packages of this module each package may import, as the table
// in hack/docs/architecture.md does.
var allowed = map[string]string{
	"api":                       "",
	"api/v1":                    "",
	"api/auth":                  "api/v1 api/limit store",
	"api/limit":                 "",
	"api/intent":                "api/v1 store",
	"api/stream":                "api/v1 store store/journal",
	"api/server":                "api api/v1 api/auth api/egg api/intent api/limit api/stream api/server/edge api/ui store",
	"api/server/edge":           "api/v1 api/limit",
	"api/sftp":                  "api/v1 api/auth api/intent api/limit store",
	"api/ui":                    "",
	"store":                     "api/v1 store/kv",
	"store/kv":                  "",
	"store/journal":             "api/v1",
	"controller":                "",
	"controller/jobs":           "controller",
	"controller/container":      "api/v1 controller controller/jobs runtime store",
	"controller/console":        "api/v1 controller runtime",
	"controller/stats":          "api/v1 controller runtime",
	"controller/volume":         "api/v1 controller store",
	"controller/port":           "api/v1 controller runtime store",
	"controller/token":          "api/v1 controller store",
	"controller/image":          "api/v1 controller runtime store",
	"controller/event":          "api/v1 controller store",
	"controller/download":       "api/v1 controller controller/jobs store",
	"controller/remote":         "api/v1 controller store",
	"controller/schedule":       "api/v1 controller controller/backup controller/jobs store",
	"controller/transfer":       "api/v1 controller controller/jobs store",
	"runtime":                   "",
	"runtime/docker":            "runtime runtime/keeper",
	"runtime/kubernetes":        "runtime runtime/keeper",
	"runtime/fake":              "runtime",
	"runtime/conform":           "runtime",
	"runtime/cgroup":            "runtime",
	"runtime/volume":            "api/v1 runtime/volume/archive runtime/volume/backup runtime/volume/configfile runtime/volume/fsys",
	"runtime/volume/configfile": "",
	"runtime/volume/archive":    "api/v1",
	"runtime/volume/backup":     "api/v1 runtime/volume/fsys",
	"runtime/volume/fsys":       "",
	"runtime/firewall":          "runtime",
	"runtime/fetch":             "",
	"runtime/hostmount":         "runtime",
	"runtime/blob":              "",
	"runtime/keeper":            "runtime",

	"controller/backup": "api/v1 controller controller/jobs store",

	"api/client":       "api/v1",
	"api/egg":          "api/v1",
	"cmd/keeper":       "",
	"cmd/berth/config": "api/v1 api/auth",
	"cmd/berth/doctor": "api/client api/v1 cmd/berth/config runtime runtime/blob runtime/docker runtime/firewall runtime/kubernetes runtime/volume store",
	"cmd/berth/cli":    "api/client api/egg api/intent api/v1 cmd/berth/config cmd/berth/doctor",

	"cmd/berth-wings":          "api/client api/egg api/v1 cmd/berth-wings/config cmd/berth-wings/importer cmd/berth-wings/node cmd/berth-wings/panel",
	"cmd/berth-wings/config":   "api/v1",
	"cmd/berth-wings/panel":    "api/egg api/v1",
	"cmd/berth-wings/node":     "api/client api/egg api/limit api/v1 cmd/berth-wings/config cmd/berth-wings/panel",
	"cmd/berth-wings/importer": "api/client api/egg api/v1 cmd/berth-wings/config cmd/berth-wings/node cmd/berth-wings/panel",
}

// only names the packages that may import a library.
var only = map[string]string{
	"github.com/docker/docker":    "runtime/docker cmd/berth-wings/importer",
	"github.com/dgraph-io/badger": "store/kv",
	"github.com/gofiber/fiber":    "api/server api/server/edge",
	"github.com/pkg/sftp":         "api/sftp",
	"golang.org/x/crypto":         "api/auth api/sftp cmd/berth cmd/berth-wings/node",
	"github.com/gofiber/contrib":  "api/server",
	"github.com/valyala/fasthttp": "api/server/edge",
	"k8s.io/client-go":            "controller runtime/kubernetes", // controller uses the work queue alone
	"k8s.io/api":                  "runtime/kubernetes",
	"oras.land/oras-go":           "runtime/kubernetes", // resolves tags: a node pulls, and reports why not as a text alone
	"github.com/klauspost":        "runtime/volume/archive runtime/volume/backup cmd/berth-wings/node",
	"github.com/bmatcuk":          "runtime/volume/backup",
	"github.com/dsnet/compress":   "runtime/volume/archive",
	"github.com/minio/minio-go":   "runtime/blob",
	"github.com/robfig/cron":      "api/v1", // its parser: api/intent checks with it, controllers compute with it

	"github.com/golang-jwt/jwt":    "cmd/berth-wings/node",
	"github.com/prometheus/procfs": "cmd/berth-wings/node",

	"github.com/spf13/cobra": "cmd/berth cmd/berth/cli cmd/berth-wings",
	"go.yaml.in/yaml/v4":     "api/egg runtime/volume/configfile", // keeps the order of maps
	"sigs.k8s.io/yaml":       "cmd/berth/cli cmd/berth/config cmd/berth-wings/config",
}

// packageRow matches a row of the table of packages: path and imports.
var packageRow = regexp.MustCompile("(?m)^\\| `([a-z0-9/-]+)` \\|[^|]+\\|([a-z0-9/ -]*)\\|$")

type pkg struct {
	path    string
	imports []string
}

func packages(t *testing.T) (list []pkg) {
	t.Helper()
	cmd := exec.Command("go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "berth/...")
	cmd.Dir, cmd.Stderr = "..", t.Output()
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
			t.Errorf("%s has no row in allowed of hack/layers_test.go, and in hack/docs/architecture.md", p.path)
			continue
		}
		for _, imp := range p.imports {
			ours, is := strings.CutPrefix(imp, "berth/")
			if imp == "berth/api" {
				ours, is = "api", true
			}
			if is && !slices.Contains(strings.Fields(may), ours) {
				t.Errorf("%s may not import %s: its row in allowed of hack/layers_test.go lists %q", p.path, ours, may)
			}
		}
		for row := range strings.FieldsSeq(may) {
			if !slices.Contains(p.imports, "berth/"+row) {
				t.Errorf("%s does not import %s, which its row in allowed of hack/layers_test.go lists", p.path, row)
			}
		}
	}
}

// TestPackagesAreDocumented compares the table of hack/docs/architecture.md with allowed.
func TestPackagesAreDocumented(t *testing.T) {
	text, err := os.ReadFile("docs/architecture.md")
	require.NoError(t, err)
	documented := map[string]string{}
	for _, row := range packageRow.FindAllStringSubmatch(string(text), -1) {
		documented[row[1]] = strings.TrimSpace(row[2])
	}
	delete(documented, "cmd/berth")
	for path, imports := range allowed {
		got, is := documented[path]
		if !is || got != imports {
			t.Errorf("docs/architecture.md: the row of %s must list %q as its imports, not %q", path, imports, got)
		}
		delete(documented, path)
	}
	for path := range documented {
		t.Errorf("docs/architecture.md has a row for %s, which is not in allowed", path)
	}
}

func TestLibrariesStayInTheirPackage(t *testing.T) {
	for _, p := range packages(t) {
		for lib, importers := range only {
			foreign := func(imp string) bool { return strings.HasPrefix(imp, lib) }
			if !slices.Contains(strings.Fields(importers), p.path) && !strings.HasPrefix(p.path, "hack") && slices.ContainsFunc(p.imports, foreign) {
				t.Errorf("%s may not import %s: only %s may", p.path, lib, importers)
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
