package openapitest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/fasthttp/websocket"
	"github.com/stretchr/testify/require"

	"berth/api/stream"
	v1 "berth/api/v1"
	"berth/controller/container"
)

// enum returns the values of a component, sorted.
func enum(t *testing.T, schema string) (values []string) {
	t.Helper()
	component := Document(t).Components.Schemas[schema]
	require.NotNil(t, component, schema)
	for _, value := range component.Value.Enum {
		values = append(values, value.(string))
	}
	slices.Sort(values)
	return values
}

// events returns the values that tell the members of a union apart, sorted.
func events(t *testing.T, union string) []string {
	t.Helper()
	schema := Document(t).Components.Schemas[union].Value
	require.Len(t, schema.OneOf, len(schema.Discriminator.Mapping), union)
	for event, member := range schema.Discriminator.Mapping {
		name := member.Ref[strings.LastIndex(member.Ref, "/")+1:]
		require.Equal(t, []any{event}, Document(t).Components.Schemas[name].Value.Properties["event"].Value.Enum, name)
	}
	return slices.Sorted(maps.Keys(schema.Discriminator.Mapping))
}

func sorted[T ~string](values ...T) (list []string) {
	for _, v := range values {
		list = append(list, string(v))
	}
	slices.Sort(list)
	return list
}

func TestEnums(t *testing.T) {
	require.Equal(t, sorted(v1.Phases()...), enum(t, "State"))
	require.Equal(t, sorted(v1.Scopes()...), enum(t, "Scope"))
	require.Equal(t, sorted(v1.PowerOn, v1.PowerOff), enum(t, "Power"))
	require.Equal(t, sorted(v1.RestartNever, v1.RestartOnFailure, v1.RestartAlways), enum(t, "RestartMode"))
	require.Equal(t, sorted(v1.Targets()...), enum(t, "BackupTarget"))
	require.Equal(t, sorted(v1.RestoreReplace, v1.RestoreMerge), enum(t, "RestoreMode"))
	require.Equal(t, sorted(v1.JobPending, v1.JobRunning, v1.JobCompleted, v1.JobFailed, v1.JobDeleting), enum(t, "BackupState"))
	require.Equal(t, sorted(v1.JobPending, v1.JobRunning, v1.JobCompleted, v1.JobFailed), enum(t, "RestoreState"))
	stored := []string{v1.EventState, v1.EventMessage, v1.EventBackup, v1.EventRestore, v1.EventPull, v1.EventSchedule, v1.EventTransfer}
	require.Equal(t, sorted(stored...), events(t, "Event"))
	require.Equal(t, sorted(append(stored, stream.EventGap)...), events(t, "WebhookEvent"))
	require.Equal(t, sorted(append(stored, stream.EventGap, stream.EventConsole, stream.EventLogs, stream.EventStats)...),
		events(t, "SocketMessage"))
	require.Equal(t, switchCases(t, "../../../api/server", "m.Event"), events(t, "ClientMessage"))
	firewall := Document(t).Components.Schemas["Port"].Value.Properties["firewall"].Value.Properties["state"].Value
	format := Document(t).Components.Schemas["CompressRequest"].Value.Properties["format"].Value
	require.Len(t, format.Enum, len(v1.Formats())+2, "empty and null are the default")
	for _, f := range v1.Formats() {
		require.Contains(t, format.Enum, any(string(f)))
	}
	require.ElementsMatch(t, []any{v1.FirewallApplied, v1.FirewallPending, v1.FirewallUnavailable, v1.FirewallDisabled}, firewall.Enum)
}

// TestErrorCodes checks the codes that package v1 defines. A test of package server
// compares the others, and their statuses.
func TestErrorCodes(t *testing.T) {
	listed := enum(t, "ErrorCode")
	for _, code := range typedConstants(t, "../../../api/v1/error.go", "Code") {
		require.Contains(t, listed, code)
	}
	description := Document(t).Components.Schemas["ErrorCode"].Value.Description
	for _, code := range listed {
		require.Regexp(t, "(?m)^- `"+code+"` \\([45][0-9][0-9]\\): [a-zA-Z]", description)
	}
}

func TestConditionTypes(t *testing.T) {
	const file = "../../../api/v1/container.go"
	types := append(constantsBeside(t, file, "ImageAvailable"), constantsBeside(t, file, "StoreWritable")...)
	require.Equal(t, sorted(types...), enum(t, "ConditionType"))
}

