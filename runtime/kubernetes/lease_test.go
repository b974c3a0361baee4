package kubernetes

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	core1 "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth/runtime"
)

// fakeLeases keeps one Lease.
type fakeLeases struct {
	mu     sync.Mutex
	lease  *leaseObject
	denied bool
}

func (f *fakeLeases) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case !strings.Contains(r.URL.Path, "/leases"):
		answerJSON(w, http.StatusOK, core1.Namespace{ObjectMeta: meta.ObjectMeta{UID: "cluster"}})
	case f.denied:
		answerFailure(w, http.StatusForbidden, meta.StatusReasonForbidden)
	case r.Method == http.MethodGet && f.lease == nil:
		answerFailure(w, http.StatusNotFound, meta.StatusReasonNotFound)
	case r.Method == http.MethodGet:
		answerJSON(w, http.StatusOK, f.lease)
	default:
		sent := &leaseObject{}
		body, _ := io.ReadAll(r.Body)
		_ = json.Unmarshal(body, sent)
		version := 0
		if f.lease != nil {
			if sent.ResourceVersion != f.lease.ResourceVersion {
				answerFailure(w, http.StatusConflict, meta.StatusReasonConflict)
				return
			}
			_, _ = fmt.Sscan(f.lease.ResourceVersion, &version)
		}
		sent.ResourceVersion = fmt.Sprint(version + 1)
		f.lease = sent
		answerJSON(w, http.StatusOK, sent)
	}
}

// holding returns an engine that is named for the lease.
func (f *fakeLeases) holding(t *testing.T, name string) *Engine {
	t.Helper()
	e := testEngine()
	e.cfg.Holder, e.log = name, slog.New(slog.DiscardHandler)
	return against(t, e, f.ServeHTTP)
}

// TestTwoBerthsWithOneStore: the second acts on nothing, and names the first. It takes the lease once that is not
// renewed, or released.
func TestTwoBerthsWithOneStore(t *testing.T) {
	f := &fakeLeases{}
	one, two := f.holding(t, "berth one"), f.holding(t, "berth two")
	require.NoError(t, one.Ready(t.Context()))
	for range 2 {
		err := two.Ready(t.Context())
		require.ErrorIs(t, err, runtime.ErrUnavailable)
		require.ErrorContains(t, err, "berth one")
	}
	again := f.holding(t, "berth one") // after a restart
	require.NoError(t, again.Ready(t.Context()))

	two.lease.since = time.Now().Add(-leaseTime) // it has changed since
	require.Error(t, two.Ready(t.Context()))
	two.lease.since = time.Now().Add(-leaseTime)
	require.NoError(t, two.Ready(t.Context()))
	one.lease.set(time.Now().Add(-leaseLate))
	require.ErrorContains(t, one.Ready(t.Context()), "berth two")

	require.NoError(t, two.Close())
	require.NoError(t, one.Ready(t.Context()), "it was released")
}

// TestLeaseWithoutPermission: the Role may be that of an older berth.
func TestLeaseWithoutPermission(t *testing.T) {
	f := &fakeLeases{denied: true}
	require.NoError(t, f.holding(t, "berth one").Ready(t.Context()))
}

// TestRefusedCredentialsAreReadAgain: those of a kubeconfig expire, and somebody replaces the file.
func TestRefusedCredentialsAreReadAgain(t *testing.T) {
	var seen []string
	valid := "old"
	api := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		seen = append(seen, token)
		if token != valid {
			answerFailure(w, http.StatusUnauthorized, meta.StatusReasonUnauthorized)
			return
		}
		answerJSON(w, http.StatusOK, core1.Namespace{ObjectMeta: meta.ObjectMeta{UID: "cluster"}})
	}))
	defer api.Close()
	e := testEngine()
	e.log, e.requests, e.cfg.Kubeconfig = slog.New(slog.DiscardHandler), newMetrics(nil), filepath.Join(t.TempDir(), "config")
	credentials := func(token string) {
		require.NoError(t, os.WriteFile(e.cfg.Kubeconfig, fmt.Appendf(nil, `apiVersion: v1
kind: Config
clusters: [{name: k, cluster: {server: %q, insecure-skip-tls-verify: true}}]
users: [{name: u, user: {token: %s}}]
contexts: [{name: c, context: {cluster: k, user: u}}]
current-context: c
`, api.URL, token), 0o600))
	}
	credentials("old")
	require.NoError(t, e.connect())
	require.NoError(t, e.Ready(t.Context()))
	valid = "new"
	require.Error(t, e.Ready(t.Context()))
	credentials("new")
	require.Error(t, e.Ready(t.Context()), "it is refused once more, and read again")
	require.NoError(t, e.Ready(t.Context()))
	require.Equal(t, []string{"old", "old", "old", "new"}, seen)
}

// silent never answers.
type silent struct{}

func (silent) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// TestOneRequestHasALimit: the error of an API server that does not answer is none of the caller's context.
func TestOneRequestHasALimit(t *testing.T) {
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://cluster", nil)
	require.NoError(t, err)
	_, err = (&impatient{RoundTripper: silent{}, limit: time.Millisecond}).RoundTrip(r)
	require.ErrorIs(t, err, errSilent)
	require.ErrorIs(t, classify(err), runtime.ErrUnavailable)
	require.False(t, errors.Is(err, r.Context().Err()))
}
