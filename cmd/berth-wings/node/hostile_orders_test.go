package node_test

import (
	"io"
	"mime/multipart"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"berth/api/client"
	"berth/hack/test/berthtest"
	"berth/hack/test/paneltest"
)

// TestBackupOfAnotherServer: a request with the id of another server's backup is refused, and leaves it alone.
func TestBackupOfAnotherServer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.installed(t)
	w.beta(t)
	w.backup(t, "wings", 1)
	w.panel.Await(t, "POST /backups/"+backupUUID(1), 1)
	w.unmarked(t)
	w.Want(t, 400, "POST", "/api/servers/"+beta+"/backup", map[string]string{"adapter": "wings", "uuid": backupUUID(1)})
	w.panel.Await(t, "POST /backups/"+backupUUID(1), 2) // that it failed
	berthtest.Until(t, 3*time.Minute, "it is done with the request", func() bool {
		v, err := w.berth.API.Volumes().Get(t.Context(), w.berth.Container(t, beta).VolumeID)
		return err == nil && len(v.Labels) == 1
	})
	b, err := w.berth.API.Backups().Get(t.Context(), backupUUID(1))
	require.NoError(t, err)
	require.Equal(t, w.berth.Container(t, alpha).VolumeID, b.VolumeID)
	require.True(t, b.State.Finished())
}

// TestFloodOfOrders: pages that request power actions all the time have few of them recorded at once: other requests for the
// server wait for each.
func TestFloodOfOrders(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.installed(t)
	next := w.between(t)
	g := &gate{"PATCH /volumes/", make(chan struct{}), make(chan struct{})} // of the first order: all others wait for it
	next.Store(g)
	open := sync.OnceFunc(func() { close(g.open) })
	defer open()
	var pages []*paneltest.Socket
	for range 10 {
		pages = append(pages, w.open(t, "*"))
	}
	var busy atomic.Int32
	var all sync.WaitGroup
	for _, s := range pages {
		all.Go(func() {
			for {
				e := s.Next()
				switch {
				case e.Event != "daemon error":
				case strings.Contains(e.Argument(), "another power action"):
					busy.Add(1)
				default:
					return
				}
			}
		})
		s.Send("set state", "kill")
	}
	<-g.held
	berthtest.Until(t, 3*time.Minute, "the others are refused", func() bool { return busy.Load() == 6 })
	open()
	w.unmarked(t)
	require.Equal(t, int32(6), busy.Load())
	again := &gate{"PATCH /volumes/", make(chan struct{}), make(chan struct{})}
	close(again.open)
	next.Store(again)
	berthtest.Until(t, 3*time.Minute, "those that have ended count no more", func() bool {
		pages[0].Send("set state", "kill")
		select {
		case <-again.held:
			return true
		default:
			return false
		}
	})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		all.Wait()
	}()
	berthtest.Until(t, 3*time.Minute, "all pages have their last error", func() bool { // what a page sends too often is dropped
		for _, s := range pages {
			s.Send("set state", "dance")
		}
		select {
		case <-ended:
			return true
		default:
			return false
		}
	})
}

// TestTransferEndsWithAccess: what a browser still uploads or downloads ends when its user loses the access.
func TestTransferEndsWithAccess(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.installed(t)
	_, err := w.berth.API.Files().Upload(t.Context(), w.berth.Container(t, alpha).VolumeID, "large.dat",
		strings.NewReader(strings.Repeat("x", 14<<20)), client.UploadOptions{}) // more than the buffers of a connection
	require.NoError(t, err)
	download, err := http.Get(w.URL + "/download/file?token=" + link(t, "file-download", map[string]any{"file_path": "/large.dat"}))
	require.NoError(t, err)
	defer download.Body.Close()
	require.Equal(t, 200, download.StatusCode)

	from, to := io.Pipe()
	form := multipart.NewWriter(to)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.URL+"/upload/file?directory=/&token="+link(t, "file-upload", nil), from)
	require.NoError(t, err)
	r.Header.Set("Content-Type", form.FormDataContentType())
	status := make(chan int, 1)
	go func() {
		a, err := http.DefaultClient.Do(r)
		if err != nil {
			status <- 0
			return
		}
		_ = a.Body.Close()
		status <- a.StatusCode
	}()
	part, err := form.CreateFormFile("files", "late.txt")
	require.NoError(t, err)
	_, err = part.Write([]byte("begin"))
	require.NoError(t, err)

	w.Want(t, 204, "POST", "/api/deauthorize-user", map[string]any{"user": paneltest.User, "servers": []string{alpha}})
	_, _ = part.Write([]byte("end")) // the bridge may have hung up
	_ = form.Close()
	_ = to.Close()
	require.NotEqual(t, 200, <-status)
	require.Equal(t, 404, w.Do(t, "GET", atAlpha+"/files/contents?file=/late.txt", nil).Status)
	_, err = io.Copy(io.Discard, download.Body)
	require.Error(t, err)
}
