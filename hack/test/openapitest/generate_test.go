package openapitest

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// exampleJSON is one example of the document.
type exampleJSON struct {
	Name, Schema string
	Value        any
}

// examples returns the JSON examples of all bodies, errors included, by name.
func examples(t *testing.T) (list []exampleJSON) {
	t.Helper()
	add := func(c content) {
		for i, value := range exampleValues(c.MediaType) {
			name := fmt.Sprintf("%s %d", c.name, i)
			list = append(list, exampleJSON{name, strings.TrimPrefix(c.Schema.Ref, "#/components/schemas/"), value})
		}
	}
	for name, operation := range operations(t) {
		for _, c := range contents(name, operation) {
			if c.json {
				add(c)
			}
		}
	}
	for name, response := range Document(t).Components.Responses {
		add(content{name: name, MediaType: response.Value.Content["application/json"]})
	}
	return list
}

// TestGeneratedTypes generates Go's types and a client with oapi-codegen, and runs the
// test of testdata/roundtrip with them. That is a module of its own, so that berth
// depends on none of it.
func TestGeneratedTypes(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS("testdata/roundtrip")))
	list := examples(t)
	require.Greater(t, len(list), 80)
	text, err := json.Marshal(list)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "examples.json"), text, 0o644))

	var names []string
	for _, e := range list {
		names = append(names, e.Schema)
	}
	slices.Sort(names)
	types := "package roundtrip\n\nvar types = map[string]func() any{\n"
	for _, name := range slices.Compact(names) {
		types += fmt.Sprintf("%q: func() any { return new(%s) },\n", name, name)
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "types_test.go"), []byte(types+"}\n"), 0o644))

	document, err := filepath.Abs("../../../api/openapi.yaml")
	require.NoError(t, err)
	run(t, dir, "go", "tool", "oapi-codegen", "-config", "config.yaml", document)
	run(t, dir, "go", "test", "-count=1", "./...")
}

func run(t *testing.T, dir string, command ...string) {
	t.Helper()
	c := exec.Command(command[0], command[1:]...)
	c.Dir = dir
	output, err := c.CombinedOutput()
	require.NoError(t, err, "%s:\n%s", strings.Join(command, " "), output)
}
