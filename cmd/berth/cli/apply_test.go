package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// writeManifests writes files below a new directory and returns its path.
func writeManifests(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	return dir
}

const (
	created   = `200 {"changed":true,"actions":[{"action":"create","reason":"there is no such container"}]}`
	recreated = `200 {"changed":true,"actions":[{"action":"recreate","reason":"image changed"}]}`
	unchanged = `200 {"changed":false,"actions":[]}`
)

func TestApply(t *testing.T) {
	f := newFakeAPI(t, map[string]string{
		"PUT /containers/a?dry_run=true": created, "PUT /containers/a": `201 {"internal_id":"a"}`,
		"PUT /containers/b?dry_run=true": recreated, "PUT /containers/b": `200 {"internal_id":"b"}`,
		"PUT /containers/c?dry_run=true": unchanged, "PUT /containers/c": `200 {"internal_id":"c"}`,
	})
	dir := writeManifests(t, map[string]string{
		"1.yaml": "internal_id: a\nimage: a:1\nports:\n- {ip: 0.0.0.0, port: 1, protocol: tcp}\nlimits: {cpu: 0.5}\n---\n# nothing\n---\ninternal_id: b\n",
		"2.json": `{"internal_id": "c"}`, "readme.md": "not this",
	})
	const body = `{"image":"a:1","internal_id":"a","limits":{"cpu":0.5},"ports":[{"ip":"0.0.0.0","port":1,"protocol":"tcp"}]}`
	out, _, err := command(t, f.env(), "apply", "-f", dir)
	require.NoError(t, err)
	require.Equal(t, "container/a created\ncontainer/b configured\ncontainer/c unchanged\n", out)
	require.Equal(t, []string{
		"PUT /containers/a?dry_run=true " + body, `PUT /containers/b?dry_run=true {"internal_id":"b"}`, `PUT /containers/c?dry_run=true {"internal_id":"c"}`,
		"PUT /containers/a " + body, `PUT /containers/b {"internal_id":"b"}`, `PUT /containers/c {"internal_id":"c"}`,
	}, f.requests)

	f.requests = nil
	out, _, err = command(t, f.env(), "apply", "-f", dir+"/2.json", "-f", dir+"/1.yaml", "--dry-run")
	require.NoError(t, err)
	require.Equal(t, "container/c unchanged (dry run)\ncontainer/a created (dry run)\n  create: there is no such container\n"+
		"container/b configured (dry run)\n  recreate: image changed\n", out)
	require.Len(t, f.requests, 3)
	out, _, _ = command(t, f.env(), "apply", "--dry-run", "-f", dir+"/1.yaml", "-f", dir+"/2.json", "-o", "json")
	require.Equal(t, `{"container":"a","source":"`+dir+`/1.yaml: document 1","result":"created","changed":true,"actions":[{"action":"create","reason":"there is no such container"}]}
{"container":"b","source":"`+dir+`/1.yaml: document 3","result":"configured","changed":true,"actions":[{"action":"recreate","reason":"image changed"}]}
{"container":"c","source":"`+dir+`/2.json","result":"unchanged","changed":false,"actions":[]}
`, out)
	for _, format := range []string{"json", "yaml", "name"} {
		out, _, err = command(t, f.env(), "apply", "-f", dir, "-o", format)
		require.NoError(t, err)
		require.Equal(t, 3, strings.Count(out, map[string]string{"name": "\n", "json": `"internal_id"`, "yaml": "internal_id:"}[format]), out)
	}
}

// TestApplyValidatesFirst has an invalid document behind a valid one.
func TestApplyValidatesFirst(t *testing.T) {
	f := newFakeAPI(t, map[string]string{
		"PUT /containers/a?dry_run=true": created, "PUT /containers/bad?dry_run=true": `400 {"error":"image: is required"}`,
		"PUT /containers/worse?dry_run=true": `404 {"error":"Volume not found"}`,
	})
	dir := writeManifests(t, map[string]string{"1.yaml": "internal_id: a\n---\ninternal_id: bad\n", "2.yaml": "internal_id: worse\n"})
	out, _, err := command(t, f.env(), "apply", "-f", dir)
	require.EqualError(t, err, dir+"/1.yaml: document 2: container/bad: image: is required\n"+dir+"/2.yaml: container/worse: Volume not found")
	require.Empty(t, out)
	for _, r := range f.requests {
		require.Contains(t, r, "dry_run=true")
	}
}

// TestApplyConflict goes on after a conflict, and tries it again when its turn comes.
func TestApplyConflict(t *testing.T) {
	taken := `409 {"error":"Port is already bound by container x"}`
	f := newFakeAPI(t, map[string]string{
		"PUT /containers/a?dry_run=true": taken,
		"PUT /containers/b?dry_run=true": recreated, "PUT /containers/b": `200 {}`,
	})
	dir := writeManifests(t, map[string]string{"1.yaml": "internal_id: a\n---\ninternal_id: b\n"})
	out, _, err := command(t, f.env(), "apply", "-f", dir)
	require.EqualError(t, err, dir+"/1.yaml: document 1: container/a: Port is already bound by container x")
	require.Equal(t, exitConflict, ExitCode(err))
	require.Equal(t, "container/b configured\n", out)
	require.Len(t, f.requests, 4)
}

