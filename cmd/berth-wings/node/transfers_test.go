package node_test

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"berth/api/client"
	v1 "berth/api/v1"
	"berth/hack/test/berthtest"
	"berth/hack/test/paneltest"
)

// transferToken is the token of a transfer of alpha.
func transferToken(t *testing.T, more map[string]any) string {
	claims := map[string]any{"sub": alpha, "scope": "transfer", "user_uuid": nil}
	for name, value := range more {
		claims[name] = value
	}
	return "Bearer " + paneltest.Sign(t, claims)
}

// departure is the request of a transfer of alpha to a node.
func departure(t *testing.T, url string, backups ...string) map[string]any {
	return map[string]any{"url": url + "/api/transfers", "token": transferToken(t, nil), "backups": backups,
		"server": map[string]any{"uuid": alpha, "start_on_completion": false}}
}

// empty waits until berth has nothing of alpha.
func (w *world) empty(t *testing.T) {
	t.Helper()
	berthtest.Until(t, 3*time.Minute, "nothing of alpha is left", func() bool {
		volumes, err := w.berth.API.Volumes().List(t.Context(), "wings.uuid="+alpha)
		require.NoError(t, err)
		containers, err := w.berth.API.Containers().List(t.Context())
		require.NoError(t, err)
		return len(volumes) == 0 && len(containers) == 0
	})
}

// without starts the bridge of a node that does not have alpha.
func (w *world) without(t *testing.T) {
	t.Helper()
	w.stop()
	w.panel.RemoveServer(alpha)
	w.run(t)
}

const ended = "POST /servers/" + alpha + "/transfer/"

// TestTransfer moves a server that runs from one node to another.
func TestTransfer(t *testing.T) {
	t.Parallel()
	from, to := newWorld(t), newWorld(t)
	to.without(t)
	to.panel.SetServer(t, from.server(""))
	to.panel.TransferHere(alpha)
	from.installed(t)
	from.write(t, "world/level.dat", "level one")
	from.backup(t, "wings", 1)
	from.unmarked(t)
	from.Want(t, 202, "POST", atAlpha+"/power", map[string]any{"action": "start"})
	from.state(t, "running")
	from.unmarked(t)
	page := from.open(t, "*", "admin.websocket.transfer")
	page.Want("status", "running")
	from.panel.TransferAway(alpha)
	from.Want(t, 202, "POST", atAlpha+"/transfer", departure(t, to.URL, backupUUID(1)))
	until := func(name, part string) {
		t.Helper()
		for e := page.Next(); e.Event != name || !strings.Contains(e.Argument(), part); e = page.Next() {
		}
	}
	until("transfer logs", "[Transfer System] [Source Node]:\x1b[39m Preparing")
	until("transfer status", "processing")
	until("transfer logs", "Streaming archive")
	to.panel.Await(t, ended+"success", 1)

	// The panel has it on the other node. It does not start here again, whatever is requested.
	from.Want(t, 409, "POST", atAlpha+"/transfer", departure(t, to.URL))
	page.Send("set state", "start")
	until("daemon error", "another power action")
	from.Want(t, 409, "POST", atAlpha+"/reinstall", nil)
	from.panel.RemoveServer(alpha)
	from.Want(t, 204, "DELETE", atAlpha, nil)
	until("transfer status", "completed")
	until("deleted", "null")
	from.empty(t)
	require.Empty(t, from.panel.Calls(ended), "the node that receives reports the end")

	to.unmarked(t)
	to.files(t, map[string]string{"world/level.dat": "level one", "game.txt": "game of hello\n"})
	require.Empty(t, to.berth.Processes(t), "it is stopped")
	to.write(t, "world/level.dat", "level two")
	require.Equal(t, 202, to.restore(t, 1, true).Status)
	require.JSONEq(t, `{"successful":true}`, to.panel.Await(t, "POST /backups/"+backupUUID(1)+"/restore", 1).Body)
	to.files(t, map[string]string{"world/level.dat": "level one"})
	to.Want(t, 202, "POST", atAlpha+"/power", map[string]any{"action": "start", "wait_seconds": 60})
	to.state(t, "running")
	require.Empty(t, to.panel.Calls("GET /servers/"+alpha+"/install"), "nothing was installed")
}

