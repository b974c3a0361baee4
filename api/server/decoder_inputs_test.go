package server

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
)

// input is an endpoint with a valid body, and the fields that a test makes invalid.
type input struct {
	request string // "POST /network/ports"
	good    string
	fields  []field
}

// field is one field with invalid values.
type field struct {
	path     string // "ports[0].port"
	kind     string // "a string": what is said of a value of another type
	required bool
	bad      map[string]string // more values, in JSON, and what is said of each
}

// mistyped holds the values that do not have a type.
var mistyped = map[string][]string{
	"a string":                            {`5`, `true`, `[]`, `{}`},
	"an integer":                          {`"5"`, `1.5`, `1e3`, `true`, `[]`, `{}`, `99999999999999999999`},
	"a number":                            {`"5"`, `true`, `[]`, `{}`, `1e999`},
	"true or false":                       {`"true"`, `1`, `[]`, `{}`},
	"an array":                            {`"x"`, `5`, `{}`},
	"an object":                           {`"x"`, `5`, `[]`, `true`},
	"a duration such as 90s, 1h30m or 7d": {`"x"`, `""`, `true`, `[]`, `"1y"`},
	"an integer between 0 and 65535":      {`"5"`, `-1`, `65536`, `1.5`},
}

const (
	badIP       = "must be an IPv4 or IPv6 address"
	badPort     = "must be between 1 and 65535"
	badProtocol = "must be tcp or udp"
	badRanges   = "must be ports and ranges between 1 and 65535, such as 25565-25600,30000"
	badID       = "must be 1 to 63 letters, digits, _, . or -, and begin with a letter or digit"
	badImage    = "must be an image reference such as debian:12"
	badHostname = "must be at most 63 letters, digits, - or ., where each label begins and ends with a letter or digit, such as mc.example.com"
	badMount    = "must be an absolute path other than /"
	badTimezone = "must be the name of an IANA time zone such as Europe/Berlin"
	badNUL      = "must not hold NUL"
	badTTL      = "must be a duration such as 90s, 1h30m or 7d"
	required    = "is required"
)

// binds returns the fields of a port at a path.
func binds(at string) []field {
	return []field{
		{at + "ip", "a string", true, map[string]string{`""`: badIP, `"localhost"`: badIP, `"127.0.0.01"`: badIP, `"1.2.3"`: badIP, `"::g"`: badIP, `"fe80::1%eth0"`: badIP}},
		{at + "port", "an integer", true, map[string]string{`0`: badPort, `-1`: badPort, `65536`: badPort}},
		{at + "protocol", "a string", true, map[string]string{`""`: badProtocol, `"TCP"`: badProtocol, `"icmp"`: badProtocol}},
	}
}

// bindings returns the fields of a list of port bindings.
func bindingFields() []field {
	return append(binds("ports[0]."),
		field{"ports[0].container_port", "an integer", false, map[string]string{`-1`: badPort, `65536`: badPort}},
		field{path: "ports[0]", kind: "an object"})
}

const badKernelMount = "must not be in /proc, /sys or /dev"

const badStart = "must be 0s, or between 1s and 30d"

func text(n int) string { return strconv.Quote(strings.Repeat("x", n)) }

