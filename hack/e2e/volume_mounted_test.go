package e2e_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"berth/hack/test/berthtest"
)

// TestVolumeStaysWhileMounted: the spec names another volume while the old
// container still runs on the previous one.
func TestVolumeStaysWhileMounted(t *testing.T) {
	t.Parallel()
	b := berthtest.Start(t, berthtest.Options{})
	from, to := b.Volume(t), b.Volume(t)
	b.Started(t, "mc", berthtest.Spec{"volume_id": from, "startup_command": deaf, "start_pattern": "up", "stop": map[string]any{"timeout": "1h"}})
	body := b.Body(t, "mc", berthtest.Spec{"volume_id": to, "startup_command": deaf, "start_pattern": "up", "stop": map[string]any{"timeout": "1h"}})
	delete(body, "internal_id")
	b.Must(t, "PUT", "/containers/mc", body)
	b.State(t, "mc", "stopping")
	refused := b.Do(t, "DELETE", "/volumes/"+from, nil)
	require.Equal(t, 409, refused.Status)
	require.JSONEq(t, `{"error": "Volume is in use by container mc"}`, string(refused.Body))
	require.DirExists(t, filepath.Join(b.Data, "volumes", from))
	b.Verb(t, "mc", "kill")
	berthtest.Until(t, wait, "the old container is gone", func() bool {
		return b.Do(t, "DELETE", "/volumes/"+from, nil).Status == 200
	})
	berthtest.Until(t, wait, "its directory is gone", func() bool {
		_, err := os.Stat(filepath.Join(b.Data, "volumes", from))
		return os.IsNotExist(err)
	})
}
