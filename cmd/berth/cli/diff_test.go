package cli

import (
	"testing"

	"github.com/stretchr/testify/require"
)

const liveContainer = `200 {"internal_id":"mc","image":"a:1","volume_id":"3f2a91c0-0000-4000-8000-000000000000","startup_command":"run","ports":[{"ip":"::1","port":5,"protocol":"tcp"}],
	"limits":{"memory":1,"cpu":0},"env":{},"labels":{},"mounts":[],"tty":true,"stop":{"signal":"SIGINT"},"restart_policy":{"mode":"on-failure"},"power":"running","state":"running"}`

// TestDiff writes the same container in other words, and one change.
func TestDiff(t *testing.T) {
	f := newFakeAPI(t, map[string]string{"GET /containers/mc": liveContainer, "PUT /containers/mc?dry_run=true": recreated,
		"PUT /containers/same?dry_run=true": unchanged, "PUT /containers/new?dry_run=true": created, "PUT /containers/bad?dry_run=true": `400 {"error":"image: is required"}`})
	dir := writeManifests(t, map[string]string{
		"mc.yaml": "internal_id: mc\nimage: a:2\nvolume_id: 3f2a91c0\nstartup_command: run\nports: [{ip: '0:0::1', port: 5, protocol: tcp}]\nlimits: {memory: 1}\nstop: {signal: int}\ninstall_script: secret\n",
		"same":    "internal_id: same", "new": "internal_id: new\nimage: b\nvolume_id: v\ninstall_script: touch x", "bad": "internal_id: bad",
	})
	out, _, err := command(t, f.env(), "diff", "-f", dir+"/mc.yaml", "-f", dir+"/same")
	require.ErrorIs(t, err, ErrReported)
	require.Equal(t, 1, ExitCode(err))
	require.Equal(t, "# container/mc: recreate: image changed\n"+
		"diff container/mc (live) container/mc ("+dir+"/mc.yaml)\n--- container/mc (live)\n+++ container/mc ("+dir+"/mc.yaml)\n"+
		"@@ -1,4 +1,4 @@\n-image: a:1\n+image: a:2\n internal_id: mc\n limits:\n   cpu: 0\n", out)

	out, _, err = command(t, f.env(), "diff", "-f", dir+"/same")
	require.NoError(t, err)
	require.Empty(t, out)

	out, _, err = command(t, f.env(), "diff", "-f", dir+"/new")
	require.Equal(t, 1, ExitCode(err))
	require.Contains(t, out, "+++ container/new ("+dir+"/new)\n@@ -0,0 +1,")
	require.Contains(t, out, "\n+install_script: touch x\n")
	require.Contains(t, out, "\n+power: stopped\n")

	_, _, err = command(t, f.env(), "diff", "-f", dir+"/bad", "-f", dir+"/new")
	require.Equal(t, exitUsage, ExitCode(err))
	require.EqualError(t, err, dir+"/bad: container/bad: image: is required")
}
