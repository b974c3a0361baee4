package cli

import (
	"encoding/json"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"
)

// exchange is what a command sends and prints.
type exchange struct {
	answers  map[string]string
	requests string // joined by newlines; empty: the keys of answers
	text     string // is in the output, with blanks squeezed
}

func exchanges() map[string]exchange {
	return map[string]exchange{
		"ps": {map[string]string{"GET /readyz": `200 {"status":"ok"}`, "GET /containers": "200 {\"containers\":[" + oneContainer + "]}"},
			"GET /readyz\nGET /containers",
			": ready CONTAINER STATE SINCE IMAGE PORTS MESSAGE mc exit - a:1 25565/tcp,[::1]:2/udp->3 cannot start, exit code 137, restarted 2 times"},
		"containers --label a=b --label c": {map[string]string{"GET /containers?label=a%3Db&label=c": "200 {\"containers\":[" + oneContainer + "]}"}, "",
			"CONTAINER STATE SINCE IMAGE PORTS MESSAGE mc exit - a:1 25565/tcp"},
		"containers mc": {map[string]string{"GET /containers/mc": "200 " + oneContainer}, "", "memory: 64MiB cpu: 10 cores"},
		"start mc lobby": {map[string]string{"POST /containers/mc/start": `200 {"message":"Container start initiated"}`, "POST /containers/lobby/start": `200 {"message":"ok"}`},
			"POST /containers/mc/start\nPOST /containers/lobby/start", "mc: Container start initiated lobby: ok"},
		"stop mc":            {map[string]string{"POST /containers/mc/stop": `200 {"message":"done"}`}, "", "mc: done"},
		"kill mc":            {map[string]string{"POST /containers/mc/kill": `200 {"message":"done"}`}, "", "mc: done"},
		"restart mc":         {map[string]string{"POST /containers/mc/restart": `200 {"message":"done"}`}, "", "mc: done"},
		"reinstall mc":       {map[string]string{"POST /containers/mc/reinstall": `200 {"message":"done"}`}, "", "mc: done"},
		"send mc say -n hi":  {map[string]string{"POST /containers/mc/command": `200 {}`}, `POST /containers/mc/command {"command":"say -n hi"}`, "mc: command sent"},
		"delete mc":          {map[string]string{"DELETE /containers/mc": `200 {"message":"going"}`}, "", "mc: going"},
		"delete ../x":        {map[string]string{"DELETE /containers/..%2Fx": `200 {"message":"going"}`}, "", "../x: going"},
		"delete mc --volume": {map[string]string{"DELETE /containers/mc?volume=true": `200 {"message":"going"}`}, "", "mc: going"},
		"logs mc -n 3":       {map[string]string{"GET /containers/mc/logs?tail=3": `200 {"lines":[{"data":"one"},{"data":"two"}]}`}, "", "one two"},
		"logs mc --install":  {map[string]string{"GET /containers/mc/install-logs?tail=100": `200 {"lines":[]}`}, "", ""},
		"events -n 2": {map[string]string{"GET /events?last=2": `200 {"events":[{"seq":8,"container":"mc","event":"event","data":"exit"}]}`},
			"", "mc exit"},
		"events --since 0": {map[string]string{"GET /events?since=0&limit=1000": `200 {"events":[]}`},
			"", ""},
		"volumes": {map[string]string{"GET /volumes": `200 {"volumes":[{"volume_id":"v","name":"survival","size":1048576,"used_by":["a","b"],"ready":true}]}`}, "",
			"VOLUME NAME SIZE LIMIT USED BY READY CREATED v survival 1MiB no limit a,b true"},
		"volumes create --storage fast":       {map[string]string{"POST /volumes": `201 {"volume_id":"v"}`}, `POST /volumes {"storage":"fast"}`, "v"},
		"volumes create --size-limit 1KiB":    {map[string]string{"POST /volumes": `201 {"volume_id":"v"}`}, `POST /volumes {"size_limit":1024}`, "v"},
		"volumes change v --name w":           {map[string]string{"PATCH /volumes/v": `200 {"volume_id":"v"}`}, `PATCH /volumes/v {"name":"w"}`, "v: changed"},
		"volumes change v -l a=b -l c=d":      {map[string]string{"PATCH /volumes/v": `200 {"volume_id":"v"}`}, `PATCH /volumes/v {"labels":{"a":"b","c":"d"}}`, "v: changed"},
		"volumes change v -l=":                {map[string]string{"PATCH /volumes/v": `200 {"volume_id":"v"}`}, `PATCH /volumes/v {"labels":{}}`, "v: changed"},
		"volumes create --name w --label a=b": {map[string]string{"POST /volumes": `201 {"volume_id":"v"}`}, `POST /volumes {"name":"w","labels":{"a":"b"}}`, "v"},
		"volumes delete v":                    {map[string]string{"DELETE /volumes/v": `200 {}`}, "", "v: deleted"},
		"ports": {map[string]string{"GET /network/ports": `200 {"ports":[{"ip":"::","port":1,"protocol":"tcp","in_use":true,"container":"mc","firewall":{"state":"applied"}}]}`}, "",
			"ADDRESS PROTOCOL IN USE CONTAINER FIREWALL [::]:1 tcp yes mc applied"},
		"ports add :: 1-9 tcp": {map[string]string{"POST /network/ports/bulk": `200 {"added_count":9}`}, `POST /network/ports/bulk {"ip":"::","ports":"1-9","protocol":"tcp"}`, "9 added"},
		"ports delete :: 1-2,9": {map[string]string{"POST /network/ports/bulk-delete": `200 {"deleted_count":3,"skipped":[]}`},
			`POST /network/ports/bulk-delete {"ports":[{"ip":"::","port":1},{"ip":"::","port":2},{"ip":"::","port":9}]}`, "3 deleted"},
		"ports delete ::1 5 --protocol udp": {map[string]string{"POST /network/ports/bulk-delete": `200 {"deleted_count":1,"skipped":[]}`},
			`POST /network/ports/bulk-delete {"ports":[{"ip":"::1","port":5,"protocol":"udp"}]}`, "1 deleted"},
		"token create --ttl 8h --scope read,power --container mc --single-use": {map[string]string{"POST /auth/tokens": `200 {"token":"berth_1","expires_at":"then"}`},
			`POST /auth/tokens {"ttl":"8h","remove_on_use":true,"scopes":["read","power"],"containers":["mc"]}`, "berth_1"},
		"token list":      {map[string]string{"GET /auth/tokens": `200 {"tokens":[{"id":"t","scopes":["read"],"containers":[],"expires_at":"then"}]}`}, "", "TOKEN NAME SCOPES CONTAINERS EXPIRES t - read - then"},
		"token revoke t":  {map[string]string{"DELETE /auth/tokens/t": `200 {}`}, "", "t: revoked"},
		"wait mc exit":    {map[string]string{"GET /containers/mc": "200 " + oneContainer}, "", "mc is exit"},
		"wait mc deleted": {map[string]string{"GET /containers/mc": `404 {"error":"Container not found"}`}, "", "mc is deleted"},
	}
}

