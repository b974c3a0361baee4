package openapitest

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	request     = regexp.MustCompile("`(GET|POST|PUT|PATCH|DELETE) (/[^` ?]*)")
	placeholder = regexp.MustCompile(`<[a-z_]+>|\{[a-z_]+\}`)
)

// berths returns the text of hack/docs/panel.md without the columns about wings.
func berths(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/panel.md")
	require.NoError(t, err)
	var b strings.Builder
	wings := false
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		if !strings.HasPrefix(line, "|") {
			wings = false
			b.WriteString(line)
			continue
		}
		if strings.Contains(cells[0], "wings") {
			wings = true
		}
		if wings && len(cells) > 1 {
			cells = cells[1:]
		}
		b.WriteString(strings.Join(cells, " ") + "\n")
	}
	return b.String()
}

// TestPanelsPage requires that each request that the page for authors of panels gives as
// berth's is in the document.
func TestPanelsPage(t *testing.T) {
	known := map[string]bool{}
	for path, item := range Document(t).Paths.Map() {
		for method := range item.Operations() {
			known[method+" "+placeholder.ReplaceAllString(path, "<>")] = true
		}
	}
	requests := request.FindAllStringSubmatch(berths(t), -1)
	require.Greater(t, len(requests), 40)
	for _, r := range requests {
		name := r[1] + " " + placeholder.ReplaceAllString(r[2], "<>")
		require.True(t, known[name], "hack/docs/panel.md names %s, which is not in the document", r[0])
	}
}
