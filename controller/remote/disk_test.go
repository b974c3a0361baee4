package remote

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	v1 "berth/api/v1"
	"berth/store"
)

// A batch that the panel accepted is sent again if the cursor could not be stored.
func TestFullDiskLosesNothing(t *testing.T) {
	disk := t.TempDir()
	require.NoError(t, unix.Mount("tmpfs", disk, "tmpfs", 0, "size=112m"))
	t.Cleanup(func() { require.NoError(t, unix.Unmount(disk, unix.MNT_DETACH)) })
	s, err := store.Open(filepath.Join(disk, "store"), store.Options{MinFree: 32 << 20})
	require.NoError(t, err)
	w := &world{T: t, store: s, panel: &panel{t: t, answer: always(204), began: time.Now()}, log: &bytes.Buffer{}}
	w.change(func(r *v1.RemoteConfig) {
		*r = v1.RemoteConfig{Enabled: true, URL: "https://panel.example", Token: secret}
	})
	w.emit(3)
	filler := filepath.Join(disk, "filler")
	require.NoError(t, os.WriteFile(filler, make([]byte, 40<<20), 0o600))
	require.ErrorIs(t, s.Writable(), store.ErrDiskFull)

	w.start()
	require.Eventually(t, func() bool { return w.metric("berth_remote_failures_total", "store") > 0 }, time.Minute, 5*time.Millisecond)
	require.Equal(t, 3.0, w.metric("berth_remote_lag_events", ""))
	require.NoError(t, os.Remove(filler))
	require.Eventually(t, func() bool { return w.metric("berth_remote_lag_events", "") == 0 }, time.Minute, 5*time.Millisecond)
	w.stop()
	requests := w.panel.requests()
	require.Greater(t, len(requests), 1)
	require.Equal(t, requests[0].Events, requests[len(requests)-1].Events)
	require.Contains(t, w.log.String(), "reason=store")
	require.NoError(t, s.Close())
}