// specs are the fields of a container, for creation and apply, with what is refused. Fields
// without a row are refused values of another type.
var specs = withAllFields(append([]field{
	{"image", "a string", true, map[string]string{`""`: required, `"-x"`: badImage, `"a b"`: badImage, `"Debian:12"`: badImage, `"a:b:c"`: badImage, `"a@sha256:0"`: badImage, `"http://a"`: badImage, text(513): badImage}},
	{"pull_policy", "a string", false, map[string]string{`"Always"`: "must be missing, always or never"}},
	{"volume_id", "a string", true, map[string]string{`""`: required}},
	{"startup_command", "a string", false, map[string]string{`"a\u0000"`: badNUL, text(128_001): "must be at most 128000 bytes"}},
	{"start_pattern", "a string", false, map[string]string{`"("`: "must be an RE2 expression: missing closing ): `(`", text(4097): "must be at most 4096 bytes"}},
	{"install_script", "a string", false, map[string]string{`"\u0000"`: badNUL, text(128_001): "must be at most 128000 bytes"}},
	{"install_image", "a string", false, map[string]string{`"-x"`: badImage}},
	{"install_mount", "a string", false, map[string]string{`"/"`: badMount, `"/mnt/.."`: badMount, `"mnt"`: badMount, `"/x"`: "must not be the target of mounts[0]",
		`"/proc"`: badKernelMount, `"/sys/x"`: badKernelMount, `"/dev"`: badKernelMount}},
	{"install_entrypoint", "a string", false, map[string]string{`"zsh"`: "must be sh, bash or ash", `"/bin/bash"`: "must be sh, bash or ash"}},
	{"start_timeout", badTTL[len("must be "):], false, map[string]string{`"1ms"`: badStart, `"31d"`: badStart, `"-1s"`: badStart}},
	{"install_timeout", badTTL[len("must be "):], false, map[string]string{`"31d"`: "must be between 0s and 30d"}},
	{path: "ports", kind: "an array"},
	{path: "limits", kind: "an object"},
	{"limits.memory", "an integer", false, map[string]string{`-1`: "must be 0 or at least 6291456 bytes (6 MiB)", `6291455`: "must be 0 or at least 6291456 bytes (6 MiB)"}},
	{"limits.cpu", "a number", false, map[string]string{`-1`: "must be 0 or between 0.01 and 4096 cores", `0.001`: "must be 0 or between 0.01 and 4096 cores", `4097`: "must be 0 or between 0.01 and 4096 cores"}},
	{"limits.swap", "an integer", false, map[string]string{`-2`: "must be at least 0, or -1 for no limit", `1`: "needs limits.memory"}},
	{"limits.oom_kill", "true or false", false, map[string]string{`false`: "false needs limits.memory"}},
	{"limits.pids", "an integer", false, map[string]string{`-1`: "must not be negative"}},
	{"limits.disk", "an integer", false, map[string]string{`-1`: "must not be negative"}},
	{"limits.io_weight", "an integer between 0 and 65535", false, map[string]string{`9`: "must be 0 or between 10 and 1000", `1001`: "must be 0 or between 10 and 1000"}},
	{"limits.zzz", "", false, map[string]string{`1`: "unknown field"}},
	{"env", "an object", false, map[string]string{`{"":"x"}`: "must have names that are not empty and hold no NUL"}},
	{"env.K", "a string", false, map[string]string{`"\u0000"`: badNUL}},
	{"cpuset", "a string", false, map[string]string{`"x"`: "must be a list of cpus such as 0-2,4"}},
	{"install_user", "a string", false, map[string]string{`"a b"`: "must be a name or number, or user:group"}},
	{"user", "a string", false, map[string]string{`"a b"`: "must be a name or number, or user:group"}},
	{"workdir", "a string", false, map[string]string{`"a"`: "must be an absolute path", `"/a/../b"`: "must be an absolute path"}},
	{"hostname", "a string", false, map[string]string{`"a_b"`: badHostname, text(64): badHostname}},
	{"shm_size", "an integer", false, map[string]string{`1`: "must be 0 or at least 65536 bytes (64 KiB)", `-1`: "must be 0 or at least 65536 bytes (64 KiB)"}},
	{"timezone", "a string", false, map[string]string{`"Berlin"`: badTimezone, `"Local"`: badTimezone, `"../UTC"`: badTimezone, `"Europe/"`: badTimezone}},
	{"labels", "an object", false, map[string]string{`{"":"x"}`: "must have names that are not empty and hold no NUL"}},
	{"labels.k", "a string", false, map[string]string{`"\u0000"`: badNUL}},
	{path: "mounts", kind: "an array"},
	{path: "config_files", kind: "an array"},
	{path: "config_files[0]", kind: "an object"},
	{"config_files[0].path", "a string", true, map[string]string{`"../x"`: badConfigPath, `"."`: badConfigPath}},
	{"config_files[0].format", "a string", true, map[string]string{`"toml"`: "must be one of properties, ini, yaml, json, xml, text"}},
	{"config_files[0].set", "an object", false, map[string]string{`{"": "x"}`: "must be a key of 1 to 1024 bytes without NUL and line breaks"}},
	{path: "config_files[0].edits", kind: "an array"},
	{path: "config_files[0].edits[0]", kind: "an object"},
	{"config_files[0].edits[0].key", "a string", true, map[string]string{`""`: "must be a key of 1 to 1024 bytes without NUL and line breaks"}},
	{"config_files[0].edits[0].value", "a string", true, map[string]string{`"a\nb"`: "must be one line"}},
	{"config_files[0].edits[0].if", "a string", false, map[string]string{`"regex:("`: "must be an RE2 expression: missing closing ): `(`"}},
	{path: "config_files[0].append", kind: "true or false"},
	{path: "config_files[0].create", kind: "true or false"},
	{path: "mounts[0]", kind: "an object"},
	{"mounts[0].source", "a string", false, map[string]string{`"a"`: "must be an absolute path", `"/etc"`: "must be below a directory of docker.allowed_mounts"}},
	{"mounts[0].target", "a string", false, map[string]string{`"/"`: "must be an absolute path other than /", `"/home/container"`: "is mounted twice"}},
	{path: "mounts[0].read_only", kind: "true or false"},
	{"stop", "an object", false, map[string]string{`{"command":"stop","signal":"INT"}`: "must have a command or a signal, not both"}},
	{"stop.command", "a string", false, map[string]string{`"\u0000"`: badNUL}},
	{"stop.signal", "a string", false, map[string]string{`"SIGNONE"`: "must be a signal's name such as SIGTERM or SIGINT"}},
	{"stop.timeout", badTTL[len("must be "):], false, map[string]string{`"2h"`: "must be between 0s and 1h"}},
	{path: "restart_policy", kind: "an object"},
	{"restart_policy.mode", "a string", false, map[string]string{`"sometimes"`: "must be never, on-failure or always"}},
	{"registry_auth", "a string", false, map[string]string{`"other.example"`: "must be a host of docker.registries"}},
	{"power", "a string", false, map[string]string{`"on"`: "must be running or stopped"}},
}, bindingFields()...))