// TestTransferFails: a server that does not get to the other node stays, stopped, and the panel has one report of it.
func TestTransferFails(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.installed(t)
	w.write(t, "world/level.dat", "level one")
	answer, reached := make(chan int), make(chan struct{})
	other := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // then the end of the connection is seen
		if r.Method == http.MethodGet {
			return // a page behind a redirect
		}
		out.Header().Set("Location", "/")
		reached <- struct{}{}
		select {
		case status := <-answer:
			out.WriteHeader(status)
		case <-r.Context().Done():
		}
	}))
	defer other.Close()
	defer other.CloseClientConnections()
	w.Want(t, 409, "DELETE", atAlpha+"/transfer", nil)
	begin := func() {
		t.Helper()
		w.panel.TransferAway(alpha)
		w.Want(t, 202, "POST", atAlpha+"/transfer", departure(t, other.URL))
		<-reached
	}
	settled := func(n int) {
		t.Helper()
		w.panel.Await(t, ended+"failure", n)
		w.unmarked(t)
		w.files(t, map[string]string{"world/level.dat": "level one"})
		w.Want(t, 202, "POST", atAlpha+"/power", map[string]any{"action": "start", "wait_seconds": 60})
		w.state(t, "running")
		w.unmarked(t)
		require.Len(t, w.panel.Calls(ended), n)
	}
	page := w.open(t, "*")
	page.Want("status", "offline")
	begin()
	page.Want("transfer status", "processing")
	w.panel.SetLogin("user.a1a1a1a1", "secret", friend, alpha, "*") // the panel may have answered before it knew
	_, err := w.dialSFTP("user.a1a1a1a1", ssh.Password("secret"))
	require.Error(t, err)
	answer <- 500
	page.Want("transfer status", "failure")
	settled(1)

	begin()
	w.Want(t, 202, "DELETE", atAlpha+"/transfer", nil)
	page.Until("transfer status", "cancelling")
	page.Until("transfer status", "failure")
	settled(2)

	begin()
	answer <- http.StatusFound // to what takes no transfer
	settled(3)

	begin() // and the bridge ends
	w.stop()
	w.run(t)
	settled(4)

	begin() // and the bridge ends, while the panel gives the server to the other node
	w.stop()
	w.panel.RemoveServer(alpha)
	w.run(t)
	w.empty(t)
}

// TestTransferWithoutEvents: a server whose start the bridge has not seen yet is sent when it has stopped.
func TestTransferWithoutEvents(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.panel.SetServer(t, strings.Replace(w.server(""), "echo bye;", "sleep 3; echo bye > bye.txt;", 1))
	w.installed(t)
	next := w.between(t)
	w.stop()
	g := &gate{"GET /ws", make(chan struct{}), make(chan struct{})}
	next.Store(g)
	w.run(t)
	<-g.held
	defer close(g.open)
	_, err := w.berth.API.Containers().Do(t.Context(), alpha, client.Start)
	require.NoError(t, err)
	berthtest.Until(t, 3*time.Minute, "it runs", func() bool { return w.berth.Container(t, alpha).State == v1.Running })
	sent := make(chan string, 1)
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		sent <- string(w.berth.Container(t, alpha).State)
	}))
	defer other.Close()
	w.panel.TransferAway(alpha)
	w.Want(t, 202, "POST", atAlpha+"/transfer", departure(t, other.URL))
	require.Equal(t, string(v1.Exit), <-sent)
}

