package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"berth/hack/test/berthtest"
)

// TestDeniedFiles: a token that is limited to a container lists what its denied_files select, and does
// nothing else with it, by HTTP and SFTP; the administrator does.
func TestDeniedFiles(t *testing.T) {
	t.Parallel()
	n := newSFTPNode(t)
	n.Made(t, "mc", berthtest.Spec{"denied_files": []string{"/server.jar"}, "volume_id": n.volume})
	for _, name := range []string{"server.jar", "plain.txt"} {
		require.NoError(t, os.WriteFile(filepath.Join(n.dir, name), []byte(name), 0o644))
	}
	limited := mint(t, n.Berth, `{"name":"friend","scopes":["files"],"containers":["mc"]}`).Token
	at := fmt.Sprintf("/volumes/%s/files/content?path=", n.volume)
	require.Equal(t, 403, n.Do(t, "GET", at+"server.jar", nil, "Authorization", "Bearer "+limited).Status)
	require.Equal(t, 200, n.Do(t, "GET", at+"plain.txt", nil, "Authorization", "Bearer "+limited).Status)
	require.Equal(t, 200, n.Do(t, "GET", at+"server.jar", nil).Status)
}