const (
	badConfigPath = "must be the path of a file in the volume, without .., such as config/server.properties"

	goodPort = `{"ip":"127.0.0.1","port":2000,"protocol":"tcp"}`
	goodSpec = `"image":"i","volume_id":"{volume}","ports":[{"ip":"127.0.0.1","port":1001,"protocol":"tcp"}],"mounts":[{"source":"/srv/x","target":"/x"}],` +
		`"config_files":[{"path":"a.ini","format":"ini","set":{"a.b":"c"},"edits":[{"key":"a.c","value":"d"}]}]`
)

// withAllFields returns rows, and one for each other field of a container's spec.
func withAllFields(rows []field) []field {
	kinds := map[reflect.Kind]string{reflect.String: "a string", reflect.Bool: "true or false", reflect.Slice: "an array", reflect.Map: "an object", reflect.Struct: "an object"}
	for _, f := range v1.Fields(reflect.TypeFor[v1.ContainerSpec]()) {
		kind := f.Type
		if kind.Kind() == reflect.Pointer {
			kind = kind.Elem()
		}
		if named := slices.ContainsFunc(rows, func(row field) bool { return row.path == f.Name }); !named && f.Access != "-" && f.Name != "internal_id" {
			rows = append(rows, field{path: f.Name, kind: kinds[kind.Kind()]})
		}
	}
	return rows
}

