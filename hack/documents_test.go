package hack_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

type source struct {
	path string
	text []byte
	file *ast.File
}

func sources(t *testing.T, set *token.FileSet) (list []source) {
	t.Helper()
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && d.Name() == ".cache" { // of the Makefile: nothing of ours
			return fs.SkipDir
		}
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(set, path, text, parser.ParseComments)
		list = append(list, source{path, text, file})
		return err
	})
	require.NoError(t, err)
	require.NotEmpty(t, list)
	return list
}

// What a document names: tests, files of the tree, and metrics.
var (
	namedTest   = regexp.MustCompile("`(Test[A-Z][A-Za-z0-9]*)`")
	namedFile   = regexp.MustCompile("`([a-z]+(?:/[a-z0-9_.]+)+\\.(?:go|sh|yaml|service))`")
	namedMetric = regexp.MustCompile("`(berth_[a-z_]+)")
)

func TestDocumentsNameWhatIsThere(t *testing.T) {
	var code strings.Builder
	for _, s := range sources(t, token.NewFileSet()) {
		code.Write(s.text)
	}
	table, err := os.ReadFile("adr/README.md")
	require.NoError(t, err)
	for _, page := range documents(t) {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		for _, name := range find(namedTest, text) {
			require.True(t, strings.Contains(code.String(), "\nfunc "+name+"("), "%s names the test %s, which is not there", page, name)
		}
		for _, name := range find(namedMetric, text) {
			require.True(t, strings.Contains(code.String(), name), "%s names the metric %s, which is not there", page, name)
		}
		for _, name := range find(namedFile, text) {
			require.FileExists(t, filepath.Join("..", name), page)
		}
		if name := filepath.Base(page); strings.HasPrefix(page, "adr/") && name != "README.md" {
			require.True(t, strings.Contains(string(table), "("+name+")"), "adr/README.md has no row for %s", name)
		}
	}
}

// Documents and decisions that code, scripts and documents cite.
var (
	citedDocument = regexp.MustCompile(`[A-Za-z0-9_./-]+\.md\b`)
	citedDecision = regexp.MustCompile(`\bADR (\d{4})\b`)
	goComment     = regexp.MustCompile(`(?m)//.*$`)
	elsewhere     = regexp.MustCompile(`\.\./shared\b|/work/`)
)

// TestCitedDocumentsExist requires that each document and each decision that a file
// of the repository cites is in the repository.
func TestCitedDocumentsExist(t *testing.T) {
	files := tracked(t)
	exists := func(suffix string) bool {
		return slices.ContainsFunc(files, func(path string) bool { return strings.HasSuffix("/"+path, "/"+suffix) })
	}
	for _, file := range files {
		switch filepath.Ext(file) {
		case ".go", ".md", ".sh", ".yaml", ".service", "":
		default:
			continue
		}
		text, err := os.ReadFile(filepath.Join("..", file))
		require.NoError(t, err)
		if filepath.Ext(file) == ".go" { // the strings of tests name files of their own
			text = bytes.Join(goComment.FindAll(text, -1), nil)
		}
		for _, cited := range citedDocument.FindAllString(string(text), -1) {
			if name := strings.TrimPrefix(filepath.Clean("/"+cited), "/"); !exists(name) {
				t.Errorf("%s cites %s, which is not in the repository", file, cited)
			}
		}
		for _, m := range citedDecision.FindAllStringSubmatch(string(text), -1) {
			if found, _ := filepath.Glob("adr/" + m[1] + "-*.md"); len(found) != 1 {
				t.Errorf("%s cites ADR %s, which is not in hack/adr", file, m[1])
			}
		}
		if file != "hack/documents_test.go" && elsewhere.Match(text) {
			t.Errorf("%s cites %s, which is outside the repository", file, elsewhere.Find(text))
		}
	}
}

// tracked returns the paths of the repository's files.
func tracked(t *testing.T) []string {
	t.Helper()
	cmd := exec.Command("git", "ls-files", "--cached", "--others", "--exclude-standard")
	cmd.Dir = ".."
	out, err := cmd.Output()
	require.NoError(t, err)
	files := strings.Split(strings.TrimSpace(string(out)), "\n")
	require.Greater(t, len(files), 100)
	return files
}

// documents are the paths of all Markdown documents of the repository.
func documents(t *testing.T) []string {
	t.Helper()
	pages := []string{readme, "track-record.md"}
	for _, pattern := range []string{"adr/*.md", "docs/*.md", "../.github/*.md", "../.github/ISSUE_TEMPLATE/*.md"} {
		found, err := filepath.Glob(pattern)
		require.NoError(t, err)
		require.NotEmpty(t, found, pattern)
		pages = append(pages, found...)
	}
	return pages
}

func find(what *regexp.Regexp, text []byte) (names []string) {
	for _, m := range what.FindAllSubmatch(text, -1) {
		names = append(names, string(m[1]))
	}
	return names
}
