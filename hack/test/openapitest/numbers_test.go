package openapitest

import (
	"go/ast"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"berth/api"
)

// numbers are the constants whose values the document or panel.md state.
var numbers = []struct {
	file, name, value string
	texts             []string
}{
	{"controller/remote/sender.go", "maxBatch", "100", []string{"up to 100 transitions", "maxItems: 100,", "Up to 100 transitions"}},
	{"controller/remote/sender.go", "minWait", "time.Second", []string{"after 1 s", "retries after 1 s"}},
	{"controller/remote/sender.go", "maxWait", "5 * time.Minute", []string{"doubling to 5 min"}},
	{"controller/remote/sender.go", "minOperatorWait", "30 * time.Second", []string{"waits at least 30 s", "after 30 s or more"}},
	{"controller/remote/sender.go", "maxRetryAfter", "time.Hour", []string{"up to 1 h", "up to an hour"}},
	{"controller/remote/sender.go", "freeRefusals", "3", []string{"After 3 in a row", "After three in a row"}},
	{"controller/remote/client.go", "requestTimeout", "30 * time.Second", []string{"a timeout (30 s)", "no response in 30 s"}},
	{"api/server/socket.go", "readLimit", "64 << 10", []string{"may have 64 KiB", "larger than 64 KiB"}},
	{"api/server/socket.go", "pingEvery", "25 * time.Second", []string{"pings every 25 s"}},
	{"api/server/socket.go", "pongWait", "60 * time.Second", []string{"silent for 60 s"}},
	{"api/server/socket_messages.go", "defaultTail", "150", []string{"default: 150", "150 lines by default"}},
	{"api/server/socket_messages.go", "maxTail", "10_000", []string{"maximum: 10000"}},
	{"api/server/events.go", "defaultEvents", "1000", []string{"default: 1000}"}},
	{"api/server/events.go", "maxEvents", "10_000", []string{"maximum: 10000"}},
	{"api/intent/check_container.go", "minMemory", "6 << 20", []string{"at least 6 MiB"}},
	{"api/intent/check_container.go", "minCPU", "0.01", []string{"at least 0.01"}},
	{"api/intent/check_container.go", "maxCommand", "128_000", []string{"At most 128,000 bytes"}},
	{"api/intent/check_container.go", "maxImage", "512", []string{"at most 512 bytes"}},
	{"api/intent/check_container.go", "maxPattern", "4096", []string{"At most 4,096 bytes"}},
	{"api/intent/check_container.go", "maxStop", "time.Hour", []string{"At most 1h"}},
	{"api/intent/check_container.go", "maxInstall", "30 * 24 * time.Hour", []string{"at most 30d"}},
	{"api/intent/check_lists.go", "maxList", "1000", []string{"maxItems: 1000", "maxProperties: 1000"}},
}

// TestNumbers fails if a number of the code changes and its texts stay.
func TestNumbers(t *testing.T) {
	prose, err := os.ReadFile("../../docs/panel.md")
	require.NoError(t, err)
	all := strings.Join(strings.Fields(string(api.Document)+string(prose)), " ")
	for _, n := range numbers {
		require.Equal(t, n.value, source(t, "../../../"+n.file, n.name), "%s of %s: change its texts %q too", n.name, n.file, n.texts)
		for _, text := range n.texts {
			require.True(t, strings.Contains(all, text), "%s of %s is %s: %q is neither in api/openapi.yaml nor in hack/docs/panel.md", n.name, n.file, n.value, text)
		}
	}
}

// source returns the text of a constant's value.
func source(t *testing.T, path, name string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	for _, group := range constants(t, path) {
		i := slices.IndexFunc(group, func(one *ast.ValueSpec) bool { return one.Names[0].Name == name })
		if i >= 0 {
			value := group[i].Values[0]
			return string(text[value.Pos()-1 : value.End()-1])
		}
	}
	t.Fatalf("%s has no constant %s", path, name)
	return ""
}
