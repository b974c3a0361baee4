package hack_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFaultsFitTheCode requires that the text that each fault of faults.sh replaces is
// in its file once. Whether a test sees the fault is what make faults tries.
func TestFaultsFitTheCode(t *testing.T) {
	script, err := os.ReadFile("faults.sh")
	require.NoError(t, err)
	unescape := strings.NewReplacer(`\n`, "\n", `\t`, "\t")
	file, text, faults := "", "", 0
	for line := range strings.Lines(string(script)) {
		if target, is := strings.CutPrefix(line, "@ "); is {
			file, _, _ = strings.Cut(target, " |")
			content, err := os.ReadFile(filepath.Join("..", file))
			require.NoError(t, err)
			text = string(content)
			continue
		}
		name, change, is := strings.Cut(strings.TrimSuffix(line, "\n"), " | ")
		from, _, changes := strings.Cut(change, " => ")
		if file == "" || !is || !changes {
			continue
		}
		faults++
		if n := strings.Count(text, unescape.Replace(from)); n != 1 {
			t.Errorf("the fault %q of hack/faults.sh replaces a text that is %d times in %s: adapt it to the code", name, n, file)
		}
	}
	require.Greater(t, faults, 50)
}
