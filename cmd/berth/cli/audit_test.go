package cli

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAudit(t *testing.T) {
	const entry = `{"seq":7,"actor":{"token_id":"t","name":"panel","via":"http","on_behalf_of":"alice"},"action":"container.start","object":"mc","request_id":"r","status":403}`
	f := newFakeAPI(t, map[string]string{
		"GET /audit?since=0&limit=10000":                                   `200 {"entries":[{"seq":6,"action":"token.create"},` + entry + `]}`,
		"GET /audit?since=6&limit=10000&container=mc&volume=v&actor=alice": `200 {"entries":[` + entry + `]}`,
	})
	out, _, err := command(t, f.env(), "audit", "-n", "1")
	require.NoError(t, err)
	require.Regexp(t, `7 +\S+ \S+ [+-]\d{4}  panel on behalf of alice +container\.start +mc +403`, out)
	require.NotContains(t, out, "token.create", "only the last one")
	out, _, err = command(t, f.env(), "audit", "--since", "6", "--container", "mc", "--volume", "v", "--actor", "alice", "-o", "json")
	require.NoError(t, err)
	require.Contains(t, out, `"object": "mc"`)
	out, _, err = command(t, f.env(), "audit", "-n", "1", "-o", "wide")
	require.NoError(t, err)
	require.Regexp(t, `panel on behalf of alice +t +http`, out, "two tokens may have one name")
	_, _, err = command(t, f.env(), "audit", "--since", "-3")
	require.ErrorContains(t, err, "must not be negative")
}
