package hack_test

import (
	"go/ast"
	"go/token"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// methodSets are the methods and embedded types of every type of the module. The
// key of a type is its folder and name, such as "api/server.Server".
type methodSets struct {
	methods  map[string]map[string]bool
	embedded map[string][]string
}

// TestMethodsOfTypes counts the methods of each type, those promoted from embedded
// types of this module included. Helpers of tests may embed one another: of theirs
// only the declared methods count.
func TestMethodsOfTypes(t *testing.T) {
	m := methodSets{methods: map[string]map[string]bool{}, embedded: map[string][]string{}}
	helpers := map[string]bool{}
	for _, s := range sources(t, token.NewFileSet()) {
		for _, name := range m.add(s) {
			helpers[name] = strings.HasSuffix(s.path, "_test.go") || strings.HasPrefix(name, "hack/")
		}
	}
	for name := range m.embedded {
		n := len(m.methods[name])
		if !helpers[name] {
			n = len(m.all(name, map[string]bool{}))
		}
		if n > maxMethods {
			t.Errorf("%s has %d methods, more than %d", name, n, maxMethods)
		}
	}
}

func TestPromotedMethodsCount(t *testing.T) {
	m := methodSets{
		methods:  map[string]map[string]bool{"p.A": {"One": true, "Two": true}, "p.B": {"Two": true, "Three": true}, "p.C": {}},
		embedded: map[string][]string{"p.C": {"p.A", "p.B", "p.C"}},
	}
	require.Len(t, m.all("p.C", map[string]bool{}), 3)
}

// all returns the names of the methods of a type. seen are the types that were
// visited already.
func (m methodSets) all(name string, seen map[string]bool) map[string]bool {
	names := map[string]bool{}
	if seen[name] {
		return names
	}
	seen[name] = true
	for method := range m.methods[name] {
		names[method] = true
	}
	for _, inner := range m.embedded[name] {
		for method := range m.all(inner, seen) {
			names[method] = true
		}
	}
	return names
}

// add adds the methods and types of a file, and returns the keys of the types.
func (m methodSets) add(s source) (types []string) {
	folder := strings.TrimPrefix(filepath.Dir(s.path), "../")
	imports := map[string]string{}
	for _, i := range s.file.Imports {
		target := strings.Trim(i.Path.Value, `"`)
		name := path.Base(target)
		if i.Name != nil {
			name = i.Name.Name
		}
		imports[name] = strings.TrimPrefix(target, "berth/")
	}
	key := func(kind ast.Expr) string { return typeKey(folder, imports, kind) }
	ast.Inspect(s.file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if n.Recv != nil {
				m.addMethod(key(n.Recv.List[0].Type), n.Name.Name)
			}
		case *ast.TypeSpec:
			types = append(types, folder+"."+n.Name.Name)
			m.addType(folder+"."+n.Name.Name, n, key)
		}
		return true
	})
	return types
}

func (m methodSets) addMethod(kind, name string) {
	if m.methods[kind] == nil {
		m.methods[kind] = map[string]bool{}
	}
	m.methods[kind][name] = true
}

func (m methodSets) addType(name string, spec *ast.TypeSpec, key func(ast.Expr) string) {
	m.embedded[name] = append(m.embedded[name], "")
	var fields []*ast.Field
	switch kind := spec.Type.(type) {
	case *ast.StructType:
		fields = kind.Fields.List
	case *ast.InterfaceType:
		fields = kind.Methods.List
	}
	for _, f := range fields {
		if len(f.Names) == 0 {
			m.embedded[name] = append(m.embedded[name], key(f.Type))
			continue
		}
		if _, is := f.Type.(*ast.FuncType); is && isInterface(spec) {
			m.addMethod(name, f.Names[0].Name)
		}
	}
}

func isInterface(spec *ast.TypeSpec) bool {
	_, is := spec.Type.(*ast.InterfaceType)
	return is
}

// typeKey returns the key of a type, or "" if it has none.
func typeKey(folder string, imports map[string]string, kind ast.Expr) string {
	switch k := kind.(type) {
	case *ast.StarExpr:
		return typeKey(folder, imports, k.X)
	case *ast.IndexExpr:
		return typeKey(folder, imports, k.X)
	case *ast.IndexListExpr:
		return typeKey(folder, imports, k.X)
	case *ast.Ident:
		return folder + "." + k.Name
	case *ast.SelectorExpr:
		if in, is := k.X.(*ast.Ident); is {
			return imports[in.Name] + "." + k.Sel.Name
		}
	}
	return ""
}