// TestConditionReasons compares the enum with the words that the controller of
// containers and the view of conditions contain.
func TestConditionReasons(t *testing.T) {
	reasons := map[string]bool{v1.DiskPressure: true, v1.StartPatternNotMatched: true}
	for _, reason := range constantsBeside(t, "../../../api/v1/container.go", "ReasonImageNotFound") {
		reasons[reason] = true
	}
	word := regexp.MustCompile(`^[A-Z][a-z]+([A-Z][a-z]+)*$`)
	for _, dir := range []string{"../../../controller/container", "../../../api/server"} {
		inspect(t, dir, func(path string, n ast.Node) {
			text, is := literal(n)
			if is && word.MatchString(text) && text != "Failed" && (!strings.Contains(path, "api/") || filepath.Base(path) == "containers.go") {
				reasons[text] = true
			}
		})
	}
	for _, s := range container.Steps() {
		var name strings.Builder
		for part := range strings.FieldsSeq(s.Name) {
			name.WriteString(strings.ToUpper(part[:1]) + part[1:])
		}
		reasons[name.String()+"Failed"] = true
	}
	require.Equal(t, slices.Sorted(maps.Keys(reasons)), enum(t, "ConditionReason"))
	description := Document(t).Components.Schemas["ConditionReason"].Value.Description
	for reason := range reasons {
		if !strings.HasSuffix(reason, "Failed") {
			require.Regexp(t, `\b`+reason+`\b`, description)
		}
	}
}

func TestCloseCodes(t *testing.T) {
	codes := map[string]int{
		"CloseNormalClosure": websocket.CloseNormalClosure, "CloseGoingAway": websocket.CloseGoingAway,
		"ClosePolicyViolation": websocket.ClosePolicyViolation, "CloseMessageTooBig": websocket.CloseMessageTooBig,
		"CloseInternalServerErr": websocket.CloseInternalServerErr, "CloseTryAgainLater": websocket.CloseTryAgainLater,
	}
	used := map[float64]bool{}
	inspect(t, "../../../api/server", func(path string, n ast.Node) {
		selector, is := n.(*ast.SelectorExpr)
		if !is || !strings.HasPrefix(selector.Sel.Name, "Close") || selector.Sel.Name == "CloseMessage" {
			return
		}
		if from, is := selector.X.(*ast.Ident); is && from.Name == "websocket" {
			require.NotZero(t, codes[selector.Sel.Name], "%s: %s", path, selector.Sel.Name)
			used[float64(codes[selector.Sel.Name])] = true
		}
	})
	listed := map[float64]bool{}
	for _, code := range Document(t).Components.Schemas["SocketClose"].Value.Properties["code"].Value.Enum {
		listed[code.(float64)] = true
	}
	require.Equal(t, listed, used)
}

// inspect calls see with every node of the code below dir, tests left out.
func inspect(t *testing.T, dir string, see func(path string, n ast.Node)) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err == nil {
			ast.Inspect(file, func(n ast.Node) bool { see(filepath.ToSlash(path), n); return true })
		}
		return err
	})
	require.NoError(t, err)
}

// literal returns the text of a string literal.
func literal(n ast.Node) (string, bool) {
	lit, is := n.(*ast.BasicLit)
	if !is || lit.Kind != token.STRING {
		return "", false
	}
	text, err := strconv.Unquote(lit.Value)
	return text, err == nil
}

// switchCases returns the strings of the cases of the switches over an expression, sorted.
func switchCases(t *testing.T, dir, expression string) (values []string) {
	t.Helper()
	inspect(t, dir, func(_ string, n ast.Node) {
		s, is := n.(*ast.SwitchStmt)
		if !is {
			return
		}
		if on, is := s.Tag.(*ast.SelectorExpr); !is || on.X.(*ast.Ident).Name+"."+on.Sel.Name != expression {
			return
		}
		for _, c := range s.Body.List {
			for _, value := range c.(*ast.CaseClause).List {
				if text, is := literal(value); is {
					values = append(values, text)
				}
			}
		}
	})
	slices.Sort(values)
	return values
}

// typedConstants returns the values of a file's constants of a type.
func typedConstants(t *testing.T, path, typeName string) (values []string) {
	t.Helper()
	for _, spec := range constants(t, path) {
		for _, one := range spec {
			if of, is := one.Type.(*ast.Ident); is && of.Name == typeName {
				text, _ := literal(one.Values[0])
				values = append(values, text)
			}
		}
	}
	require.NotEmpty(t, values)
	return values
}

// constantsBeside returns the values of the constant declaration that has a name, sorted.
func constantsBeside(t *testing.T, path, name string) (values []string) {
	t.Helper()
	for _, spec := range constants(t, path) {
		if !slices.ContainsFunc(spec, func(one *ast.ValueSpec) bool { return one.Names[0].Name == name }) {
			continue
		}
		for _, one := range spec {
			text, _ := literal(one.Values[0])
			values = append(values, text)
		}
	}
	slices.Sort(values)
	return values
}

// constants returns the constants of a file, by declaration.
func constants(t *testing.T, path string) (list [][]*ast.ValueSpec) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	require.NoError(t, err)
	for _, d := range file.Decls {
		declaration, is := d.(*ast.GenDecl)
		if !is || declaration.Tok != token.CONST {
			continue
		}
		var group []*ast.ValueSpec
		for _, spec := range declaration.Specs {
			group = append(group, spec.(*ast.ValueSpec))
		}
		list = append(list, group)
	}
	return list
}
