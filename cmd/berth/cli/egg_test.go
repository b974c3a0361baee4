package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/hack/test/eggs"
)

const smallEgg = `{"meta":{"version":"PTDL_v2"},"name":"Small","docker_images":{"Java 21":"a:21","Java 8":"a:8"},"startup":"run {{VERSION}}",
	"config":{"files":"{}","startup":"{\"done\":\"Done\"}","stop":"stop"},
	"variables":[{"name":"The version","env_variable":"VERSION","default_value":"","rules":"required|max:5"},
	{"name":"Query","env_variable":"QUERY_PORT","default_value":"27015","rules":"integer"}]}`

func eggFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "egg.json")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// TestImportEggPrints needs no daemon.
func TestImportEggPrints(t *testing.T) {
	path := eggFile(t, smallEgg)
	out, notes, err := command(t, nil, "import", "egg", path, "--name", "mc", "--set", "version=1.21", "--image", "Java 8", "--port", "127.0.0.1:25565", "--memory", "4GiB", "--user", "1000", "--start")
	require.NoError(t, err)
	require.Equal(t, "note: variable QUERY_PORT: \"27015\" looks like a port, and is not among those of the container\n"+
		"note: volume_id is missing: name a volume with --volume, or create all with --apply\n", notes)
	for _, line := range []string{"internal_id: mc\n", "image: a:8\n", "  VERSION: \"1.21\"\n", "  STARTUP: run {{VERSION}}\n", "  memory: 4724464026\n", "- ip: 127.0.0.1\n  port: 25565\n  protocol: udp\n",
		"user: \"1000\"\n", "power: running\n", "start_pattern: Done\n", "stop:\n  command: stop\n"} {
		require.Contains(t, out, line)
	}
	out, notes, err = command(t, nil, "import", "egg", path, "--name", "mc", "--set", "VERSION=1", "--port", "25565", "--port", "27015", "--volume", "v", "--strict", "-o", "json")
	require.NoError(t, err)
	require.Empty(t, notes)
	require.Contains(t, out, `"volume_id": "v"`)

	for _, c := range []struct {
		args []string
		want string
		code int
	}{
		{[]string{"--name", "mc"}, "variable VERSION (The version): is required: give --set VERSION=value", exitError},
		{[]string{"--name", "mc", "--set", "VERSION=123456", "--set", "QUERY_PORT=x"}, "variable VERSION (The version): \"123456\" breaks the rule max:5: give --set VERSION=value\n" +
			"variable QUERY_PORT (Query): \"x\" breaks the rule integer: give --set QUERY_PORT=value", exitError},
		{[]string{"--name", "mc", "--set", "VERSION=1", "--strict"}, path + ": the spec lacks 2 things of the egg, and --strict was given", exitError},
		{[]string{"--name", "mc", "--set", "NONE=1"}, path + ": variables.NONE: the egg has no such variable", exitError},
		{[]string{"--name", "mc", "--image", "Java 9"}, path + `: image: must be one of "Java 21", "Java 8"`, exitError},
		{[]string{"--name", "-"}, "--name is required: 1 to 63 letters, digits, _, . or -, which begin with a letter or digit", exitUsage},
		{[]string{"--name", "mc", "--set", "x"}, `invalid argument "x" for "--set" flag: must be name=value`, exitUsage},
		{[]string{"--name", "mc", "--port", "0"}, `invalid argument "0" for "--port" flag: must be a port between 1 and 65535, or address:port such as 127.0.0.1:25565`, exitUsage},
		{[]string{"--name", "mc", "--wait"}, "--wait and --timeout need --apply", exitUsage},
	} {
		out, _, err := command(t, nil, append([]string{"import", "egg", path}, c.args...)...)
		require.EqualError(t, err, c.want)
		require.Equal(t, c.code, ExitCode(err))
		require.Empty(t, out)
	}
	_, _, err = command(t, nil, "import", "egg", eggFile(t, strings.Repeat(" ", 2<<20)), "--name", "mc")
	require.ErrorContains(t, err, "egg: the egg is larger than 1048576 bytes")
}

