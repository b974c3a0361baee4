package hack_test

import (
	"go/token"
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTrackRecordNamesTests: a fault whose test is gone or renamed is not tested.
func TestTrackRecordNamesTests(t *testing.T) {
	there := map[string]bool{}
	for _, s := range sources(t, token.NewFileSet()) {
		for _, name := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllSubmatch(s.text, -1) {
			there[string(name[1])] = true
		}
	}
	text, err := os.ReadFile("track-record.md")
	require.NoError(t, err)
	named := regexp.MustCompile("`(Test\\w+)`").FindAllSubmatch(text, -1)
	require.NotEmpty(t, named)
	for _, name := range named {
		require.True(t, there[string(name[1])], "track-record.md names %s, and there is no such test", name[1])
	}
}
