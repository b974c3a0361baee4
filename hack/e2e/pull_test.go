package e2e_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"berth/api/client"
	v1 "berth/api/v1"
	"berth/hack/test/berthtest"
)

// mirror serves files: /n is n MiB, /slow never ends, /stalled sends nothing after its
// first byte, and any other path redirects to its query.
type mirror struct {
	*httptest.Server
	stalled atomic.Int64 // requests for /stalled
}

func newMirror(t *testing.T) *mirror {
	t.Helper()
	done := make(chan struct{})
	m := new(mirror)
	m.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var n int
		switch _, err := fmt.Sscanf(r.URL.Path, "/%d", &n); {
		case r.URL.Path == "/slow":
			for { // a MiB each second
				if _, err := w.Write(make([]byte, 1<<20)); err != nil {
					return
				}
				w.(http.Flusher).Flush()
				select {
				case <-done:
					return
				case <-time.After(time.Second):
				}
			}
		case r.URL.Path == "/stalled":
			_, _ = w.Write([]byte("x"))
			w.(http.Flusher).Flush()
			m.stalled.Add(1)
			select {
			case <-done:
			case <-r.Context().Done():
			}
		case err == nil:
			w.Header().Set("Content-Length", fmt.Sprint(n<<20))
			_, _ = io.CopyN(w, zeros{}, int64(n)<<20)
		default:
			http.Redirect(w, r, r.URL.RawQuery, http.StatusFound)
		}
	}))
	t.Cleanup(func() { close(done); m.Close() })
	return m
}

// pulled waits until a download is in a state, and returns it.
func pulled(t *testing.T, b *berthtest.Berth, volume, id string, state v1.PullState) (found v1.PullView) {
	t.Helper()
	berthtest.Until(t, wait, "the download is "+string(state), func() bool {
		list, err := b.API.Files().Pulls(t.Context(), volume)
		require.NoError(t, err)
		for _, p := range list {
			if p.PullID == id {
				found = p
			}
		}
		return found.State == state || found.State.Final()
	})
	require.Equal(t, state, found.State, found.Message)
	return found
}

// parts returns the names in a volume, its temporary ones included.
func parts(t *testing.T, b *berthtest.Berth, volume string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(b.Data, "volumes", volume))
	require.NoError(t, err)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// requirePullEvents compares the transitions of a volume's downloads. last is the id of
// the last one.
func requirePullEvents(t *testing.T, b *berthtest.Berth, volume, last string) {
	t.Helper()
	var events v1.EventList
	b.Get(t, "/events?type=pull&volume="+volume, &events)
	var states []string
	for _, e := range events.Events {
		require.Equal(t, []string{volume, "administrator"}, []string{e.Volume, e.Actor.Name})
		states = append(states, e.Data)
	}
	require.Equal(t, []string{"running", "completed", "running", "failed", "running", "failed", "running", "cancelled"}, states)
	require.Equal(t, last, events.Events[7].Pull)
}

func TestPull(t *testing.T) {
	t.Parallel()
	mirror := newMirror(t)
	b := berthtest.Start(t, berthtest.Options{Config: "files: {pull: true, pull_private: true}"})
	v, err := b.API.Volumes().Create(t.Context(), v1.VolumeSpec{SizeLimit: 64 << 20})
	require.NoError(t, err)
	volume := v.VolumeID
	pull := func(path, to, checksum string) string {
		id, err := b.API.Files().Pull(t.Context(), volume, v1.PullRequest{URL: mirror.URL + path, Path: to, Checksum: checksum})
		require.NoError(t, err)
		return id
	}
	content := func(name string) string {
		text, err := os.ReadFile(filepath.Join(b.Data, "volumes", volume, name))
		require.NoError(t, err)
		return string(text)
	}
	sum := sha256.Sum256(make([]byte, 8<<20))
	good := pulled(t, b, volume, pull("/8", "mods/a.zip", "sha256:"+hex.EncodeToString(sum[:])), v1.PullCompleted)
	require.Equal(t, []int64{8 << 20, 8 << 20}, []int64{good.Progress.Bytes, *good.Progress.Total})
	require.Len(t, content("mods/a.zip"), 8<<20)

	_, err = b.API.Files().Upload(t.Context(), volume, "old", strings.NewReader("old"), client.UploadOptions{Size: 3})
	require.NoError(t, err)
	require.Contains(t, pulled(t, b, volume, pull("/1", "old", "sha256:"+strings.Repeat("0", 64)), v1.PullFailed).Message, "checksum")
	require.Contains(t, pulled(t, b, volume, pull("/100", "old", ""), v1.PullFailed).Message, "Volume size limit exceeded")
	require.Equal(t, "old", content("old"), "a failed download changes nothing")

	slow := pull("/slow", "old", "")
	pulled(t, b, volume, slow, v1.PullRunning)
	require.NoError(t, b.API.Files().CancelPull(t.Context(), volume, slow))
	pulled(t, b, volume, slow, v1.PullCancelled)
	require.Equal(t, []string{"mods", "old"}, parts(t, b, volume))

	requirePullEvents(t, b, volume, slow)

	pulled(t, b, volume, pull("/1", "second", ""), v1.PullCompleted)
	berthtest.Until(t, wait, "the download is counted", func() bool {
		return strings.Contains(string(b.Must(t, "GET", "/metrics", nil).Body), `berth_pulls_total{result="completed"} 2`)
	})

	again := pull("/8?", "kept", "")
	b.Restart(t)
	pulled(t, b, volume, again, v1.PullCompleted)
	stalled := pull("/stalled", "old", "")
	for n := range int64(3) {
		berthtest.Until(t, wait, "the next attempt", func() bool { return mirror.stalled.Load() > n })
		b.Restart(t)
	}
	require.Contains(t, pulled(t, b, volume, stalled, v1.PullFailed).Message, "berth was restarted during 3 attempts")
	require.Equal(t, "old", content("old"))
	berthtest.Until(t, wait, "no part is left", func() bool {
		return strings.Join(parts(t, b, volume), " ") == "kept mods old second"
	})
}

// TestPullReachesNoPrivateAddress: neither a literal address, nor a name, nor this host's
// own address, and no redirect leads to a server of the host.
func TestPullReachesNoPrivateAddress(t *testing.T) {
	t.Parallel()
	mirror := newMirror(t)
	b := berthtest.Start(t, berthtest.Options{Config: "files: {pull: true}"})
	volume := b.Volume(t)
	answer := b.Do(t, "POST", "/volumes/"+volume+"/pull", map[string]any{"url": mirror.URL + "/1", "path": "f"})
	require.Equal(t, 400, answer.Status)
	id, err := b.API.Files().Pull(t.Context(), volume, v1.PullRequest{URL: strings.Replace(mirror.URL, "127.0.0.1", "localhost", 1) + "/1", Path: "f"})
	require.NoError(t, err)
	require.Contains(t, pulled(t, b, volume, id, v1.PullFailed).Message, "not public")
	require.Empty(t, parts(t, b, volume))
}
