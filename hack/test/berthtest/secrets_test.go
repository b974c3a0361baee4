package berthtest

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// recorder records the failures of a search.
type recorder struct {
	testing.TB
	failures []string
}

// Errorf records a failure.
func (r *recorder) Errorf(format string, args ...any) {
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}

// TestSecretSearch proves that a search finds secrets.
func TestSecretSearch(t *testing.T) {
	s := newSecrets()
	s.addConfig("authorization: {enabled: true, token: berth_aa11cc33}\nremote:\n  token: \"panel-own's\"\n" +
		"docker: {registries: {\"r:5000\": {username: u, password: pass-word}}}\n")
	s.answered(Answer{200, nil, []byte(`{"token":"berth_bb22","expires_at":"x"}`)})
	s.answered(Answer{404, http.Header{"X": {"y"}}, []byte(`{"error":"no bb22 here"}`)})
	for text, want := range map[string]int{
		"nothing": 0, "a berth_aa11cc33 b": 1, "AUTH=aa11cc33": 1, "pass-word and bb22": 2, "panel-own": 1, "berth_": 0,
	} {
		r := &recorder{TB: t}
		s.search(r, "a place", text)
		require.Len(t, r.failures, want, text)
	}
	r := &recorder{TB: t}
	s.searchRefusals(r)
	require.Len(t, r.failures, 1)
	require.Contains(t, r.failures[0], "a refusal contains the secret")
}
