package cli

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestContainersInDetail(t *testing.T) {
	f := newFakeAPI(t, map[string]string{"GET /containers/a": `200 {"internal_id":"a"}`, "GET /containers/b": `200 {"internal_id":"b"}`})
	out, _, err := command(t, f.env(), "containers", "a", "nope", "b")
	require.EqualError(t, err, "nope: Route not found")
	require.Equal(t, exitNotFound, ExitCode(err))
	require.Regexp(t, `(?s)^container: +a\n.*\n\ncontainer: +b\n`, out)
	out, _, err = command(t, f.env(), "containers", "a", "b", "-o", "yaml")
	require.NoError(t, err)
	require.Equal(t, "---\ninternal_id: a\n---\ninternal_id: b\n", out)
	out, _, err = command(t, f.env(), "containers", "a", "-o", "json")
	require.NoError(t, err)
	require.True(t, json.Valid([]byte(out)))
}
