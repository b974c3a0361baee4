package hack_test

import (
	"bytes"
	"go/ast"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// bannedText holds what nobody writes in comments, strings, documents and
// scripts, and what to write instead.
var bannedText = []struct{ pattern, instead string }{
	{`\b(says?|said|saying|tells?|told|telling) (whether|why|how|that|what)\b`, "reports whether, returns why"},
	{`\b(told|tells|telling)\b`, "reported, sent, returned"},
	{`\bwish(es|ed)?\b`, "request, desired state"},
	{`\bis no (state|answer|verdict|error) that\b`, "name the fact and the remedy"},
	{`\bis no state\b`, "cannot wait for ...; wait for ..."},
	{`\bhalf an object\b`, "spec record, status record"},
	{`\bunder way\b`, "in flight"},
	{`\bnewborn\b`, "new"},
	{`\bstrangers?\b`, "unknown"},
	{`\bof which\b|\bthat which\b`, "name the thing"},
	{`^(Who|What) (has|have|is|may|was|can|does|wants|asks|holds)\b[^?]*$`, "begin with the subject"},
	{`\. (Who|What) (has|have|is|may|was|can|does|wants|asks|holds)\b[^?.]*\.`, "begin with the subject"},
	{`\bholds from\b`, "applies from"},
	{`\bheed(s|ed)?\b`, "observe"},
	{`\b(unfolds?|unfolded|unfolding)\b`, "extract"},
	{`\bended by itself\b`, "exited"},
	{`\bthe trouble of\b|\bin trouble\b`, "the last error of"},
}

type ban struct {
	*regexp.Regexp
	instead string
}

// TestLanguage keeps the relapses that CONTRIBUTING's section Language names out of
// comments, strings and documents.
func TestLanguage(t *testing.T) {
	var bans []ban
	for _, b := range bannedText {
		bans = append(bans, ban{regexp.MustCompile(`(?i)` + b.pattern), b.instead})
	}
	set := token.NewFileSet()
	for _, s := range sources(t, set) {
		if filepath.Base(s.path) == "language_test.go" {
			continue
		}
		checkGo(t, set, s, bans)
	}
	for path, text := range prose(t) {
		for i, line := range strings.Split(string(text), "\n") {
			checkText(t, bans, path, i+1, line)
		}
	}
}

func checkGo(t *testing.T, set *token.FileSet, s source, bans []ban) {
	t.Helper()
	for _, group := range s.file.Comments {
		at := set.Position(group.Pos())
		checkText(t, bans, at.Filename, at.Line, strings.ReplaceAll(group.Text(), "\n", " "))
	}
	ast.Inspect(s.file, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			at := set.Position(lit.Pos())
			checkText(t, bans, at.Filename, at.Line, strings.Trim(lit.Value, "`\""))
		}
		return true
	})
}

func checkText(t *testing.T, bans []ban, path string, line int, text string) {
	t.Helper()
	for _, b := range bans {
		if found := b.FindString(text); found != "" {
			t.Errorf("%s:%d: %q: write it in the field's words (%s)", path, line, found, b.instead)
		}
	}
}

// prose returns the Markdown, YAML and shell files by their path.
func prose(t *testing.T) map[string][]byte {
	t.Helper()
	list := map[string][]byte{}
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == ".git" || d.Name() == ".cache" || d.Name() == "bin" || d.Name() == "node_modules") {
			return filepath.SkipDir
		}
		switch filepath.Ext(path) {
		case ".md", ".yaml", ".yml", ".sh", ".service":
		default:
			return nil
		}
		if path == "../hack/docs/language.md" { // it lists the words
			return nil
		}
		text, err := os.ReadFile(path)
		list[path] = bytes.TrimSpace(text)
		return err
	})
	require.NoError(t, err)
	return list
}
