package journal

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLostCheckpointHidesNoLines has lines of a container and no valid checkpoint.
func TestLostCheckpointHidesNoLines(t *testing.T) {
	for _, text := range []string{"", "c1", "c1 open\n", "garbage text here\n"} {
		dir := t.TempDir()
		j := open(t, in(dir))
		begin(t, j, "c1")
		write(t, j, lines(0, 3))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "mc", "server.run"), []byte(text), 0o600))
		for range 2 {
			r := begin(t, open(t, in(dir)), "c1")
			require.False(t, r.Fresh)
			require.Equal(t, line(2).Time, r.Last)
		}
	}
}