var inputs = []input{
	{"POST /network/ports", goodPort, binds("")},
	{"POST /network/ports/bulk", `{"ip":"127.0.0.1","ports":"3000-3001","protocol":"udp"}`, []field{
		binds("")[0], binds("")[2],
		{"ports", "a string", true, map[string]string{`""`: badRanges, `"0"`: badRanges, `"65536"`: badRanges, `"5-1"`: badRanges, `"1-"`: badRanges,
			`"-1"`: badRanges, `"1,,2"`: badRanges, `"01"`: badRanges, `"a"`: badRanges, `"7,5-9"`: "names port 7 twice"}},
	}},
	{"POST /network/ports/bulk-delete", `{"ports":[{"ip":"127.0.0.1","port":1001,"protocol":"tcp"}]}`, []field{
		{path: "ports", kind: "an array", required: true}, {path: "ports[0]", kind: "an object"}, binds("ports[0].")[0], binds("ports[0].")[1],
		{"ports[0].protocol", "a string", false, map[string]string{`"sctp"`: badProtocol}},
		{"ports[0].zzz", "", false, map[string]string{`1`: "unknown field"}},
	}},
	{"PUT /network/ports/127.0.0.1/1001/use", `{"in_use":true}`, []field{{path: "in_use", kind: "true or false", required: true}}},
	{"POST /auth/tokens", `{"ttl":"1h","remove_on_use":false,"scopes":["read"],"containers":["mc"]}`, []field{
		{"ttl", "a string", false, map[string]string{`""`: badTTL, `"soon"`: badTTL, `"1"`: badTTL, `"1y"`: badTTL, `"0s"`: "must be at least 1s",
			`"-1h"`: "must be at least 1s", `"999ms"`: "must be at least 1s", `"31d"`: "must be at most 720h0m0s (authorization.max_ttl)", `"721h"`: "must be at most 720h0m0s (authorization.max_ttl)"}},
		{path: "remove_on_use", kind: "true or false"},
		{"scopes", "an array", false, map[string]string{`[]`: "must name at least one scope"}},
		{"scopes[0]", "a string", false, map[string]string{`"root"`: "must be one of read, power, console, files, network, admin, arrive", `""`: "must be one of read, power, console, files, network, admin, arrive"}},
		{"containers", "an array", false, map[string]string{`[]`: "must name at least one container"}},
		{"containers[0]", "a string", false, map[string]string{`""`: required, `"a b"`: badID}},
	}},
	{"POST /containers", `{"internal_id":"new",` + goodSpec + `}`, append([]field{
		{"internal_id", "a string", true, map[string]string{`""`: required, `"-a"`: badID, `"a/b"`: badID, `"ä"`: badID, text(64): badID}}}, specs...)},
	{"PUT /containers/new", `{` + goodSpec + `}`, append([]field{
		{"internal_id", "a string", false, map[string]string{`"other"`: "must equal the id in the URL"}}}, specs...)},
	{"POST /containers/mc/reinstall", `{"image":"i","install_script":"true"}`, []field{
		{"image", "a string", false, map[string]string{`""`: required, `"-x"`: badImage}},
		{"install_script", "a string", false, map[string]string{`"\u0000"`: badNUL}},
	}},
	{"POST /containers/mc/rebind-network", `{"ports":[{"ip":"127.0.0.1","port":1001,"protocol":"tcp"}]}`,
		append(bindingFields(), field{path: "ports", kind: "an array", required: true})},
	{"POST /containers/mc/command", `{"command":"x"}`, []field{{path: "command", kind: "a string", required: true}}},
	{"POST /volumes", `{"size_limit":1000}`, []field{{"size_limit", "an integer", false, map[string]string{`-1`: "must not be negative"}}}},
}