func TestImportEggVariables(t *testing.T) {
	path := eggFile(t, smallEgg)
	out, _, err := command(t, nil, "import", "egg", path, "--variables")
	require.NoError(t, err)
	require.Equal(t, "VARIABLE    VALUE  RULES           EDITABLE  TITLE        ERROR\n"+
		"VERSION     -      required|max:5  yes       The version  is required\n"+
		"QUERY_PORT  27015  integer         yes       Query        -\n", out)
	out, _, err = command(t, nil, "__complete", "import", "egg", path, "--image", "")
	require.NoError(t, err)
	require.Equal(t, "Java 21\nJava 8\n:4\n", out)
	out, _, err = command(t, nil, "__complete", "import", "egg", path, "--set", "")
	require.NoError(t, err)
	require.Equal(t, "VERSION=\tThe version\nQUERY_PORT=27015\tQuery\n:4\n", out)
}

// TestImportedSpecsAreManifests reads what the command prints as `berth apply` does.
func TestImportedSpecsAreManifests(t *testing.T) {
	wild, _ := eggs.Set(t)
	for i, e := range wild {
		if i%6 != 0 {
			continue
		}
		args := []string{"import", "egg", eggFile(t, string(e.Content)), "--name", "mc", "--port", "25565"}
		for _, name := range e.Expect.NeedsValues {
			args = append(args, "--set", name+"=1")
		}
		asJSON, _, err := command(t, nil, append(args, "-o", "json")...)
		if err != nil && strings.Contains(err.Error(), "breaks the rule") {
			continue
		}
		require.NoError(t, err, e.ID)
		asYAML, _, err := command(t, nil, args...)
		require.NoError(t, err, e.ID)
		id, raw, err := readManifest([]byte(asYAML))
		require.NoError(t, err, e.ID)
		require.Equal(t, "mc", id)
		require.JSONEq(t, asJSON, string(raw), e.ID)
		var spec v1.ContainerSpec
		require.NoError(t, json.Unmarshal(raw, &spec), e.ID)
	}
}

func TestImportEggApplies(t *testing.T) {
	path := eggFile(t, smallEgg)
	answers := map[string]string{"POST /network/ports": `201 {}`, "POST /volumes": `201 {"volume_id":"3f2a91c0-0000-4000-8000-000000000000"}`, "POST /containers": `202 {"internal_id":"mc"}`}
	f := newFakeAPI(t, answers)
	args := []string{"import", "egg", path, "--name", "mc", "--set", "VERSION=1", "--port", "25565", "--apply"}
	out, _, err := command(t, f.env(), args...)
	require.NoError(t, err)
	require.Equal(t, "container/mc created with volume 3f2a91c0-0000-4000-8000-000000000000\n", out)
	seen := f.seen()
	require.Len(t, seen, 4)
	require.Equal(t, []string{`POST /network/ports {"ip":"0.0.0.0","port":25565,"protocol":"tcp"}`, `POST /network/ports {"ip":"0.0.0.0","port":25565,"protocol":"udp"}`, `POST /volumes {"name":"mc"}`}, seen[:3])
	require.Contains(t, seen[3], `"volume_id":"3f2a91c0-0000-4000-8000-000000000000"`)

	// A refused container leaves neither its volume nor its ports, and a port that was there before stays.
	f.set("POST /containers", `409:container_exists {"error":"Container already exists"}`)
	f.set("DELETE /volumes/3f2a91c0-0000-4000-8000-000000000000", `200 {}`)
	f.set("DELETE /network/ports/0.0.0.0/25565?protocol=udp", `409:port_bound {"error":"Port is in use"}`)
	f.set("DELETE /network/ports/0.0.0.0/25565?protocol=tcp", `200 {}`)
	_, _, err = command(t, f.env(), args...)
	require.EqualError(t, err, "container/mc: Container already exists\nthe port 25565/udp stays in the pool: Port is in use")
	require.Equal(t, exitConflict, ExitCode(err))
	require.Equal(t, []string{"DELETE /volumes/3f2a91c0-0000-4000-8000-000000000000", "DELETE /network/ports/0.0.0.0/25565?protocol=udp", "DELETE /network/ports/0.0.0.0/25565?protocol=tcp"}, f.seen()[8:])

	f.set("POST /network/ports", `409:port_exists {"error":"Port already exists"}`)
	f.set("POST /volumes", `507 {"error":"full"}`)
	_, _, err = command(t, f.env(), args...)
	require.EqualError(t, err, "volume: full")
	require.Len(t, f.seen(), 14)

	// Nothing is sent for a spec that is not complete, or lacks something.
	for _, more := range [][]string{{"--strict"}, {"--set", "VERSION=123456"}} {
		_, _, err = command(t, f.env(), append(args, more...)...)
		require.Error(t, err)
	}
	require.Len(t, f.seen(), 14)
}
