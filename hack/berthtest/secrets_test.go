package berthtest

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// recorder takes the failures that a search tells.
type recorder struct {
	testing.TB
	told []string
}

// Errorf keeps what a failure says.
func (r *recorder) Errorf(format string, args ...any) {
	r.told = append(r.told, fmt.Sprintf(format, args...))
}

// TestSecretsAreFound: a search that cannot find would prove nothing.
func TestSecretsAreFound(t *testing.T) {
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
		require.Len(t, r.told, want, text)
	}
	r := &recorder{TB: t}
	s.searchRefusals(r)
	require.Len(t, r.told, 1)
	require.Contains(t, r.told[0], "a refusal holds the secret")
}