// TestTransferOfLargeBackups: backups of another node leave berth the space that it needs on their disk.
func TestTransferOfLargeBackups(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.without(t)
	disk := filepath.Join(w.root, "backups")
	require.NoError(t, os.MkdirAll(disk, 0o700))
	require.NoError(t, syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=68m"))
	t.Cleanup(func() { require.NoError(t, syscall.Unmount(disk, syscall.MNT_DETACH)) })
	send := func(size int) paneltest.Answer {
		t.Helper()
		w.panel.SetServer(t, w.server(""))
		w.panel.TransferHere(alpha)
		var b bytes.Buffer
		form := multipart.NewWriter(&b)
		for _, part := range []struct{ name, content string }{{"archive", archiveOf(t, map[string]string{"game.txt": "moved"})}, {"backup_" + backupUUID(1) + ".tar.gz", strings.Repeat("x", size)}} {
			to, err := form.CreateFormFile(part.name, part.name)
			require.NoError(t, err)
			_, err = io.WriteString(to, part.content)
			require.NoError(t, err)
			digest := sha256.Sum256([]byte(part.content))
			sum := map[bool]string{true: "checksum"}[part.name == "archive"]
			require.NoError(t, form.WriteField(cmp.Or(sum, "checksum_"+part.name), hex.EncodeToString(digest[:])))
		}
		require.NoError(t, form.Close())
		return w.Do(t, "POST", "/api/transfers", b.String(), "Authorization", transferToken(t, nil), "Content-Type", form.FormDataContentType())
	}
	kept := filepath.Join(disk, alpha, backupUUID(1)+".tar.gz")
	require.Contains(t, send(8<<20).Error(), "unexpected error") // the reason is in the log
	w.panel.Await(t, ended+"failure", 1)
	w.empty(t)
	require.NoFileExists(t, kept)
	a := send(1 << 20)
	require.Equal(t, 200, a.Status, a.Body)
	require.FileExists(t, kept)
}

// arrival returns the body of a transfer, and its type.
func arrival(t *testing.T, archive, sum string) (body, kind string) {
	t.Helper()
	var b bytes.Buffer
	form := multipart.NewWriter(&b)
	to, err := form.CreateFormFile("archive", "archive.tar.gz")
	require.NoError(t, err)
	_, err = io.WriteString(to, archive)
	require.NoError(t, err)
	require.NoError(t, form.WriteField("checksum", sum))
	require.NoError(t, form.Close())
	return b.String(), form.FormDataContentType()
}

// TestArrival: a server that does not arrive as a whole leaves nothing, and the panel decides whose it is.
func TestArrival(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.without(t)
	content := w.old(t, backupUUID(9)+".tar.gz")
	digest := sha256.Sum256([]byte(content))
	good, kind := arrival(t, content, hex.EncodeToString(digest[:]))
	send := func(body, token string) paneltest.Answer {
		t.Helper()
		body = strings.ReplaceAll(body, boundaryOf(body), boundaryOf(good))
		return w.Do(t, "POST", "/api/transfers", body, "Authorization", token, "Content-Type", kind)
	}
	comes := func() {
		w.panel.SetServer(t, w.server(""))
		w.panel.TransferHere(alpha)
	}
	comes()
	require.Equal(t, 401, send(good, "").Status)
	for _, token := range []string{
		transferToken(t, nil) + "x", transferToken(t, map[string]any{"scope": "websocket"}),
		transferToken(t, map[string]any{"exp": time.Now().Unix()}), transferToken(t, map[string]any{"sub": "../x"})} {
		require.Equal(t, 403, send(good, token).Status)
	}
	require.Empty(t, w.panel.Calls("GET /servers/"+alpha))

	token := transferToken(t, nil)
	wrong, _ := arrival(t, content, strings.Repeat("0", 64))
	torn, _ := arrival(t, content[:len(content)/2], hex.EncodeToString(digest[:]))
	none := strings.ReplaceAll(good, `name="archive"`, `name="other"`)
	for i, body := range []string{wrong, torn, good[:len(good)/2], none} {
		comes()
		require.GreaterOrEqual(t, send(body, token).Status, 400)
		require.Len(t, w.panel.Calls(ended+"failure"), i+1)
		w.Want(t, 404, "GET", atAlpha, nil)
		w.empty(t)
	}

	// berth has a volume of the server, which is not the transfer's.
	volume, err := w.berth.API.Volumes().Create(t.Context(), v1.VolumeSpec{Labels: map[string]string{"wings.uuid": alpha}})
	require.NoError(t, err)
	comes()
	require.GreaterOrEqual(t, send(good, token).Status, 400)
	w.panel.Await(t, ended+"failure", 5)
	require.NoError(t, w.berth.API.Volumes().Delete(t.Context(), volume.VolumeID))

	// A server arrives once at a time.
	comes()
	from, to := io.Pipe()
	request, err := http.NewRequest("POST", w.URL+"/api/transfers", from)
	require.NoError(t, err)
	request.Header.Set("Authorization", token)
	request.Header.Set("Content-Type", kind)
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		if response, err := http.DefaultClient.Do(request); err == nil {
			_ = response.Body.Close()
		}
	}()
	_, err = io.WriteString(to, good[:len(good)/2])
	require.NoError(t, err)
	berthtest.Until(t, 3*time.Minute, "it arrives", func() bool { return w.Do(t, "GET", atAlpha, nil).Status == 200 })
	require.Equal(t, 409, send(good, token).Status)
	w.Want(t, 202, "DELETE", "/api/transfers/"+alpha, nil)
	require.NoError(t, to.Close())
	<-sent
	w.panel.Await(t, ended+"failure", 6)
	w.empty(t)

	// The bridge ended while a server arrived.
	left := func() {
		t.Helper()
		w.stop()
		_, err := w.berth.API.Volumes().Create(t.Context(), v1.VolumeSpec{Labels: map[string]string{"wings.uuid": alpha, "wings.transfer": "in"}})
		require.NoError(t, err)
	}
	left()
	comes()
	w.run(t)
	w.panel.Await(t, ended+"failure", 7)
	w.empty(t)

	// It ended when the panel had given the server to the node.
	left()
	w.panel.SetServer(t, w.server(""))
	w.run(t)
	berthtest.Until(t, 3*time.Minute, "it is the node's", func() bool {
		volumes, err := w.berth.API.Volumes().List(t.Context(), "wings.uuid="+alpha)
		require.NoError(t, err)
		require.Len(t, volumes, 1)
		return len(volumes[0].Labels) == 1
	})
	w.Want(t, 204, "DELETE", atAlpha, nil)
	w.empty(t)

	// The panel has taken the report, and the bridge does not know.
	w.panel.SetServer(t, w.server(""))
	require.Equal(t, 200, send(good, token).Status)
	w.unmarked(t)
	w.files(t, map[string]string{"world/level.dat": "old"})
	require.Equal(t, 409, send(good, token).Status)
}