// wholes returns bodies that are invalid as a whole, with their errors.
func wholes(good string) map[string]string {
	return map[string]string{
		good + ` {}`: "body: has data after the JSON value", good + `x`: "body: has data after the JSON value", good + `,`: "body: has data after the JSON value",
		`[]`: "body: must be an object", `null`: "body: must be an object", `"x"`: "body: must be an object", `5`: "body: must be an object",
		`{`: "body: is not JSON: it ends too early, after 1 bytes", `x`: "body: is not JSON: invalid character 'x' looking for beginning of value, at byte 1",
		good[:len(good)-1]: fmt.Sprintf("body: is not JSON: it ends too early, after %d bytes", len(good)-1), "{\"\xff\":1}": "body: must be UTF-8",
		good[:len(good)-1] + `,"zzz":1}`: "zzz: unknown field",
	}
}

// TestFieldErrors sends every invalid value: each is 400 with a text that names this
// field and no other, and the store does not change.
func TestFieldErrors(t *testing.T) {
	h := newHarness(t)
	h.settings.change(func(c *v1.Config) { c.Docker.AllowedMounts = []string{"/srv"} })
	volume := h.volume()
	h.ports(1001)
	h.container("mc", volume)
	h.phase("mc", v1.Ready)
	before, tried := h.store.Revision(), 0
	for _, in := range inputs {
		good := strings.ReplaceAll(in.good, "{volume}", volume)
		refuse := func(body, want string) {
			method, path, _ := strings.Cut(in.request, " ")
			a := h.do(request{method: method, path: path, body: body})
			line := in.request + " " + body[:min(len(body), 64)]
			require.Equal(t, 400, a.status, line)
			require.Equal(t, want, a.json["error"], line)
			require.Equal(t, "invalid_request", a.header.Get("X-Error-Code"), line)
			require.Equal(t, before, h.store.Revision(), line)
			tried++
		}
		for body, want := range wholes(good) {
			refuse(body, want)
		}
		for _, f := range in.fields {
			for value, want := range f.values() {
				refuse(with(t, good, f.path, value), f.path+": "+want)
			}
		}
	}
	require.Empty(t, h.console.all())
	t.Logf("%d bad inputs of %d endpoints", tried, len(inputs))
	for _, in := range inputs { // what the faults were put into is good
		method, path, _ := strings.Cut(in.request, " ")
		a := h.do(request{method: method, path: path, body: strings.ReplaceAll(in.good, "{volume}", volume)})
		require.Less(t, a.status, 300, "%s: %s", in.request, a.raw)
		switch in.request {
		case "POST /containers":
			h.must("DELETE", "/containers/new", nil)
			h.purge("new")
		case "POST /containers/mc/reinstall":
			h.phase("mc", v1.Ready)
		case "PUT /containers/new":
			h.must("DELETE", "/containers/new", nil)
		case "POST /network/ports/bulk-delete":
			h.ports(1001)
		}
	}
}

// values returns all invalid values of a field, each with its error.
func (f field) values() map[string]string {
	all := map[string]string{}
	for _, value := range mistyped[f.kind] {
		all[value] = "must be " + f.kind
	}
	if f.required {
		all["null"], all[""] = required, required
	}
	for value, want := range f.bad {
		all[value] = want
	}
	return all
}

var step = regexp.MustCompile(`[^.\[\]]+`)

// with returns a body with another value at a path, or without it if the value is empty.
func with(t *testing.T, body, path, value string) string {
	t.Helper()
	var tree any
	require.NoError(t, json.Unmarshal([]byte(body), &tree))
	out, err := json.Marshal(replaced(tree, step.FindAllString(path, -1), value))
	require.NoError(t, err)
	return string(out)
}

func replaced(tree any, path []string, value string) any {
	if len(path) == 0 {
		return json.RawMessage(value)
	}
	if list, is := tree.([]any); is {
		i, _ := strconv.Atoi(path[0])
		list[i] = replaced(list[i], path[1:], value)
		return list
	}
	fields, is := tree.(map[string]any)
	if !is {
		fields = map[string]any{}
	}
	fields[path[0]] = replaced(fields[path[0]], path[1:], value)
	if len(path) == 1 && value == "" {
		delete(fields, path[0])
	}
	return fields
}

