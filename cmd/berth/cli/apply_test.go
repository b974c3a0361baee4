package cli

import (
	"encoding/json"
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
	const body = `{"internal_id":"a","image":"a:1","ports":[{"ip":"0.0.0.0","port":1,"protocol":"tcp"}],"limits":{"memory":0,"cpu":0.5}}`
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
	dir := writeManifests(t, map[string]string{"a.yaml": "imgae: x\n---\nimage: z\n---\ninternal_id: twice", "b.yaml": "internal_id: twice", "c.yaml": "\tx"})
	_, err := readManifests([]string{dir}, nil)
	require.EqualError(t, err, dir+"/a.yaml: document 1: imgae: is not a field of a container\n"+
		dir+"/a.yaml: document 2: internal_id is required: it names the container\n"+
		dir+"/b.yaml: container/twice: is described in "+dir+"/a.yaml: document 3 too\n"+
		dir+"/c.yaml: found character that cannot start any token")
	large := writeFile(t, strings.Repeat("#", maxManifestFile+1))
	for path, want := range map[string]string{
		t.TempDir(): "the directory has no files *.yaml", "/does/not/exist": "no such file", large: "is larger than 16 MiB",
		writeFile(t, "# nothing"): "there is no container in it",
	} {
		_, err := readManifests([]string{path}, nil)
		require.ErrorContains(t, err, want)
	}
	_, err = readManifests([]string{"-", "-"}, strings.NewReader("internal_id: a"))
	require.ErrorContains(t, err, "standard input can be read once")
}

func TestDecodeSpec(t *testing.T) {
	spec, err := decodeSpec([]byte(`
internal_id: "123"
image: a:1.10
start_pattern: 2026-01-02
install_script: null
user: ~
tty: false
env: {PORT: "25565", DAY: 2026-01-02, EMPTY: ""}
limits: {memory: 1e9, cpu: .5, io_weight: 100, swap: 1_000}
stop: {timeout: 90, signal: INT}
install_timeout: 1h
ports: [{<<: &base {ip: 0.0.0.0, port: 1}, protocol: tcp}, {<<: *base, protocol: udp}]
`))
	require.NoError(t, err)
	got, err := json.Marshal(spec)
	require.NoError(t, err)
	require.JSONEq(t, `{"internal_id":"123","image":"a:1.10","start_pattern":"2026-01-02","tty":false,
		"env":{"PORT":"25565","DAY":"2026-01-02","EMPTY":""},
		"limits":{"memory":1000000000,"cpu":0.5,"io_weight":100,"swap":1000},"stop":{"timeout":"1m30s","signal":"INT"},"install_timeout":"1h0m0s",
		"ports":[{"ip":"0.0.0.0","port":1,"protocol":"tcp"},{"ip":"0.0.0.0","port":1,"protocol":"udp"}]}`, string(got))
}

// TestDecodeSpecChangesNoText: YAML reads 1.10 as 1.1, 022 as 18 and yes as true, so that a text which
// looks like one of them must be in quotes.
func TestDecodeSpecChangesNoText(t *testing.T) {
	for text, field := range map[string]string{"image: 1.10": "image", "volume_id: 0x10": "volume_id", "cpuset: yes": "cpuset",
		"env: {VERSION: 1.20}": "env.VERSION", "env: {UMASK: 022}": "env.UMASK", "stop: {signal: 15}": "stop.signal"} {
		_, err := decodeSpec([]byte(text))
		require.EqualError(t, err, field+": must be a text: put it in quotes", text)
	}
}

func TestDecodeSpecNamesField(t *testing.T) {
	for text, want := range map[string]string{
		"image: a\nimgae: b":              "imgae: is not a field of a container",
		"Image: a":                        "Image: is not a field of a container",
		"image: [a]":                      "image: must be a single value",
		"image: a\nimage: b":              `line 2: key "image" already set in map`,
		"limits:\n  memory: 64MiB":        "limits.memory: must be a whole number",
		"limits: {memory: 1.5}":           "limits.memory: must be a whole number",
		"limits: {memory: '1'}":           "limits.memory: must be a whole number",
		"limits: {io_weight: 70000}":      "limits.io_weight: must be a whole number",
		"limits: {cpu: many}":             "limits.cpu: must be a number",
		"tty: 1":                          "tty: must be true or false",
		"stop: {timeout: soon}":           "stop.timeout: must be a duration such as 90s, 1h30m or 7d, or a number of seconds",
		"started_at: today":               "started_at: must be a time such as 2006-01-02T15:04:05Z",
		"ports:\n- {ip: a}\n- {port: x}":  "ports[1].port: must be a whole number",
		"ports: {}":                       "ports: must be a list",
		"env: [a]":                        "env: must be a mapping",
		"- a":                             "must be a mapping",
		"ports: &p [*p]":                  `anchor 'p' value contains itself`,
		"tty: 1\nlimits: {memory: false}": "limits.memory: must be a whole number",
	} {
		_, err := decodeSpec([]byte(text))
		require.EqualError(t, err, want, text)
	}
}

// TestDecodeSpecBoundsAliases: aliases that multiply are refused.
func TestDecodeSpecBoundsAliases(t *testing.T) {
	var bomb strings.Builder
	bomb.WriteString("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n")
	for i := 1; i < 9; i++ {
		fmt.Fprintf(&bomb, "a%d: &a%d [%s]\n", i, i, strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 10))
	}
	_, err := decodeSpec([]byte(bomb.String()))
	require.ErrorContains(t, err, "excessive aliasing")
}

// TestDecodeSpecOfPrintedContainer reads what `berth containers <id> -o json` prints.
func TestDecodeSpecOfPrintedContainer(t *testing.T) {
	spec, err := decodeSpec([]byte(oneContainer))
	require.NoError(t, err)
	require.Equal(t, "mc", spec.InternalID)
	require.Len(t, spec.Ports, 2)
}
