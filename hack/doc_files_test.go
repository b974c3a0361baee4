package hack_test

import (
	"go/token"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// manyFiles is the number of files from which a package comment names files: whoever looks
// for a line of code finds its file in fewer by their names alone.
const manyFiles = 9

// citedFile matches the name of a Go file, or a pattern of names, in a package comment.
var citedFile = regexp.MustCompile(`[a-z0-9_*/]*[a-z0-9_*]\.go\b`)

// TestPackageCommentsNameTheirFiles requires that each file that a package comment names is
// there, and that the comment of a package with many files names at least a third of them.
func TestPackageCommentsNameTheirFiles(t *testing.T) {
	files, comments := map[string][]string{}, map[string]string{}
	for _, s := range sources(t, token.NewFileSet()) {
		if strings.HasSuffix(s.path, "_test.go") {
			continue
		}
		dir := filepath.Dir(s.path)
		files[dir] = append(files[dir], s.path)
		if s.file.Doc != nil {
			comments[dir] = s.file.Doc.Text()
		}
	}
	for dir, list := range files {
		named := map[string]bool{}
		for _, name := range citedFile.FindAllString(comments[dir], -1) {
			found, err := filepath.Glob(filepath.Join(dir, name))
			require.NoError(t, err)
			elsewhere, err := filepath.Glob(filepath.Join("..", name))
			require.NoError(t, err)
			if len(found)+len(elsewhere) == 0 {
				t.Errorf("%s/doc.go names %s, which is not there", dir, name)
			}
			for _, path := range found {
				named[path] = true
			}
		}
		if len(list) >= manyFiles && len(named) < len(list)/3 && !strings.HasPrefix(dir, "../hack/") {
			t.Errorf("%s has %d files, and its doc.go names %d: name a third of them by what they hold", dir, len(list), len(named))
		}
	}
}