// TestQueryErrors: errors of query parameters name the parameter like a field.
func TestQueryErrors(t *testing.T) {
	h := newHarness(t)
	h.ports(1001)
	h.container("mc", h.volume(), 1001)
	before := h.store.Revision()
	random, one := "GET /network/ports/random?", "/network/ports/127.0.0.1/1001?protocol="
	for call, want := range map[string]string{
		random + "ip=localhost": "ip: " + badIP, random + "ip=1.2.3.04": "ip: " + badIP, random + "ip=fe80::1%25eth0": "ip: " + badIP,
		random + "protocol=TCP": "protocol: " + badProtocol, random + "protocol=tcp,udp": "protocol: " + badProtocol,
		"GET " + one + "x": "protocol: " + badProtocol, "DELETE " + one + "x": "protocol: " + badProtocol,
		"PUT " + strings.Replace(one, "?", "/use?", 1) + "x": "protocol: " + badProtocol,
		"DELETE /containers/mc?volume=maybe":                 "volume: must be true or false",
		"PUT /containers/mc?dry_run=maybe":                   "dry_run: must be true or false",
		"GET /containers?stats=maybe":                        "stats: must be true or false",
	} {
		method, path, _ := strings.Cut(call, " ")
		body := object{"in_use": true}
		if strings.HasPrefix(path, "/containers") {
			body = object{"image": "i", "volume_id": "ffffffff"}
		}
		h.refuse(400, want, method, path, body)
		require.Equal(t, before, h.store.Revision(), call)
	}
}

// TestDuplicateFields: a request may have a binding once, and a field once.
func TestDuplicateFields(t *testing.T) {
	h := newHarness(t)
	volume := h.volume()
	h.ports(1001)
	h.container("mc", volume)
	h.phase("mc", v1.Ready)
	before := h.store.Revision()
	mapped := object{"ip": "::ffff:127.0.0.1", "port": 1001, "protocol": "tcp"}
	twice := "ports[1]: is the same binding twice"
	h.refuse(400, twice, "POST", "/containers", object{"internal_id": "new", "image": "i", "volume_id": volume, "ports": []object{binding(1001), mapped}})
	h.refuse(400, twice, "PUT", "/containers/new", object{"image": "i", "volume_id": volume, "ports": []object{binding(1001), mapped}})
	h.refuse(400, twice, "POST", "/containers/mc/rebind-network", object{"ports": []object{binding(1001), mapped}})
	h.refuse(400, "Port already exists in pool", "POST", "/network/ports", mapped)
	h.refuse(400, "Port already exists in pool: 127.0.0.1:1001", "POST", "/network/ports/bulk", object{"ip": "127.0.0.1", "ports": "1000-1001", "protocol": "tcp"})
	a := h.do(request{method: "POST", path: "/network/ports", body: `{"ip":"x","port":1002,"protocol":"tcp","ip":"127.0.0.1"}`})
	require.Equal(t, []any{400, "ip: is set twice"}, []any{a.status, a.json["error"]})
	a = h.do(request{method: "POST", path: "/containers", body: `{"internal_id":"new","image":"i","volume_id":"` + volume + `","env":{"A":"1","A":"2"}}`})
	require.Equal(t, []any{400, "env.A: is set twice"}, []any{a.status, a.json["error"]})
	require.Equal(t, before, h.store.Revision())
	h.ports(1002)
	refs := object{"ports": []object{{"ip": "127.0.0.1", "port": 1002}, {"ip": "127.0.0.1", "port": 1002, "protocol": "tcp"}}}
	require.Equal(t, 1.0, h.must("POST", "/network/ports/bulk-delete", refs).json["deleted_count"], "counted once")
}
