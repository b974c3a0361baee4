package doctor

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
)

// checkPanelAt checks a panel at url.
func checkPanelAt(t *testing.T, url string) Result {
	t.Helper()
	o := Options{Version: "1.2.3", Config: configured(func(c *v1.Config) {
		c.Remote = v1.RemoteConfig{Enabled: true, URL: url + "/secret-path", Token: "panel-token"}
	})}
	return checkPanel(t.Context(), newExamination(t.Context(), o))
}

// TestPanelReceivesOneHead: nothing else may disturb a panel.
func TestPanelReceivesOneHead(t *testing.T) {
	var got []string
	panel := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.Method+" "+r.URL.Path+" "+r.Header.Get("Authorization"))
	}))
	defer panel.Close()
	require.Equal(t, ok("answers HEAD with 200"), checkPanelAt(t, panel.URL))
	require.Equal(t, []string{"HEAD /secret-path Bearer panel-token"}, got)
}

// TestPanelRedirect: the token must not reach another host.
func TestPanelRedirect(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the redirect was followed") }))
	defer other.Close()
	panel := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusFound))
	defer panel.Close()
	require.Equal(t, Fail, checkPanelAt(t, panel.URL).Status)
}

func TestPanelAway(t *testing.T) {
	r := checkPanelAt(t, "http://127.0.0.1:1")
	require.Equal(t, Fail, r.Status)
	require.NotContains(t, r.Message, "secret-path")
	r = checkPanelAt(t, "http://\x7f")
	require.Equal(t, Fail, r.Status)
	require.NotContains(t, r.Message, "secret-path")
	require.Equal(t, OK, checkPanel(t.Context(), newExamination(t.Context(), Options{})).Status, "there is none")
}

func TestJudgePanel(t *testing.T) {
	for status, want := range map[int]Status{200: OK, 204: OK, 400: OK, 405: OK, 401: Fail, 403: Fail, 404: Warn, 410: Warn, 302: Fail, 500: Fail, 503: Fail} {
		r := judgePanel(status, 0, 0)
		require.Equal(t, want, r.Status, status)
		require.Equal(t, want == OK, r.Remedy == "")
	}
	require.Equal(t, Warn, judgePanel(200, -2*time.Minute, 0).Status)
	require.Equal(t, OK, judgePanel(200, 30*time.Second, 0).Status)
	require.Equal(t, Warn, judgePanel(405, 0, 1001).Status)
}

func TestSkew(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	r := &http.Response{Header: http.Header{"Date": {"Sun, 01 Mar 2026 12:05:00 GMT"}}}
	require.Equal(t, 5*time.Minute, skew(r, now))
	require.Zero(t, skew(&http.Response{}, now))
}
