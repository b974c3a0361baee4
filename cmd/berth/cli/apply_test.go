package cli

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestApply(t *testing.T) {
	f := newFakeAPI(t, map[string]string{
		"PUT /containers/mc":              `201 {"state":"installing","power":"running"}`,
		"PUT /containers/mc?dry_run=true": `200 {"changed":true,"actions":[{"action":"recreate","reason":"image changed"}]}`,
	})
	file := filepath.Join(t.TempDir(), "mc.yaml")
	require.NoError(t, os.WriteFile(file, []byte("internal_id: mc\nimage: a:1\nports:\n- {ip: 0.0.0.0, port: 1, protocol: tcp}\nlimits: {cpu: 0.5}\n"), 0o600))
	const body = `{"internal_id":"mc","image":"a:1","ports":[{"ip":"0.0.0.0","port":1,"protocol":"tcp"}],"limits":{"memory":0,"cpu":0.5}}`
	out, _, err := command(t, f.env(), "apply", "-f", file)
	require.NoError(t, err)
	require.Equal(t, "mc: applied; state is installing, power is running\n", out)
	out, _, err = command(t, f.env(), "apply", "-f", file, "--dry-run")
	require.NoError(t, err)
	require.Equal(t, "mc:  recreate  image changed\n", out)
	require.Equal(t, []string{"PUT /containers/mc " + body, "PUT /containers/mc?dry_run=true " + body}, f.requests)

	for text, want := range map[string]string{"image: a": "internal_id is required", "\tx": "cannot start any token", "": "internal_id is required"} {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		_, _, err = command(t, f.env(), "apply", "-f", file)
		require.ErrorContains(t, err, want)
	}
	_, _, err = command(t, f.env(), "apply")
	require.ErrorContains(t, err, `"file" not set`)
}
