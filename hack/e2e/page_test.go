package e2e_test

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"berth/api/client"
	v1 "berth/api/v1"
	"berth/hack/test/berthtest"
	"berth/hack/test/browsertest"
)

// pageWait bounds one action of a page; an upload of 1 GiB takes most of it on a busy
// machine.
const pageWait = 10 * time.Minute

// browser starts Chromium, which ends with the test.
func browser(t *testing.T) context.Context {
	t.Helper()
	options, err := browsertest.Options("../chromium.sh", t.TempDir())
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), pageWait)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	_, err = chromedp.Run(ctx, chromedp.Navigate("about:blank"))
	require.NoError(t, err)
	return ctx
}

// site serves one page, and returns its origin.
func site(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, "<!doctype html><title>panel</title><input type=file>")
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// script chooses a file in a page of origin, runs the body of an asynchronous function
// there, and returns its result, or the name of the exception.
func script(t *testing.T, tab context.Context, origin, file, body string) (result string) {
	t.Helper()
	require.NoError(t, chromedp.Do(tab, chromedp.Navigate(origin), chromedp.SetUploadFiles("input", []string{file})))
	expression := "(async () => { const file = document.querySelector('input').files[0];" + body + "})().catch(e => e.name)"
	result, err := chromedp.Run(tab, chromedp.Evaluate[string](expression, chromedp.EvalAwaitPromise))
	require.NoError(t, err)
	return result
}

// world makes a file of n different MiB.
func world(t *testing.T, n int) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "world.bin")
	f, err := os.Create(path)
	require.NoError(t, err)
	defer f.Close()
	chunk := make([]byte, 1<<20)
	for i := range n {
		binary.BigEndian.PutUint32(chunk, uint32(i))
		_, err := f.Write(chunk)
		require.NoError(t, err)
	}
	return path
}

func hashOfFile(t *testing.T, path string) string {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	h := sha256.New()
	_, err = io.Copy(h, f)
	require.NoError(t, err)
	return hex.EncodeToString(h.Sum(nil))
}

// TestPageOfPanel: in a real browser, a page of an allowed origin uploads a large file
// straight to berth with a token for one container's files; another page cannot.
func TestPageOfPanel(t *testing.T) {
	t.Parallel()
	tab := browser(t)
	panel, evil := site(t), site(t)
	b := berthtest.Start(t, berthtest.Options{Env: []string{"BERTH_SERVER_ALLOWED_ORIGINS=" + panel}})
	b.Made(t, "mc", berthtest.Spec{})
	volume, other := b.Container(t, "mc").VolumeID, b.Volume(t)
	token, err := b.API.Tokens().Create(t.Context(), v1.TokenRequest{Scopes: []v1.Scope{v1.ScopeFiles}, Containers: []string{"mc"}})
	require.NoError(t, err)
	helpers := `
		const berth = "http://` + b.Addr + `", token = "` + token.Token + `";
		const put = (volume, name, body) => fetch(berth + "/volumes/" + volume + "/files/content?path=" + name,
			{method: "PUT", body, headers: {Authorization: "Bearer " + token}});
		const socket = () => new Promise(done => {
			const s = new WebSocket(berth.replace("http", "ws") + "/ws/mc?token=` + b.Token + `");
			s.onopen = () => { s.close(); done("open") }; s.onerror = () => done("refused") });
		const mine = "` + volume + `", other = "` + other + `";`
	dir := filepath.Join(b.Data, "volumes", volume)
	size := rounds(64, 1024)
	file := world(t, size)

	began := time.Now()
	result := script(t, tab, panel, file, helpers+`
		const r = await put(mine, "world.bin", file); const text = await r.text();
		return r.status + " " + r.headers.get("X-Request-Id").length`)
	require.Equal(t, "200 16", result)
	t.Logf("%d MiB in %s", size, time.Since(began))
	require.Equal(t, hashOfFile(t, file), hashOfFile(t, dir+"/world.bin"))
	require.Equal(t, "404 volume_not_found", script(t, tab, panel, file, helpers+`
		const r = await put(other, "f", "x"); return r.status + " " + r.headers.get("X-Error-Code")`), "the token is for one container")
	require.Equal(t, "206 bytes 0-3/"+strconv.Itoa(size<<20), script(t, tab, panel, file, helpers+`
		const r = await fetch(berth + "/volumes/" + mine + "/files/content?path=world.bin", {headers: {Authorization: "Bearer " + token, Range: "bytes=0-3"}});
		return r.status + " " + r.headers.get("Content-Range")`))
	require.Equal(t, "open", script(t, tab, panel, file, helpers+`return socket()`))

	for _, attack := range []string{
		`return (await put(mine, "evil", file)).status + ""`,
		`return (await fetch(berth + "/containers/mc", {headers: {Authorization: "Bearer " + token, Accept: "` + client.Vendor + `"}})).status + ""`,
		`return (await fetch(berth + "/healthz")).status + ""`,
	} {
		require.Equal(t, "TypeError", script(t, tab, evil, file, helpers+attack), attack)
	}
	script(t, tab, evil, file, helpers+`await fetch(berth + "/volumes/" + mine + "/folders?token=" + token, {method: "POST", mode: "no-cors", body: '{"path":"evil"}'}); return ""`)
	require.Equal(t, "refused", script(t, tab, evil, file, helpers+`return socket()`))
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1, "only what the panel uploaded")
}
