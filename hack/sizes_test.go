package hack_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The limits of sizes.
const (
	maxFile      = 400
	maxFunc      = 60
	maxNesting   = 3
	maxInterface = 6
	maxMethods   = 20 // of a type, promoted ones included
	maxDoc       = 25
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

func TestSizes(t *testing.T) {
	set := token.NewFileSet()
	for _, s := range sources(t, set) {
		if n := bytes.Count(s.text, []byte("\n")); n > maxFile {
			t.Errorf("%s has %d lines, more than %d", s.path, n, maxFile)
		}
		for _, d := range s.file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				checkFunc(t, set, f)
			}
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if i, ok := n.(*ast.InterfaceType); ok && i.Methods.NumFields() > maxInterface {
				t.Errorf("%s: an interface has %d methods, more than %d", set.Position(i.Pos()), i.Methods.NumFields(), maxInterface)
			}
			return true
		})
	}
}

func checkFunc(t *testing.T, set *token.FileSet, f *ast.FuncDecl) {
	t.Helper()
	from, to := set.Position(f.Pos()), set.Position(f.End())
	if n := to.Line - from.Line + 1; n > maxFunc {
		t.Errorf("%s: %s has %d lines, more than %d", from, f.Name.Name, n, maxFunc)
	}
	if f.Body == nil {
		return
	}
	if n := nesting(f.Body); n > maxNesting {
		t.Errorf("%s: %s nests %d deep, more than %d", from, f.Name.Name, n, maxNesting)
	}
}

// nesting is how deep if, for, switch and select stand in each other. An
// "else if" is as deep as its if; a function literal begins anew.
func nesting(root ast.Node) (deepest int) {
	var walk func(n ast.Node, depth int)
	walk = func(root ast.Node, depth int) {
		deepest = max(deepest, depth)
		ast.Inspect(root, func(n ast.Node) bool {
			if n == nil || n == root {
				return true
			}
			switch n := n.(type) {
			case *ast.FuncLit:
				walk(n.Body, 0)
				return false
			case *ast.IfStmt:
				if outer, ok := root.(*ast.IfStmt); ok && outer.Else == n {
					walk(n, depth)
					return false
				}
				walk(n, depth+1)
				return false
			case *ast.ForStmt, *ast.RangeStmt, *ast.SwitchStmt, *ast.TypeSwitchStmt, *ast.SelectStmt:
				walk(n, depth+1)
				return false
			}
			return true
		})
	}
	walk(root, 0)
	return deepest
}

func TestPackageComments(t *testing.T) {
	set := token.NewFileSet()
	docs := map[string]int{}
	for _, s := range sources(t, set) {
		dir := filepath.Dir(s.path)
		if strings.HasSuffix(s.path, "_test.go") {
			continue
		}
		docs[dir] += 0
		if s.file.Doc == nil {
			continue
		}
		docs[dir]++
		if n := len(s.file.Doc.List); n > maxDoc && dir != "../store" { // the store's draws its key space
			t.Errorf("%s: the package comment has %d lines, more than %d", s.path, n, maxDoc)
		}
		if filepath.Base(s.path) != "doc.go" {
			t.Errorf("%s: the package comment belongs in doc.go", s.path)
		}
	}
	for dir, n := range docs {
		if n != 1 {
			t.Errorf("%s has %d package comments, not one", dir, n)
		}
	}
}