// TestApplyWaits waits for a container that should run, and for one that should not.
func TestApplyWaits(t *testing.T) {
	t.Parallel()
	dry := `200 {"changed":true,"actions":[{"action":"create","reason":"there is no such container"}]}`
	f := newFakeAPI(t, map[string]string{
		"PUT /containers/on?dry_run=true": dry, "PUT /containers/off?dry_run=true": dry, "PUT /containers/bad?dry_run=true": dry,
		"PUT /containers/on": `201 {"power":"running"}`, "PUT /containers/off": `201 {"power":"stopped"}`, "PUT /containers/bad": `201 {"power":"stopped"}`,
		"GET /containers/on": state("on", "running", ""), "GET /containers/off": state("off", "ready", ""),
		"GET /containers/bad": state("bad", "failed", `,"message":"no such script"`),
	})
	file := filepath.Join(t.TempDir(), "all.yaml")
	require.NoError(t, os.WriteFile(file, []byte("internal_id: 'on'\nimage: a\n---\ninternal_id: 'off'\nimage: a\n---\ninternal_id: bad\nimage: a\n"), 0o600))
	out, _, err := command(t, f.env(), "apply", "-f", file, "--wait", "--timeout", "1m")
	require.EqualError(t, err, "bad is failed: no such script")
	require.Equal(t, "container/on created\ncontainer/off created\ncontainer/bad created\noff is installed\non is running\n", out)
	out, _, err = command(t, f.env(), "apply", "-f", file, "--wait", "-o", "name")
	require.Error(t, err)
	require.Equal(t, "off\non\n", out)
	_, _, err = command(t, f.env(), "apply", "-f", file, "--wait", "--dry-run")
	require.Equal(t, exitUsage, ExitCode(err))
}

func TestReadManifests(t *testing.T) {
	dir := writeManifests(t, map[string]string{"b.yml": "internal_id: b", "a.yaml": "internal_id: a1\n---\n---\ninternal_id: a2\n", "c.json": `{"internal_id":"c"}`})
	require.NoError(t, os.Mkdir(dir+"/d.yaml", 0o700))
	list, err := readManifests([]string{"-", dir}, strings.NewReader("internal_id: in"))
	require.NoError(t, err)
	require.Equal(t, []string{"container/in", "container/a1", "container/a2", "container/b", "container/c"}, names(list, manifest.String))
	require.Equal(t, dir+"/a.yaml: document 3", list[2].source)
	require.Equal(t, dir+"/b.yml", list[3].source)
}

// TestReadManifestsFaults expects every fault of all files in one error.
func TestReadManifestsFaults(t *testing.T) {
	dir := writeManifests(t, map[string]string{"a.yaml": "- x\n---\nimage: z\n---\ninternal_id: twice", "b.yaml": "internal_id: twice", "c.yaml": "\tx"})
	_, err := readManifests([]string{dir}, nil)
	require.EqualError(t, err, dir+"/a.yaml: document 1: internal_id is required: it is the text that names the container\n"+
		dir+"/a.yaml: document 2: internal_id is required: it is the text that names the container\n"+
		dir+"/b.yaml: container/twice: is described in "+dir+"/a.yaml: document 3 too\n"+
		dir+"/c.yaml: found character that cannot start any token")
	for path, want := range map[string]string{
		t.TempDir(): "the directory has no files *.yaml", "/does/not/exist": "no such file",
		writeFile(t, "# nothing"): "there is no container in it",
	} {
		_, err := readManifests([]string{path}, nil)
		require.ErrorContains(t, err, want)
	}
	_, err = readManifests([]string{"-", "-"}, strings.NewReader("internal_id: a"))
	require.ErrorContains(t, err, "standard input can be read once")
}

// TestReadManifest: the daemon receives what a document says, with what YAML expands. It checks
// the fields and their types.
func TestReadManifest(t *testing.T) {
	id, spec, err := readManifest([]byte(`
internal_id: "123"
image: 1.10
start_pattern: 2026-01-02
install_script: null
env: {PORT: "25565", EMPTY: ""}
limits: {memory: 1073741824, cpu: .5, swap: 1_000}
stop: {timeout: 90, signal: INT}
ports: [{<<: &base {ip: 0.0.0.0, port: 1}, protocol: tcp}, {<<: *base, protocol: udp}]
imgae: x
`))
	require.NoError(t, err)
	require.Equal(t, "123", id)
	require.JSONEq(t, `{"internal_id":"123","image":1.1,"start_pattern":"2026-01-02","install_script":null,"env":{"PORT":"25565","EMPTY":""},
		"limits":{"memory":1073741824,"cpu":0.5,"swap":1000},"stop":{"timeout":90,"signal":"INT"},
		"ports":[{"ip":"0.0.0.0","port":1,"protocol":"tcp"},{"ip":"0.0.0.0","port":1,"protocol":"udp"}],"imgae":"x"}`, string(spec))

	var bomb strings.Builder
	bomb.WriteString("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n")
	for i := 1; i < 9; i++ {
		fmt.Fprintf(&bomb, "a%d: &a%d [%s]\n", i, i, strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 10))
	}
	for text, want := range map[string]string{
		"internal_id: a\ninternal_id: b": `line 2: key "internal_id" already set in map`,
		"internal_id: 1":                 "internal_id is required: it is the text that names the container",
		"ports: &p [*p]":                 "anchor 'p' value contains itself",
		bomb.String():                    "excessive aliasing",
	} {
		_, _, err := readManifest([]byte(text))
		require.ErrorContains(t, err, want)
	}
	id, spec, err = readManifest([]byte(oneContainer))
	require.NoError(t, err, "what `berth containers mc -o json` prints is YAML too")
	require.Equal(t, "mc", id)
	require.JSONEq(t, oneContainer, string(spec))
}
