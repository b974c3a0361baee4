package e2e_test

import (
	"io"
	"net/http"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"berth/hack/test/berthtest"
)

// TestUploadLeavesSpaceForStore: on a small disk that volumes and store share,
// a client uploads all but 5 MiB of it and then sends nothing more. The upload is
// refused, and other tenants' changes succeed.
func TestUploadLeavesSpaceForStore(t *testing.T) {
	t.Parallel()
	dir := smallDisk(t, "size=256m")
	b := berthtest.Start(t, berthtest.Options{Data: filepath.Join(dir, "data")})
	volume := b.Volume(t)
	var st unix.Statfs_t
	require.NoError(t, unix.Statfs(dir, &st))
	left := int64(st.Bavail)*int64(st.Bsize) - 5<<20

	body, w := io.Pipe()
	defer w.Close()
	go func() {
		piece := make([]byte, 256<<10)
		for sent := int64(0); sent < left; sent += int64(len(piece)) {
			if _, err := w.Write(piece); err != nil {
				return
			}
		}
	}()
	request, err := http.NewRequestWithContext(t.Context(), "PUT", "http://"+b.Addr+"/volumes/"+volume+"/files/content?path=f", body)
	require.NoError(t, err)
	request.Header.Set("Authorization", "Bearer "+b.Token)
	answered := make(chan int, 1)
	go func() {
		defer close(answered)
		if response, err := http.DefaultClient.Do(request); err == nil {
			_ = response.Body.Close()
			answered <- response.StatusCode
		}
	}()
	berthtest.Until(t, wait, "the upload is refused, or the disk is full", func() bool {
		require.NoError(t, unix.Statfs(dir, &st))
		return len(answered) > 0 || int64(st.Bavail)*int64(st.Bsize) < 8<<20
	})
	b.Volume(t)
	require.Equal(t, 507, <-answered)
	require.Zero(t, temps(t, filepath.Join(b.Data, "volumes", volume)))
}
