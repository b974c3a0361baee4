package panel_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/cmd/berth-wings/panel"
	"berth/hack/test/paneltest"
)

// inside sends requests to a handler of this process, without a network.
type inside struct{ http.Handler }

func (i inside) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body == nil {
		r.Body = http.NoBody
	}
	w := httptest.NewRecorder()
	i.ServeHTTP(w, r)
	return w.Result(), nil
}

func newClient(p http.Handler, token string) *panel.Client {
	return panel.New(panel.Options{Remote: "http://panel.test", Identity: panel.Identity{TokenID: paneltest.TokenID, Token: v1.Secret(token),
		Agent: "Pelican Wings/v1.0.0 (id:x)"}, Timeout: 30 * time.Second, PerPage: 2, Transport: inside{p},
		Headers: map[string]string{"X-Own": "1", "Accept": "text/plain"}})
}

func server(n int) string {
	return fmt.Sprintf(`{"settings":{"uuid":"a1a1a1a1-1111-4111-8111-00000000000%d","meta":{"name":"s%d"}},"process_configuration":{}}`, n, n)
}

func TestServersOfAllPages(t *testing.T) {
	p := paneltest.New()
	for n := range 5 {
		p.SetServer(t, server(n))
	}
	list, refused, err := newClient(p, paneltest.Token).Servers(t.Context())
	require.NoError(t, err)
	require.Empty(t, refused)
	for n, s := range list {
		require.Equal(t, fmt.Sprint("s", n), s.Name)
	}
	require.Len(t, list, 5)
	var asked []string
	for _, c := range p.Calls("GET /servers") {
		asked = append(asked, c.Query)
		require.Equal(t, "application/json", c.Header.Get("Accept"), "not over the four")
		require.Equal(t, "1", c.Header.Get("X-Own"))
	}
	require.Equal(t, []string{"page=0&per_page=2", "page=2&per_page=2", "page=3&per_page=2"}, asked)
}

// TestCallsAreTriedAgain: no answer and 5xx and 3xx, for half a minute; 4xx is final.
func TestCallsAreTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := paneltest.New()
		uuid := p.SetServer(t, server(1))
		c := newClient(p, paneltest.Token)
		for status, tries := range map[int]int{500: 3, 302: 3, 403: 1} {
			failures := 2
			p.Fail(func(paneltest.Call) int {
				if failures--; failures >= 0 {
					return status
				}
				return 0
			})
			before := len(p.Calls(""))
			_, err := c.Server(t.Context(), uuid)
			require.Equal(t, tries == 1, err != nil, err)
			require.Equal(t, tries == 1, panel.IsFinal(err))
			require.Len(t, p.Calls(""), before+tries)
		}
		p.Fail(func(paneltest.Call) int { return 503 })
		began := time.Now()
		err := c.ReportInstalled(t.Context(), uuid, panel.Installed{Successful: true})
		require.EqualError(t, err, "the panel answered 503 made to fail")
		require.InDelta(t, 30, time.Since(began).Seconds(), 15)
	})
}

func TestReports(t *testing.T) {
	p := paneltest.New()
	uuid := p.SetServer(t, server(1))
	p.SetScript(uuid, "img", "sh", "x")
	c := newClient(p, paneltest.Token)
	ctx := t.Context()
	script, err := c.Script(ctx, uuid)
	require.NoError(t, err)
	require.Equal(t, "img", script.Image)
	user := "0e0e0e0e-0000-4000-8000-0e0e0e0e0e0e"
	at := time.Date(2026, 1, 1, 0, 0, 0, 5, time.UTC)
	require.NoError(t, c.ReportInstalled(ctx, uuid, panel.Installed{Successful: true, Reinstall: false}))
	require.NoError(t, c.Reset(ctx))
	require.NoError(t, c.ReportState(ctx, uuid, "offline", "starting"))
	require.NoError(t, c.ReportActivity(ctx, []panel.Activity{{User: &user, Server: uuid, Event: "server:power.start", Metadata: map[string]any{}, IP: netip.MustParseAddr("203.0.113.9"), Timestamp: at}}))
	require.NoError(t, c.ReportBackup(ctx, "b", panel.Backup{Checksum: "a", ChecksumType: "sha256", Size: 1, Successful: true}))
	require.NoError(t, c.ReportRestored(ctx, "b", nil))
	require.NoError(t, c.ReportRestored(ctx, "b", errors.New("no space left")))
	upload, err := c.Upload(ctx, "b", paneltest.PartSize+1)
	require.NoError(t, err)
	require.Equal(t, panel.Upload{Parts: []string{p.URL + "/objects/b/1?signed=yes", p.URL + "/objects/b/2?signed=yes"}, PartSize: paneltest.PartSize}, upload)
	want := []string{`{"successful":true,"reinstall":false}`, `null`, `{"data":{"new_state":"starting","previous_state":"offline"}}`,
		`{"data":[{"user":"0e0e0e0e-0000-4000-8000-0e0e0e0e0e0e","server":"` + uuid + `","event":"server:power.start","metadata":{},"ip":"203.0.113.9","timestamp":"2026-01-01T00:00:00.000000005Z"}]}`,
		`{"checksum":"a","checksum_type":"sha256","size":1,"successful":true,"parts":null}`, `{"successful":true}`, `{"successful":false}`}
	for n, call := range p.Calls("POST ") {
		require.JSONEq(t, want[n], call.Body)
	}
	require.Len(t, p.Calls("POST "), len(want))
}

func TestAnotherServerIsNotTheOne(t *testing.T) {
	p := paneltest.New()
	uuid := p.SetServer(t, server(1))
	_, err := newClient(answering(server(2)), paneltest.Token).Server(t.Context(), uuid)
	require.ErrorContains(t, err, "answered with server")
	_, err = newClient(p, "wrong").Server(t.Context(), uuid)
	require.ErrorContains(t, err, "403")
}

// answering returns a panel that answers everything with a text.
func answering(text string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(text)) })
}
