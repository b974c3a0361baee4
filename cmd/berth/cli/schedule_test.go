package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestApplySchedules: those of the file are set unless they are so already, and the others are removed.
func TestApplySchedules(t *testing.T) {
	const path = "/containers/mc/schedules"
	const same = `{"name":"same","cron":"@daily","timezone":"UTC","if":"running","missed":"skip","enabled":true,"steps":[{"power":"restart"}],"status":{"next_run":null,"last_run":null,"runs":3}}`
	f := newFakeAPI(t, map[string]string{
		"PUT /containers/mc?dry_run=true": `200 {"changed":false,"actions":[]}`, "PUT /containers/mc": `200 {"internal_id":"mc"}`,
		"GET " + path:             `200 {"schedules":[` + same + `,` + strings.Replace(same, `"same"`, `"old"`, 1) + `]}`,
		"PUT " + path + "/new":    "200 " + strings.Replace(same, `"same"`, `"new"`, 1),
		"DELETE " + path + "/old": `200 {"message":"Schedule deleted successfully"}`,
	})
	file := filepath.Join(t.TempDir(), "mc.yaml")
	write := func(schedules string) {
		require.NoError(t, os.WriteFile(file, []byte("internal_id: mc\nimage: x\n"+schedules), 0o600))
	}
	write("schedules:\n  same: {cron: '@daily', steps: [{power: restart}]}\n  new: {cron: '@hourly', steps: [{wait: 1m}]}\n")
	out, _, err := command(t, f.env(), "apply", "-f", file, "--dry-run")
	require.NoError(t, err)
	require.Equal(t, "container/mc configured (dry run)\n  remove schedule: old\n  set schedule: new\n", out)
	require.Empty(t, bodyOf(f, "PUT "+path+"/new"))
	out, _, err = command(t, f.env(), "apply", "-f", file)
	require.NoError(t, err)
	require.Equal(t, "container/mc configured\n", out)
	require.JSONEq(t, `{"image":"x","internal_id":"mc"}`, bodyOf(f, "PUT /containers/mc"))
	require.JSONEq(t, `{"name":"new","cron":"@hourly","timezone":"UTC","if":"running","missed":"skip","enabled":true,"steps":[{"wait":"1m0s"}]}`, bodyOf(f, "PUT "+path+"/new"))
	write("")
	out, _, err = command(t, f.env(), "apply", "-f", file)
	require.NoError(t, err)
	require.Equal(t, "container/mc unchanged\n", out)
	write("schedules:\n  x: {cron: never, steps: [{wait: 2h}]}\n")
	_, _, err = command(t, f.env(), "apply", "-f", file)
	require.ErrorContains(t, err, "schedules.x.cron: must be five fields")
	require.ErrorContains(t, err, "schedules.x.steps[0].wait: must be between 1s and 1h")
	write("schedules:\n  x: {crons: never}\n")
	_, _, err = command(t, f.env(), "apply", "-f", file)
	require.ErrorContains(t, err, `unknown field "crons"`)
}

func TestScheduleCommands(t *testing.T) {
	const schedule = `{"name":"nightly","cron":"0 4 * * *","timezone":"UTC","if":"running","missed":"skip","enabled":true,"steps":[{"power":"restart"}],
		"status":{"next_run":null,"last_run":{"started_at":"2026-01-02T04:00:00Z","finished_at":null,"state":"failed","step":1,"message":"step 1: refused"},"runs":3}}`
	const path = "/containers/mc/schedules/nightly"
	f := newFakeAPI(t, map[string]string{"GET /containers/mc/schedules": `200 {"schedules":[` + schedule + `]}`, "PUT " + path: "200 " + schedule,
		"POST " + path + "/run": `200 {"message":"Schedule run requested"}`, "DELETE " + path: `200 {"message":"Schedule deleted successfully"}`})
	run := func(args ...string) string {
		out, _, err := command(t, f.env(), append([]string{"schedule"}, args...)...)
		require.NoError(t, err, args)
		return out
	}
	require.Regexp(t, `nightly +0 4 \* \* \* +UTC +1 +- .* failed +step 1: refused`, run("ls", "mc"))
	require.Equal(t, "nightly\n", run("ls", "mc", "-o", "name"))
	file := filepath.Join(t.TempDir(), "nightly.yaml")
	require.NoError(t, os.WriteFile(file, []byte("cron: 0 4 * * *\nsteps:\n  - power: restart\n"), 0o600))
	require.Equal(t, "mc nightly: 1 steps, 0 4 * * * in UTC\n", run("set", "mc", "nightly", "-f", file))
	require.JSONEq(t, `{"cron":"0 4 * * *","steps":[{"power":"restart"}]}`, bodyOf(f, "PUT "+path))
	require.Equal(t, "mc nightly: run requested\n", run("run", "mc", "nightly"))
	require.Equal(t, "mc nightly: removed\n", run("rm", "mc", "nightly"))
	require.NoError(t, os.WriteFile(file, []byte("cron: [\n"), 0o600))
	_, _, err := command(t, f.env(), "schedule", "set", "mc", "nightly", "-f", file)
	require.ErrorContains(t, err, "nightly.yaml: ")
	_, _, err = command(t, f.env(), "schedule", "set", "mc", "nightly")
	require.Equal(t, exitUsage, ExitCode(err))
	out, _, err := command(t, f.env(), "__complete", "schedule", "run", "mc", "")
	require.NoError(t, err)
	require.Contains(t, out, "nightly\t0 4 * * *")
}