func TestCommands(t *testing.T) {
	for line, x := range exchanges() {
		t.Run(line, func(t *testing.T) { x.check(t, line) })
	}
}

// check runs a command in each output format.
func (x exchange) check(t *testing.T, line string) {
	f := newFakeAPI(t, x.answers)
	out, _, err := command(t, f.env(), strings.Fields(line)...)
	require.NoError(t, err)
	want := x.requests
	for key := range x.answers {
		want = orElse(want, key)
	}
	require.Equal(t, want, strings.Join(f.requests, "\n"))
	require.Contains(t, strings.Join(strings.Fields(out), " "), x.text)

	line = strings.TrimSuffix(line, " -o wide")
	out, _, err = command(t, f.env(), append([]string{"-o", "json"}, strings.Fields(line)...)...)
	require.NoError(t, err)
	var fromJSON, fromYAML []any
	for decoder := json.NewDecoder(strings.NewReader(out)); decoder.More(); {
		fromJSON = append(fromJSON, nil)
		require.NoError(t, decoder.Decode(&fromJSON[len(fromJSON)-1]), out)
	}
	out, _, err = command(t, f.env(), append([]string{"-o", "yaml"}, strings.Fields(line)...)...)
	require.NoError(t, err)
	for decoder := yaml.NewDecoder(strings.NewReader(out)); ; {
		var document any
		if err := decoder.Decode(&document); err == io.EOF {
			break
		}
		require.NoError(t, err)
		fromYAML = append(fromYAML, document)
	}
	text, err := json.Marshal(fromYAML)
	require.NoError(t, err)
	want2, err := json.Marshal(fromJSON)
	require.NoError(t, err)
	require.JSONEq(t, string(want2), string(text))
}

func TestCompletionOffersNoFiles(t *testing.T) {
	for line, want := range map[string]string{"start ": ":4\n", "logs ": ":4\n", "status -o ": "table\nwide\njson\nyaml\nname\n:4\n", "logs -o ": "table\nwide\njson\nyaml\n:4\n", "apply -f ": ":0\n", "config check ": ":0\n"} {
		out, _, err := command(t, nil, append([]string{"__complete"}, strings.Split(line, " ")...)...)
		require.NoError(t, err)
		require.Equal(t, want, out, line)
	}
}

