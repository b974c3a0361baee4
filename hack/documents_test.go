package hack_test

import (
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

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
			require.Contains(t, string(table), "("+name+")", "the table of decisions")
		}
	}
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
