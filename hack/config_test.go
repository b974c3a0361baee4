package hack_test

import (
	"go/ast"
	"go/token"
	"reflect"
	"strings"
	"testing"

	v1 "berth/api/v1"
)

// TestConfigurationIsUsed requires of each configuration key that code outside of the
// configuration reads it, and that a test sets it. TestDocumentedKeys in
// cmd/berth/config compares the keys with the documents.
func TestConfigurationIsUsed(t *testing.T) {
	read, set := map[string]bool{}, map[string]bool{}
	for _, s := range sources(t, token.NewFileSet()) {
		names := read
		switch {
		case strings.HasSuffix(s.path, "_test.go"), strings.HasPrefix(s.path, "../hack/"):
			names = set
		case strings.HasPrefix(s.path, "../api/v1/"), strings.HasPrefix(s.path, "../cmd/berth/config/"):
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.SelectorExpr:
				names[n.Sel.Name] = true
			case *ast.BasicLit: // a file or an environment of a test
				for word := range strings.FieldsFuncSeq(strings.ToLower(n.Value), notInKey) {
					set[word] = true
				}
			}
			return true
		})
	}
	for _, f := range leaves(reflect.TypeFor[v1.Config]()) {
		key := f.Tag.Get("json")
		if !read[f.Name] {
			t.Errorf("the key %s (%s of v1.Config) is accepted, and no code reads it", key, f.Name)
		}
		if !set[f.Name] && !set[key] {
			t.Errorf("the key %s (%s of v1.Config) is not set in any test", key, f.Name)
		}
	}
}

func notInKey(r rune) bool { return r != '_' && (r < 'a' || r > 'z') }

// leaves returns the fields of a struct and of the structs in it.
func leaves(t reflect.Type) (list []reflect.StructField) {
	for f := range t.Fields() {
		if f.Type.Kind() == reflect.Struct {
			list = append(list, leaves(f.Type)...)
		} else {
			list = append(list, f)
		}
	}
	return list
}
