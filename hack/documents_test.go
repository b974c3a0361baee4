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

// What a document names: tests, files of the tree, metrics and other documents.
var (
	namedTest   = regexp.MustCompile("`(Test[A-Z][A-Za-z0-9]*)`")
	namedFile   = regexp.MustCompile("`([a-z]+(?:/[a-z0-9_.]+)+\\.(?:go|sh|yaml|service))`")
	namedMetric = regexp.MustCompile("`(berth_[a-z_]+)")
	namedPage   = regexp.MustCompile(`\]\(([^):#]+)\)`)
)

func TestDocumentsNameWhatIsThere(t *testing.T) {
	var code strings.Builder
	for _, s := range sources(t, token.NewFileSet()) {
		code.Write(s.text)
	}
	pages, err := filepath.Glob("adr/*.md")
	require.NoError(t, err)
	require.Greater(t, len(pages), 20)
	table, err := os.ReadFile("adr/README.md")
	require.NoError(t, err)
	for _, page := range append(pages, readme, "track-record.md") {
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
		for _, name := range find(namedPage, text) {
			require.FileExists(t, filepath.Join(filepath.Dir(page), name), page)
		}
		if name := filepath.Base(page); strings.HasPrefix(page, "adr/") && name != "README.md" {
			require.Contains(t, string(table), "("+name+")", "the table of decisions")
		}
	}
}

func find(what *regexp.Regexp, text []byte) (names []string) {
	for _, m := range what.FindAllSubmatch(text, -1) {
		names = append(names, string(m[1]))
	}
	return names
}