func orElse(text, other string) string {
	if text == "" {
		return other
	}
	return text
}

// TestHelpHasAnExample requires of each command an example that runs it.
func TestHelpHasAnExample(t *testing.T) {
	root := NewRoot(Options{})
	var check func(path []string)
	seen := 0
	check = func(path []string) {
		cmd, _, err := root.Find(path)
		require.NoError(t, err)
		for _, child := range cmd.Commands() {
			check(append(append([]string{}, path...), child.Name()))
		}
		if cmd.Name() == "help" || cmd.Name() == "completion" {
			return
		}
		seen++
		line := strings.Join(append([]string{"berth"}, path...), " ")
		require.Contains(t, cmd.Example, line, path)
		for example := range strings.SplitSeq(cmd.Example, "\n") {
			require.Regexp(t, "^  [a-zB-]", example, path)
		}
		out, _, err := command(t, nil, append(path, "--help")...)
		require.NoError(t, err)
		require.NotContains(t, out, "--token ", "every user of the host can read arguments")
		require.Equal(t, overridable(line), strings.Contains(out, "--reconcile.workers"), "%s: the keys of the configuration are for serve", line)
		require.Equal(t, cmd.Flag("url") != nil && cmd.Flag("token-file") == nil && line != "berth doctor", cmd.Flag("context") != nil, line)
	}
	check(nil)
	require.Greater(t, seen, 35)
}

// overridable reports whether a command has a flag for each key of the configuration.
func overridable(line string) bool {
	return line == "berth serve" || line == "berth config check" || line == "berth config show"
}

// TestErrorsNameRemedy runs commands that cannot succeed.
func TestErrorsNameRemedy(t *testing.T) {
	f := newFakeAPI(t, map[string]string{"GET /readyz": "200 pong", "GET /containers": "200 pong", "GET /volumes": "500 <html>",
		"POST /network/ports/bulk-delete": `200 {"deleted_count":1,"skipped":[{"ip":"::","port":2,"protocol":"tcp","container":"mc"}]}`})
	own := writeFile(t, "authorization: {token: "+clientToken+"}\nserver: {port: 1}\n")
	bad := writeFile(t, "authorization: {token: "+clientToken+"}\nserver: {prot: 1}\n")
	secret := writeFile(t, "authorization: {token: "+clientToken+"}\n")
	for name, c := range map[string]struct {
		env  []string
		args string
		want string
	}{
		"no configuration":  {[]string{"BERTH_CONFIG=/does/not/exist.yaml"}, "status", "there is no configuration at /does/not/exist.yaml: start the daemon (systemctl start berth, or make run in its sources)"},
		"bad configuration": {[]string{"BERTH_CONFIG=" + bad}, "status", bad + ": server.prot:"},
		"no daemon":         {[]string{"BERTH_CONFIG=" + own}, "status", "no daemon answers at http://127.0.0.1:1 (from " + own + ")"},
		"no such address":   {[]string{"BERTH_CONFIG=" + own}, "status --url http://127.0.0.1:2", "no daemon answers at http://127.0.0.1:2 (from --url)"},
		"not of berth":      {f.env(), "containers", "is not a berth daemon"},
		"no text":           {f.env(), "volumes", "500 Internal Server Error"},
		"wrong token":       {append(f.env(), "BERTH_TOKEN=berth_x"), "containers", "the token came from BERTH_TOKEN"},
		"not found":         {f.env(), "start nope", "start nope: Route not found"},
		"another host":      {[]string{"BERTH_CONFIG=" + secret}, "status --url http://192.0.2.1", "is not sent to another host: set BERTH_TOKEN"},
		"no address":        {f.env(), "status --url 127.0.0.1:8070", `"127.0.0.1:8070" is not a URL such as`},
		"any free port":     {[]string{"BERTH_CONFIG=" + secret, "BERTH_SERVER_PORT=0"}, "status", "name it with --url"},
		"no TLS there":      {append(f.env(), "BERTH_URL="+strings.Replace(f.server.URL, "http", "https", 1)), "status", "it does not use TLS: its URL is " + f.server.URL},
		"context remove":    {[]string{"HOME=" + t.TempDir()}, "context remove nowhere", `there is no context "nowhere"`},
		"no arguments":      {f.env(), "ps mc", `unknown command "mc" for "berth ps"; usage: berth ps`},
		"arguments":         {f.env(), "start", "usage: berth start <id>..."},
		"a misspelt token":  {f.env(), "token revoek x", `unknown command "revoek" for "berth token"`},
		"a misspelt config": {f.env(), "config chekc", `unknown command "chekc" for "berth config"`},
		"a misspelt verb":   {f.env(), "restrat mc", `unknown command "restrat" for "berth"`},
		"nothing like it":   {f.env(), "xyzzy", `unknown command "xyzzy" for "berth"`},
		"fewer than none":   {f.env(), "events -n -4", "--last must be 0 to 10000"},
		"before the first":  {f.env(), "events --since -5", "must not be negative"},
		"show's file":       {[]string{"BERTH_CONFIG=" + bad}, "config show", bad + ": server.prot:"},
		"ports that stay":   {f.env(), "ports delete :: 1-2", "containers use 1 of these ports, which were not deleted: the first is 2/tcp, used by mc"},
		"no ports":          {f.env(), "ports delete :: 2-1", "ports: must be ports and ranges"},
		"output":            {f.env(), "status -o xml", "-o must be table, wide, json, yaml or name for berth ps, not \"xml\""},
		"no names":          {f.env(), "logs mc -o name", "-o must be table, wide, json or yaml for berth logs"},
		"passing state":     {f.env(), "wait mc starting", `cannot wait for "starting": wait for ready, running, exit, failed, deleted`},
		"unknown state":     {f.env(), "wait mc runnning", `cannot wait for "runnning": wait for ready, running, exit, failed, deleted`},
		"a lost file":       {f.env(), "apply -f /does/not/exist", "no such file"},
		"nothing to change": {f.env(), "volumes change v", "--name or --label"},
		"a bad size":        {f.env(), "volumes create --size-limit many", "--size-limit"},
		"unknown key":       {[]string{"BERTH_CONFIG=" + secret}, "config show server.prot", "is not a key of the configuration"},
	} {
		t.Run(name, func(t *testing.T) {
			out, errOut, err := command(t, c.env, strings.Fields(c.args)...)
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, out+errOut+err.Error(), clientToken)
		})
	}
}

