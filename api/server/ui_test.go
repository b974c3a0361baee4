package server

import (
	"compress/gzip"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"berth/api/ui"
	v1 "berth/api/v1"
)

// fetch gets a path like a browser without a token.
func fetch(h *harness, path string, header http.Header) (*http.Response, string) {
	h.t.Helper()
	req, err := http.NewRequest("GET", h.base+path, nil)
	require.NoError(h.t, err)
	req.Header = header
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	require.NoError(h.t, err)
	defer resp.Body.Close()
	var body io.Reader = resp.Body
	if resp.Header.Get("Content-Encoding") == "gzip" {
		body, err = gzip.NewReader(resp.Body)
		require.NoError(h.t, err)
	}
	text, err := io.ReadAll(body)
	require.NoError(h.t, err)
	return resp, string(text)
}

func pageVersion(t *testing.T) string {
	page, err := ui.New()
	require.NoError(t, err)
	return page.Version()
}

func TestPageIsServed(t *testing.T) {
	h := newHarness(t)
	packed := http.Header{"Accept-Encoding": {"br, gzip"}}
	resp, _ := fetch(h, "/ui", packed)
	require.Equal(t, 308, resp.StatusCode)
	require.Equal(t, "ui/", resp.Header.Get("Location"), "relative, for a proxy")

	resp, document := fetch(h, "/ui/", packed)
	require.Equal(t, 200, resp.StatusCode)
	require.Equal(t, "gzip", resp.Header.Get("Content-Encoding"))
	require.Contains(t, strings.Join(resp.Header.Values("Vary"), ","), "Accept-Encoding")
	require.Contains(t, resp.Header.Get("Content-Security-Policy"), "default-src 'self'")
	require.NotContains(t, resp.Header.Get("Content-Security-Policy"), "unsafe")
	again, _ := fetch(h, "/ui/", http.Header{"If-None-Match": {resp.Header.Get("ETag")}})
	require.Equal(t, 304, again.StatusCode)

	c := h.dial()
	c.send("GET /ui/ HTTP/1.1\n" + headers + "\n")
	unpacked, err := http.ReadResponse(c.r, nil)
	require.NoError(t, err)
	require.Empty(t, unpacked.Header.Get("Content-Encoding"), "the client has not asked for it")

	links := regexp.MustCompile(`(?:src|href)="([^"]+)"`).FindAllStringSubmatch(document, -1)
	require.Greater(t, len(links), 20)
	for _, link := range links {
		resp, text := fetch(h, "/ui/"+link[1], packed)
		require.Equal(t, 200, resp.StatusCode, link[1])
		require.Equal(t, "public, max-age=31536000, immutable", resp.Header.Get("Cache-Control"))
		plain, same := fetch(h, "/ui/"+link[1], http.Header{"Accept-Encoding": {"identity"}})
		require.Empty(t, plain.Header.Get("Content-Encoding"))
		require.Equal(t, text, same)
		require.NotEmpty(t, text)
	}
	for _, path := range []string{"/ui/none/main.js", "/ui/none/core/api.js", "/ui/" + pageVersion(t) + "/index.html",
		"/ui/" + pageVersion(t) + "/vendor/vendor.json", "/ui/" + pageVersion(t) + "/..%2Fmain.js"} {
		resp, _ := fetch(h, path, nil)
		require.Equal(t, 404, resp.StatusCode, path)
	}
}

// The daemon starts without the page: to compress it takes longer than everything else of a start.
func TestPageIsLoadedByTheFirstRequest(t *testing.T) {
	var loads atomic.Int32
	h := newHarnessWith(t, func(d *Deps) {
		d.Page = func() (*ui.Page, error) { loads.Add(1); return ui.New() }
	})
	require.Zero(t, loads.Load())
	for range 2 {
		resp, _ := fetch(h, "/ui/", nil)
		require.Equal(t, 200, resp.StatusCode)
		require.EqualValues(t, 1, loads.Load())
	}
}

func TestPageIsSwitchedOff(t *testing.T) {
	h := newHarness(t)
	h.settings.change(func(c *v1.Config) { c.UI.Enabled = false })
	for _, path := range []string{"/ui", "/ui/", "/ui/" + pageVersion(t) + "/main.js"} {
		resp, body := fetch(h, path, nil)
		require.Equal(t, 404, resp.StatusCode, path)
		require.Equal(t, "route_not_found", resp.Header.Get("X-Error-Code"))
		require.JSONEq(t, `{"error": "Route not found"}`, body)
	}
}