// TestAlertsNameCommands: a command that an alert's description names exists.
func TestAlertsNameCommands(t *testing.T) {
	rules, err := os.ReadFile("../../../hack/deploy/alerts.yaml")
	require.NoError(t, err)
	named := regexp.MustCompile(`description: .*berth ([a-z]+) (--|\{\{)`).FindAllSubmatch(rules, -1)
	require.NotEmpty(t, named)
	for _, m := range named {
		found, _, err := NewRoot(Options{}).Find([]string{string(m[1])})
		require.NoError(t, err, "%s", m[0])
		require.True(t, found.HasParent(), "%s", m[0])
	}
}

// TestFlagErrors name the flag, what was given and what it takes.
func TestFlagErrors(t *testing.T) {
	for args, want := range map[string]string{
		"volumes --url foo":                       `"--url" flag: "foo" is not a URL such as http://127.0.0.1:8070`,
		"doctor --url foo":                        `"--url" flag: "foo" is not a URL such as http://127.0.0.1:8070`,
		"volumes --url http://127.0.0.1:22222222": `"http://127.0.0.1:22222222" is not a URL such as http://127.0.0.1:8070: its port 22222222 is not in 1 to 65535`,
		"token create --ttl 5x":                   `"--ttl" flag: "5x" is not a duration such as 90s, 1h30m or 7d`,
		"backup policy set a --keep 1 --every x":  `"--every" flag: "x" is not a duration such as 90s, 1h30m or 7d`,
		"volumes create --size-limit x":           `"--size-limit" flag: "x" is not a size such as 512KiB, 1MiB or 10GiB`,
		"volumes create -l x":                     `"x" for "-l, --label" flag`,
		"events --follow=maybe":                   `"maybe" for "-f, --follow" flag`,
		"wait mc running --timeout 5":             `"5" for "--timeout" flag`,
		"events --type foo":                       `"--type" flag: "foo" is not one of event, daemon_message, backup, restore, pull, schedule`,
		"events -n many":                          `"many" for "-n, --last" flag`,
		"events -n 1 --since 1":                   `[last since]`,
		"events --container":                      `--container`,
		"apply":                                   `"file"`,
		"config check --reconcile.workers many":   `"--reconcile.workers" flag: must be a whole number`,
	} {
		_, _, err := command(t, nil, strings.Fields(args)...)
		require.ErrorContains(t, err, want, args)
		require.Equal(t, exitUsage, ExitCode(err), args)
	}
}

func TestCompletionScripts(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		out, _, err := command(t, nil, "completion", shell)
		require.NoError(t, err)
		require.Contains(t, out, "berth", shell)
	}
	out, _, err := command(t, nil, "completion")
	require.NoError(t, err)
	require.Contains(t, out, "powershell")
}
