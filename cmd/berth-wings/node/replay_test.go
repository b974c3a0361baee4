package node_test

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"

	"berth/api/client"
	"berth/hack/test/berthtest"
	"berth/hack/test/enginetest"
	"berth/hack/test/paneltest"
)

// record is one line of a transcript: what a real node of Pelican's answered, or called its panel with.
type record struct {
	Kind, Method, Path, To string
	Query                  any
	Headers                map[string]string
	Body, Answer           any
	Status                 int

	Socket                     int
	Origin, Dir, Event, Reason string
	Args                       []any
	Code                       int

	User, By      string // of a session of SFTP
	Commands, Out []string
	RC            int
	Entries       []entry

	Parts map[string]string // of a transfer, as the other node has received them
}

// entry is an entry of activity, without its time.
type entry struct {
	User              *string
	Server, Event, IP string
	Metadata          map[string]any
}

// acts reports whether a record is of the panel's or of a browser's, and not of the node's.
func (r record) acts() bool {
	return r.Kind == "request" || r.Kind == "event" && strings.HasPrefix(r.Dir, "browser")
}

// remotePath returns the path of a call of the panel's interface for nodes; empty: it is none.
func (r record) remotePath() string {
	path, is := strings.CutPrefix(r.Path, "/api/remote")
	if !is {
		return ""
	}
	return path
}

// isState reports whether a record is the report of a server's state.
func (r record) isState() bool { return strings.HasSuffix(r.Path, "/container/status") }

// difference is an answer of the bridge that is meant to be another than the recorded one.
type difference struct {
	status int
	error  string // the sentence; empty: that of the transcript
	why    string
}

const missing = "The requested resources was not found on the system."

// differences are those of all transcripts, by file and number of the request.
var differences = map[string]difference{
	"files 78":   {404, missing, "a path outside the server is not found; the recorded node failed"},
	"files 80":   {404, missing, "as above"},
	"power 2":    {502, "Cannot send commands to a stopped server instance.", "a server without a container is offline like any other"},
	"browser 14": {404, "The requested resource was not found on this server.", "a link with another algorithm is none; the recorded node failed"},
	"browser 16": {404, "The requested resource was not found on this server.", "nor is one with another signature"},
	"browser 18": {404, "The requested resource was not found on this server.", "nor is one that has expired"},

	"backup 77":       {404, "The requested backup was not found on this server.", "a backup that is missing is not found; the recorded node failed"},
	"transfer-in 4":   {403, "Forbidden.", "a token that is not the panel's; the recorded node failed"},
	"transfer-out 26": {409, "Server is not currently being transferred.", "the recorded node fails whatever is cancelled here"},

	"pterodactyl/backup 24":       {404, "The requested backup was not found on this server.", "it is one of another server"},
	"pterodactyl/backup 26":       {400, "The backup identifier must be a valid UUID.", "as Pelican's node"},
	"pterodactyl/backup 76":       {404, missing, "a file that is missing"},
	"pterodactyl/backup 78":       {404, "The requested backup was not found on this server.", "as for Pelican"},
	"pterodactyl/s3 24":           {400, "The provided backup link returned an invalid response status: 404 Not Found", "as Pelican's node"},
	"pterodactyl/beta 19":         {200, "", "Ctrl-C lets the server save; the recorded node has killed it"},
	"pterodactyl/transfer-in 1":   {401, "The required authorization headers were not present in the request.", "as Pelican's node"},
	"pterodactyl/transfer-in 3":   {403, "Forbidden.", "as for Pelican"},
	"pterodactyl/transfer-out 19": {409, "Server is not currently being transferred.", "as for Pelican"},

	// Pterodactyl's node fails where Pelican's has an answer for the user: the bridge answers as Pelican's.
	"pterodactyl/power 2":    {502, "Cannot send commands to a stopped server instance.", "as for Pelican"},
	"pterodactyl/files 6":    {404, missing, "a file that is missing"},
	"pterodactyl/files 8":    {400, "Cannot perform that action: file is a directory.", "the recorded node cuts its answer off"},
	"pterodactyl/files 12":   {404, "The requested directory was not found on the server.", "a folder that is missing"},
	"pterodactyl/files 18":   {400, "Part of the path being created is not a directory (ENOTDIR).", "a folder over a file"},
	"pterodactyl/files 66":   {404, missing, "the deletion of what is missing"},
	"pterodactyl/files 68":   {404, missing, "a path outside the server is not found"},
	"pterodactyl/files 70":   {404, missing, "as above"},
	"pterodactyl/files 91":   {404, missing, "the deletion of what is missing"},
	"pterodactyl/browser 14": {404, "The requested resource was not found on this server.", "as for Pelican"},
	"pterodactyl/browser 16": {404, "The requested resource was not found on this server.", "as for Pelican"},
	"pterodactyl/browser 18": {404, "The requested resource was not found on this server.", "as for Pelican"},
	"pterodactyl/browser 20": {404, missing, "a file that is missing"},
}

// texts are contents of files that the bridge answers instead of the recorded ones, and why.
var texts = map[string]string{
	"environment 37": escaped, "pterodactyl/environment 36": escaped,
	"environment 42": proxies, "pterodactyl/environment 41": proxies,
	"environment 44": netIni, "pterodactyl/environment 43": netIni,
	"beta 38": server0, "beta 73": server0,
}

const (
	// Java writes such digits too.
	escaped = "#Minecraft server properties\nserver-port=27301\nmotd=A \\u00A7aServer\nmax-players=20\nenable-query=true\n"
	// The order and the comments of a file stay, and an index is one of a list, which Pelican's node does not know.
	proxies = "listeners:\n- host: \"0.0.0.0:27301\"\n  query: 1\n" +
		"servers:\n  lobby:\n    address: \"172.18.0.1:25566\"\n  game:\n    address: 10.0.0.9:25567\n"
	netIni = "[net]\nport = 27301\n; a remark\nhost = x\nnew=1\n"
	// SERVER_IP is an address that the container has.
	server0 = "container@home:~$ sh game.sh 1.0 128 0.0.0.0"
)

// refusedOf are the operations of SFTP that the bridge refuses instead of the recorded ones.
var refusedOf = map[string][]string{
	"sftp-day 22":             {`dest open "/secret.txt": Permission denied`}, // it is on the list of denied files
	"pterodactyl/sftp-day 20": {`dest open "/secret.txt": Permission denied`},
}

// absent are the records that the bridge has no counterpart of, and why.
var absent = map[string]string{
	"create 21":                       "berth starts a server by itself after its installation",
	"pterodactyl/create 21":           "as for Pelican",
	"crash 35":                        "berth restarts a server by itself after a crash",
	"pterodactyl/crash 31":            "as for Pelican",
	"beta 65":                         "as in crash",
	"pterodactyl/beta 59":             "as in crash",
	"beta 80":                         "berth reports a kill by its end",
	"beta 81":                         "as above",
	"pterodactyl/beta 72":             "as for Pelican",
	"pterodactyl/environment 39.flag": "the kind of a value stays, as by Pelican's node",
	"pterodactyl/backup 39":           "it is the backup that was refused",
	"transfer-out 19":                 "an empty line that no server has printed",
	"transfer-out 20":                 "nor has an installer",
	"transfer-out 21":                 "as above",
	"transfer-out 22":                 "as above",
	"transfer-out 23":                 "as above",
	"transfer-out 33":                 "it is started by hand, which is not in the transcript: settle does it",
	"transfer-out 34":                 "as above",
	"restart 3":                       "berth has the settings of a server that runs",
	"pterodactyl/restart 7":           "as for Pelican",
	"restart 4":                       "the state is known from berth, and not changed",
	"pterodactyl/create 8":            "as for Pelican",
	"pterodactyl/console 73":          "as for Pelican",
	"pterodactyl/rights 17":           "as for Pelican, one of the two",
	"pterodactyl/suspend 11":          "the sockets of a server that is suspended are closed, as by Pelican's node",
	"pterodactyl/suspend 12":          "as above",
	"pterodactyl/transfer-out 17":     "so are those of one that is deleted, without a close frame",
	"pterodactyl/remove 28":           "so are those of one that is deleted, without a close frame",
	"create 8":                        "it is opened while the server is installed: TestSocketOfInstallation has its events",
	"console 86":                      "berth reports a kill by its end",
	"console 87":                      "as above",
	"console 26":                      "the page looks for such lines itself",
	"rights 15":                       "the status is not sent, instead of an error about it",
	"rights 16":                       "nor are statistics",
	"rights 63":                       "the flood before it is not in the transcript",
	"revoke 24":                       "another user's socket stays; the recorded node has closed all",
	"revoke 25":                       "so does one that nobody has authenticated",
	"remove 30":                       "an empty line of an installer that does not run",
	"remove 31":                       "an empty line that no server has printed",
}

// before is what happens before a record that the transcript does not show.
var before = map[string]func(*testing.T, *player){
	"environment 0":             func(t *testing.T, p *player) { p.environment(t) },
	"pterodactyl/environment 0": func(t *testing.T, p *player) { p.environment(t) },
	"pterodactyl/revoke 0": func(t *testing.T, p *player) { // berth restarts it again
		_, err := p.berth.API.Containers().Do(t.Context(), gamma, client.Stop)
		require.NoError(t, err)
	},
	"pterodactyl/sync 9": func(t *testing.T, p *player) {
		p.watch, _ = p.Dial(t, alpha, p.panel.URL)
		p.watch.Send("auth", token(t, []string{"websocket.connect"}, map[string]any{"scope": nil}))
		p.watch.Until("status", "running")
	},
	"restart 2":                   func(t *testing.T, p *player) { p.stop(); p.run(p.whole) },
	"pterodactyl/restart 5":       func(t *testing.T, p *player) { p.stop(); p.run(p.whole) },
	"transfer-in 8":               func(_ *testing.T, p *player) { p.panel.TransferHere(delta) },
	"transfer-in 12":              func(_ *testing.T, p *player) { p.panel.TransferHere(delta) },
	"pterodactyl/transfer-in 5":   func(_ *testing.T, p *player) { p.panel.TransferHere(delta) },
	"pterodactyl/transfer-in 9":   func(_ *testing.T, p *player) { p.panel.TransferHere(delta) },
	"transfer-out 16":             func(_ *testing.T, p *player) { p.panel.RemoveServer(delta) }, // it is another node's
	"pterodactyl/transfer-out 14": func(_ *testing.T, p *player) { p.panel.RemoveServer(delta) },
	"transfer-out 30":             func(_ *testing.T, p *player) { p.panel.TransferAway(alpha) },
	"pterodactyl/transfer-out 23": func(_ *testing.T, p *player) { p.panel.TransferAway(alpha) },
	"expiry 6":                    func(t *testing.T, p *player) { p.checks <- time.Now().Add(9*time.Minute + 30*time.Second) },
	"expiry 7":                    func(t *testing.T, p *player) { p.checks <- time.Now().Add(10*time.Minute + 30*time.Second) },
	"expiry 8":                    func(t *testing.T, p *player) { p.checks <- time.Now().Add(11 * time.Minute) },
	"pterodactyl/expiry 9":        func(t *testing.T, p *player) { p.checks <- time.Now().Add(9*time.Minute + 30*time.Second) },
	"pterodactyl/expiry 12":       func(t *testing.T, p *player) { p.checks <- time.Now().Add(10*time.Minute + 30*time.Second) },
	"pterodactyl/expiry 15":       func(t *testing.T, p *player) { p.checks <- time.Now().Add(11 * time.Minute) },
}

// environment sets what an administrator has changed before the start: the variables that the next transcript has too.
func (p *player) environment(t *testing.T) {
	t.Helper()
	object := p.read(t, "sync")[3].Answer.(map[string]any)
	settings := object["settings"].(map[string]any)
	settings["environment"].(map[string]any)["MOTD"] = "hello world"
	build := settings["build"].(map[string]any)
	build["memory_limit"], build["cpu_limit"], build["disk_space"] = 128, 50, 64
	p.panel.SetServer(t, jsonOf(t, object))
}

// delta is the server that comes and goes in the transcripts, and arrivals are the bodies with which it comes.
const delta = "d4d4d4d4-4444-4444-8444-d4d4d4d4d4d4"

var arrivals = map[string]func(*testing.T) string{
	"transfer-in 0": nothing, "transfer-in 4": nothing, "transfer-in 6": nothing, "transfer-in 8": torn, "transfer-in 12": moved,
	"pterodactyl/transfer-in 1": nothing, "pterodactyl/transfer-in 3": nothing, "pterodactyl/transfer-in 5": torn, "pterodactyl/transfer-in 9": moved,
}

func nothing(*testing.T) string { return "" }

// moved returns a transfer of delta.
func moved(t *testing.T) string {
	t.Helper()
	const game = "echo loading the world\necho 'Done (0.1s)! For help, type help'\nread line\necho stopping the world\n"
	archive := archiveOf(t, map[string]string{"game.sh": game, "world/level.dat": "moved here"})
	digest := sha256.Sum256([]byte(archive))
	body, _ := arrival(t, archive, hex.EncodeToString(digest[:]))
	return strings.ReplaceAll(body, boundaryOf(body), "xxMOVExx")
}

// torn returns one whose checksum is wrong.
func torn(t *testing.T) string {
	t.Helper()
	body, _ := arrival(t, archiveOf(t, map[string]string{"game.sh": "x"}), strings.Repeat("0", 64))
	return strings.ReplaceAll(body, boundaryOf(body), "xxMOVExx")
}

// received requires that the other node has received a transfer as the recorded one has.
func (p *player) received(t *testing.T, want record) {
	t.Helper()
	r := <-p.other
	require.Equal(t, []string{"chunked"}, r.TransferEncoding)
	require.Equal(t, "Bearer x", r.Header.Get("Authorization"))
	require.True(t, strings.HasPrefix(r.Header.Get("Content-Type"), "multipart/form-data; boundary="))
	require.NotNil(t, r.MultipartForm)
	var names []string
	for name := range r.MultipartForm.File {
		names = append(names, name)
	}
	for name, values := range r.MultipartForm.Value {
		names = append(names, name)
		f, err := r.MultipartForm.File["archive"][0].Open()
		require.NoError(t, err)
		sum := sha256.New()
		_, err = io.Copy(sum, f)
		require.NoError(t, err)
		require.Equal(t, []string{hex.EncodeToString(sum.Sum(nil))}, values)
	}
	slices.Sort(names)
	require.Equal(t, slices.Sorted(maps.Keys(want.Parts)), names)
}

// gamma is the server that the transcripts create.
const gamma = "c3c3c3c3-3333-4333-8333-c3c3c3c3c3c3"

// tokensOf are the tokens of requests that a transcript shows by their claims alone.
var tokensOf = map[string]func(t *testing.T, claims map[string]any, last string) string{
	"restart 9":                 old,
	"pterodactyl/restart 12":    old,
	"transfer-in 4":             forged,
	"pterodactyl/transfer-in 3": forged,
	"browser 4":                 again,
	"browser 12":                again,
	"browser 14":                other512,
	"browser 16":                forged,
	"rights 21":                 forged,
	"rights 25":                 expired,
	"pterodactyl/rights 20":     forged,
	"pterodactyl/rights 24":     expired,
	"pterodactyl/rights 28":     old,
	"pterodactyl/revoke 2": func(t *testing.T, claims map[string]any, _ string) string {
		claims["jti"] = "acacd71792f6c2ba392d8ba289108b43"
		return paneltest.Sign(t, claims)
	},
	"pterodactyl/browser 4":  again,
	"pterodactyl/browser 12": again,
	"pterodactyl/browser 14": other512,
	"pterodactyl/browser 16": forged,
	"pterodactyl/browser 18": expired,
	"pterodactyl/browser 22": again,
	"rights 29":              old,
	"revoke 16":              old,
	"revoke 2": func(t *testing.T, claims map[string]any, _ string) string {
		claims["jti"] = "79b18d6030f845f62eda5229130e984f2b95ae2ea434d5156ef05f78b9926cc7"
		return paneltest.Sign(t, claims)
	},
	"browser 18": expired,
}

// again returns the last token, a second time.
func again(_ *testing.T, _ map[string]any, last string) string { return last }

// other512 returns a token with another algorithm.
func other512(t *testing.T, claims map[string]any, _ string) string {
	token, err := jwt.NewWithClaims(jwt.SigningMethodHS512, jwt.MapClaims(claims)).SignedString([]byte(paneltest.Token))
	require.NoError(t, err)
	return token
}

// forged returns a token with another signature.
func forged(t *testing.T, claims map[string]any, _ string) string {
	return paneltest.Sign(t, claims) + "x"
}

// expired returns a token that is valid no more.
func expired(t *testing.T, claims map[string]any, _ string) string {
	claims["exp"] = time.Now().Unix()
	return paneltest.Sign(t, claims)
}

// old returns a token that was issued before the node began.
func old(t *testing.T, claims map[string]any, _ string) string {
	claims["iat"] = time.Now().Add(-time.Hour).Unix()
	return paneltest.Sign(t, claims)
}

// TestTranscripts sends the requests of recorded days to the bridge: each is answered with the same
// status, headers, sentence, fields and types, but for the differences. The panel is called in the same
// order, and each socket has the same events in the same order.
func TestTranscripts(t *testing.T) {
	t.Parallel()
	replay(t, "", "access", "system", "create", "describe", "console", "rights", "reinstall", "power", "environment", "sync",
		"files", "browser", "sftp-day",
		"backup", "s3", "suspend", "crash", "revoke", "beta", "transfer-in", "transfer-out", "activity", "expiry", "update", "restart", "remove")
}

// TestTranscriptsOfPterodactyl is TestTranscripts with the days of the other family.
func TestTranscriptsOfPterodactyl(t *testing.T) {
	t.Parallel()
	replay(t, "pterodactyl/", "access", "system", "create", "describe", "console", "rights", "reinstall", "power", "environment",
		"sync", "files", "browser", "sftp-day", "backup", "s3", "suspend", "crash", "revoke", "beta", "transfer-in", "transfer-out", "activity", "expiry", "restart", "remove")
}

// replay plays transcripts of a family one after the other.
func replay(t *testing.T, family string, names ...string) {
	w := newWorld(t)
	for _, image := range []string{"local/game:1", "registry.test/tool:1"} {
		w.berth.Engine.Import(t, image, enginetest.BusyboxTar(t), `CMD ["sh","-c","echo \"container@home:~$ $STARTUP\"; eval \"$STARTUP\""]`)
	}
	w.panel.RemoveServer(alpha)
	received := make(chan *http.Request, 1)
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_ = r.ParseMultipartForm(1 << 20) // the test requires the parts
		received <- r
	}))
	t.Cleanup(other.Close)
	p := &player{whole: t, other: received, world: w, family: family, values: map[string]string{
		"<token>": paneltest.Token, "<token-id>": paneltest.TokenID,
		"http://panel.test": w.panel.URL, "http://other.test": other.URL,
		"<bridge>": "0.0.0.0", "uid 5": "uid 988"}, pages: map[int]*page{}, states: map[string][]string{}}
	for _, port := range []string{"27301", "27302", "27303", "27304"} {
		p.values[port] = fmt.Sprint(berthtest.FreePort(t))
	}
	for _, r := range p.read(t, "boot") {
		answer, _ := r.Answer.(map[string]any)
		list, _ := answer["data"].([]any)
		for _, server := range list {
			w.panel.SetServer(t, jsonOf(t, server))
		}
	}
	w.stop()
	text, err := os.ReadFile(w.file)
	require.NoError(t, err)
	allowed := strings.Replace(string(text), "system: {", "system: {backups: {restore_host_allowlist: [127.0.0.1]}, ", 1)
	require.NoError(t, os.WriteFile(w.file, []byte(allowed), 0o600)) // as the recorded node had it
	w.checks = make(chan time.Time)
	w.run(t)
	for _, r := range p.read(t, "create") {
		if script, is := r.Answer.(map[string]any); is && strings.HasSuffix(r.Path, "/install") && r.Method == "GET" {
			for _, uuid := range []string{alpha, gamma} {
				w.panel.SetScript(uuid, script["container_image"].(string), script["entrypoint"].(string), script["script"].(string))
			}
		}
	}
	w.installed(t)
	for _, name := range names {
		if !t.Run(name, func(t *testing.T) { p.play(t, name) }) {
			return // the next one begins with what this one has left
		}
	}
}

// player plays transcripts.
type player struct {
	*world
	whole  *testing.T        // the test of all transcripts
	family string            // the folder of its transcripts
	values map[string]string // that stand for words of the transcripts
	last   string            // the last token
	pages  map[int]*page     // by the number of their socket

	other  chan *http.Request  // transfers that another node has received
	watch  *paneltest.Socket   // of the test's own
	secret any                 // of the last login with SFTP
	states map[string][]string // that were recorded so far, by server
}

func jsonOf(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	require.NoError(t, err)
	return string(text)
}

// read returns a transcript with the values of this test.
func (p *player) read(t *testing.T, name string) (list []record) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("testdata", p.family+name+".json"))
	require.NoError(t, err)
	text := p.with(string(content))
	var all []map[string]any
	require.NoError(t, json.Unmarshal([]byte(text), &all))
	for _, r := range all {
		if r["kind"] == "note" {
			delete(r, "event") // it is not one
		}
	}
	require.NoError(t, json.Unmarshal([]byte(jsonOf(t, all)), &list))
	return list
}

// with returns a text of a transcript with the values of this test.
func (p *player) with(text string) string {
	for _, word := range slices.Sorted(maps.Keys(p.values)) {
		text = strings.ReplaceAll(text, word, p.values[word])
	}
	return text
}

func (p *player) play(t *testing.T, name string) {
	list, seen := p.read(t, name), len(p.panel.Calls(""))
	if p.family+name == "console" { // the line was printed before the restart, and the recorded node has sent it afterwards
		list[27], list[28] = list[28], list[27]
	}
	for i, r := range list {
		at := fmt.Sprint(p.family, name, " ", i)
		if r.acts() {
			p.prepare(t, list[i+1:])
		}
		if act := before[at]; act != nil {
			act(t, p)
		}
		switch {
		case absent[at] != "":
		case r.Kind == "socket":
			p.socket(t, at, r)
		case r.Kind == "closed":
			p.closed(t, at, r)
		case r.Kind == "event":
			p.event(t, at, r)
		case r.Kind == "call" && r.remotePath() == "/sftp/auth":
			p.login(t, r)
		case r.Kind == "sftp":
			p.session(t, at, r)
		case r.Entries != nil:
			p.activity(t, r.Entries)
		case r.Parts != nil:
			p.received(t, r)
		}
		if r.Kind == "request" {
			end := i + slices.IndexFunc(list[i:], func(a record) bool { return a.Kind == "answer" && a.To == r.Method+" "+r.Path })
			got := p.send(t, at, r)
			for list[end].Status != 409 && strings.Contains(got.Error(), "another power action") {
				got = p.send(t, at, r) // that of a restore or an installation ends behind its report
			}
			p.compare(t, at, list[end], got)
		}
		if r.acts() {
			p.await(t, name, list[:i+1+actionIn(list[i+1:])], i, seen)
			p.settle(t, at)
		}
	}
	p.calls(t, name, list, seen)
	clear(p.pages) // sockets end with their test
}

// actionIn returns the index of the first action in a transcript, or its length.
func actionIn(list []record) int {
	if i := slices.IndexFunc(list, record.acts); i >= 0 {
		return i
	}
	return len(list)
}

// prepare has the panel answer the calls up to the next action as it did: an administrator has changed servers, and
// some calls failed.
func (p *player) prepare(t *testing.T, list []record) {
	t.Helper()
	failures := map[string][]int{}
	for _, r := range list[:actionIn(list)] {
		path := r.remotePath()
		answer, _ := r.Answer.(map[string]any)
		switch {
		case r.Kind != "call" || path == "" || path == "/sftp/auth":
		case r.Status/100 != 2:
			failures[r.Method+path] = append(failures[r.Method+path], r.Status)
		case r.Method == "GET" && strings.HasSuffix(path, "/install"):
			p.panel.SetScript(strings.Split(path, "/")[2],
				answer["container_image"].(string), answer["entrypoint"].(string), answer["script"].(string))
		case r.Method == "GET" && answer["settings"] != nil:
			p.panel.SetServer(t, jsonOf(t, r.Answer))
		}
	}
	p.panel.Fail(func(c paneltest.Call) (status int) {
		if left := failures[c.Method+c.Path]; len(left) > 0 {
			status, failures[c.Method+c.Path] = left[0], left[1:]
		}
		return status
	})
}

// await waits for the reports of a transcript, those of a part after the first index alone: what follows was done after
// them. The states of a server are in the recorded order.
func (p *player) await(t *testing.T, name string, list []record, from, seen int) {
	t.Helper()
	reports, changed := map[string]int{}, map[string]bool{}
	for i, r := range list {
		at, path := fmt.Sprint(p.family, name, " ", i), r.remotePath()
		switch {
		case r.Kind != "call" || absent[at] != "":
		case r.isState() && i >= from:
			uuid := strings.Split(path, "/")[2]
			data := r.Body.(map[string]any)["data"].(map[string]any)
			p.states[uuid], changed[uuid] = append(p.states[uuid], data["new_state"].(string)), true
		case r.Method == "POST" && !r.isState() && !slices.Contains([]string{"/activity", "/sftp/auth", "/servers/reset"}, path):
			reports["POST "+path]++
		}
	}
	for report, n := range reports {
		berthtest.Until(t, 3*time.Minute, report, func() bool { return len(p.since(seen, report)) >= n })
	}
	for uuid := range changed {
		prefix, got := "POST /servers/"+uuid+"/container/status", []string{}
		p.panel.Await(t, prefix, len(p.states[uuid]))
		last := "offline"
		for _, c := range p.panel.Calls(prefix)[:len(p.states[uuid])] {
			var body struct {
				Data struct {
					Old string `json:"previous_state"`
					New string `json:"new_state"`
				}
			}
			require.NoError(t, json.Unmarshal([]byte(c.Body), &body))
			require.Equal(t, last, body.Data.Old, c.Body)
			last = body.Data.New
			got = append(got, last)
		}
		require.Equal(t, p.states[uuid], got, "%s %d", name, from)
	}
}

// since returns the calls of the panel after the first ones with a method and a path.
func (p *player) since(seen int, verb string) (list []paneltest.Call) {
	for _, c := range p.panel.Calls("")[seen:] {
		if c.Method+" "+c.Path == verb {
			list = append(list, c)
		}
	}
	return list
}

// calls compares the calls of the panel with the recorded ones, but those whose order is not fixed.
func (p *player) calls(t *testing.T, name string, list []record, seen int) {
	t.Helper()
	var want []record
	for i, r := range list {
		if r.Kind == "call" && absent[fmt.Sprint(p.family, name, " ", i)] == "" && !unorderedCall(r.Method, r.Path) {
			want = append(want, r)
		}
	}
	asked := func(uuid string) record {
		return record{Method: "GET", Path: "/api/remote/servers/" + uuid, Status: 200}
	}
	switch p.family + name {
	case "environment", "pterodactyl/environment", "suspend": // at a start, which these transcripts do not have
		want = append([]record{asked(alpha)}, want...)
	case "pterodactyl/beta":
		want = slices.Insert(want, 2, asked(beta))
	case "remove", "pterodactyl/remove":
		want = append(want, asked(gamma))
	case "transfer-in", "pterodactyl/transfer-in": // the bridge asks whose the server is that did not arrive, and before a start
		decided := []record{{Method: "GET", Path: "/api/remote/servers", Status: 200},
			{Method: "GET", Path: "/api/remote/servers/" + delta, Status: 404}}
		want = append(slices.Insert(want, 2, decided...), asked(delta))
	case "transfer-out", "pterodactyl/transfer-out": // as above, and before the start by hand
		want = append(want, record{Method: "GET", Path: "/api/remote/servers", Status: 200}, asked(alpha))
	}
	var verbs, gotVerbs, bodies []string
	for _, r := range want {
		verbs = append(verbs, fmt.Sprint(r.Method, " ", cmp.Or(r.remotePath(), r.Path), " ", r.Status))
	}
	for _, c := range p.panel.Calls("")[seen:] {
		if !unorderedCall(c.Method, c.Path) {
			gotVerbs, bodies = append(gotVerbs, fmt.Sprint(c.Method, " ", c.Path, " ", c.Status)), append(bodies, c.Body)
		}
	}
	require.Equal(t, verbs, gotVerbs)
	for i, r := range want {
		at := fmt.Sprint(p.family, name, ": ", verbs[i])
		if strings.HasSuffix(r.Path, "/install") || strings.HasSuffix(r.Path, "/restore") {
			require.JSONEq(t, jsonOf(t, r.Body), cmp.Or(bodies[i], "null"), at)
		} else if r.Body != nil {
			var got any
			require.NoError(t, json.Unmarshal([]byte(bodies[i]), &got), at)
			p.shape(t, at, r.Body, got)
		}
	}
}

// unorderedCall reports whether the order of a call of the panel is not fixed: states have that of their server, activity is
// compared at the end, and the number of parts of an archive is its size.
func unorderedCall(method, path string) bool {
	return strings.HasSuffix(path, "/container/status") || strings.HasSuffix(path, "/activity") || method == "PUT"
}

// activity compares what the panel was sent of the doings of customers with the recorded entries.
func (p *player) activity(t *testing.T, entries []entry) {
	t.Helper()
	flat := func(list []entry) (all []string) {
		for _, e := range list {
			if logs, is := e.Metadata["logs"].([]any); is {
				e.Metadata["logs"] = logs[len(logs)-1:] // the echo of a command may be anywhere in a flood
			}
			files, are := e.Metadata["files"].([]any)
			if !are {
				files = []any{e.Metadata}
			}
			for _, file := range files { // those of a minute are one entry
				user := ""
				if e.User != nil {
					user = *e.User
				}
				all = append(all, fmt.Sprint(user, " ", e.Server, " ", e.Event, " ", e.IP, " ", jsonOf(t, file)))
			}
		}
		slices.Sort(all)
		return all
	}
	want := append(flat(entries), p.moreActivity()...)
	want = slices.DeleteFunc(want, func(e string) bool { return strings.Contains(e, "/secret.txt") }) // which the bridge denies
	slices.Sort(want)
	var got []string
	berthtest.Until(t, 3*time.Minute, "the panel has the activity", func() bool {
		var sent []entry
		for _, c := range p.panel.Calls("POST /activity") {
			var body struct{ Data []entry }
			require.NoError(t, json.Unmarshal([]byte(c.Body), &body))
			sent = append(sent, body.Data...)
		}
		got = flat(sent)
		return len(got) >= len(want)
	})
	require.Equal(t, want, got)
}

// moreActivity returns what the recorded entries do not have: the kill of beta is sent later, a start that is refused is
// recorded before, and Pelican's node has lost the names of a file that was renamed, and the second crash, after which it
// does not restart a server.
func (p *player) moreActivity() []string {
	list := []string{paneltest.User + " " + beta + " server:power.kill 127.0.0.1 {}", paneltest.User + " " + gamma + " server:power.start 127.0.0.1 {}"}
	if p.family == "" {
		list = append(list, paneltest.User+" "+alpha+` server:sftp.rename 127.0.0.1 {"from":"/fromsftp.txt","to":"/madebysftp/renamed.txt"}`,
			" "+gamma+` server:crashed 127.0.0.1 {"exit_code":3,"logs":["fatal: broken"],"oomkilled":false}`)
	}
	return list
}

// settle waits for what a request has begun, where the next one of a transcript was sent after it.
func (p *player) settle(t *testing.T, at string) {
	t.Helper()
	state := func(uuid, want string) {
		berthtest.Until(t, 3*time.Minute, uuid+" is "+want, func() bool {
			return strings.Contains(p.Want(t, 200, "GET", "/api/servers/"+uuid, nil).Body, `{"state":"`+want+`"`)
		})
	}
	switch at {
	case "create 5", "pterodactyl/create 5":
		state(gamma, "running")
	case "backup 89", "pterodactyl/backup 90":
		berthtest.Until(t, 3*time.Minute, "the backup that the panel refuses is deleted", func() bool {
			_, err := p.berth.API.Backups().Get(t.Context(), backupUUID(3))
			return err != nil
		})
	case "power 13": // a stop in between would end the start
		p.panel.Await(t, "POST /servers/"+alpha+"/container/status", 6)
		state(alpha, "running")
	case "power 17", "suspend 8", "pterodactyl/power 14":
		state(alpha, "offline")
	case "suspend 0", "pterodactyl/suspend 0", "pterodactyl/power 4", "pterodactyl/environment 0":
		state(alpha, "running")
	case "pterodactyl/sync 9":
		p.watch.Until("status", "offline")
		p.watch.Until("status", "running")
		p.watch.Close()
		state(alpha, "running")
	case "pterodactyl/transfer-in 15":
		state(delta, "running")
	case "pterodactyl/beta 7":
		state(beta, "running")
	case "pterodactyl/console 72": // it takes no command then
		state(gamma, "offline")
	case "pterodactyl/power 11":
		berthtest.Until(t, 3*time.Minute, "it has restarted", func() bool {
			return strings.Count(p.Want(t, 200, "GET", "/api/servers/"+alpha+"/logs", nil).Body, "loading the world") == 2
		})
		state(alpha, "running")
	case "transfer-out 30", "pterodactyl/transfer-out 23":
		p.Want(t, 202, "POST", "/api/servers/"+alpha+"/power", map[string]any{"action": "start", "wait_seconds": 60})
		state(alpha, "running")
		if p.family == "" {
			p.states[alpha] = append(p.states[alpha], "starting", "running")
		}
	case "crash 54": // berth restarts it again
		state(gamma, "running")
		p.Want(t, 202, "POST", "/api/servers/"+gamma+"/power", map[string]any{"action": "kill"})
		state(gamma, "offline")
		p.states[gamma] = append(p.states[gamma], "starting", "running", "offline")
	}
}

var (
	signedText = regexp.MustCompile(`^<jwt (.*)>$`)
	bytesText  = regexp.MustCompile(`^<(\d+) bytes>$`)
)

// send sends a request of a transcript.
func (p *player) send(t *testing.T, at string, r record) paneltest.Answer {
	t.Helper()
	query := url.Values{}
	values, _ := r.Query.(map[string]any)
	for key, value := range values {
		text := fmt.Sprint(value)
		if m := signedText.FindStringSubmatch(text); m != nil {
			text = p.sign(t, at, m[1])
		}
		query.Set(key, text)
	}
	header := []string{"Authorization", r.Headers["Authorization"], "Content-Type", "application/json"}
	for name, value := range r.Headers {
		if claims, is := strings.CutPrefix(value, "Bearer "); is && strings.HasPrefix(claims, "<jwt ") {
			value = "Bearer " + p.sign(t, at, signedText.FindStringSubmatch(claims)[1])
		}
		header = append(header, name, value)
	}
	body := r.Body
	if text, is := body.(string); is {
		var size int
		if m := bytesText.FindStringSubmatch(text); m != nil {
			_, _ = fmt.Sscan(m[1], &size)
			body = strings.Repeat("x", size)
			if strings.HasPrefix(r.Headers["Content-Type"], "multipart/") {
				body, _ = form(t, "files huge.bin "+strings.Repeat("x", size))
				body = strings.ReplaceAll(body.(string), boundaryOf(body.(string)), "xxBOUNDARYxx")
			}
		}
	}
	if r.Path == "/api/transfers" {
		body = arrivals[at](t)
	}
	if object, is := body.(map[string]any); is && object["server"] != nil {
		object["token"] = "Bearer x" // the other node of this test does not look at it
	}
	if object, is := body.(map[string]any); is && object["file"] == "archive-<date>.tar.gz" {
		object["file"] = p.values["archive-<date>.tar.gz"]
	}
	if object, is := body.(map[string]any); is && strings.HasPrefix(fmt.Sprint(object["url"]), p.panel.URL) {
		object["url"] = "http://panel.test/x.bin" // the test's panel has a private address
	}
	path := r.Path
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	return p.Do(t, r.Method, path, body, header...)
}

// boundaryOf returns the boundary of a multipart body.
func boundaryOf(body string) string {
	first, _, _ := strings.Cut(body, "\r\n")
	return strings.TrimPrefix(first, "--")
}

// sign returns a token with claims of a transcript.
func (p *player) sign(t *testing.T, at, text string) string {
	t.Helper()
	claims := map[string]any{}
	require.NoError(t, json.Unmarshal([]byte(text), &claims))
	for _, name := range []string{"iss", "aud", "jti", "iat", "nbf", "exp"} {
		delete(claims, name)
	}
	claims["unique_id"] = at
	if _, is := claims["user_uuid"]; !is {
		claims["user_uuid"] = nil
	}
	if make := tokensOf[at]; make != nil {
		p.last = make(t, claims, p.last)
	} else {
		p.last = paneltest.Sign(t, claims)
	}
	return p.last
}

// compare compares an answer with the recorded one.
func (p *player) compare(t *testing.T, at string, want record, got paneltest.Answer) {
	t.Helper()
	d, differs := differences[at]
	if differs {
		want.Status = d.status
	}
	require.Equal(t, want.Status, got.Status, "%s: %s", at, got.Body)
	recorded, isObject := want.Body.(map[string]any)
	if differs {
		require.Equal(t, d.error, got.Error(), at)
		require.NotEqual(t, recorded["error"], d.error, "%s is no difference", at)
		return
	}
	for _, name := range []string{"www-authenticate", "content-type", "content-disposition", "x-mime-type"} {
		value := want.Headers[name]
		switch {
		case want.To == "GET /download/backup":
			value = strings.ReplaceAll(value, ".tar.gz", ".tar.zst") // berth's backups
		case value == "application/json" && name == "x-mime-type":
			value = "text/plain; charset=utf-8" // by its first bytes: pages edit the one like the other
		}
		if value != "" && (name != "content-type" || recorded["error"] == nil) { // errors are JSON here, in any case
			require.Equal(t, value, got.Header.Get(name), "%s: %s", at, name)
		}
	}
	for name := range want.Headers {
		require.True(t, name == "content-length" || got.Header.Get(name) != "", "%s: has no %s", at, name)
	}
	if isObject && recorded["error"] != nil {
		require.Equal(t, recorded["error"], got.Error(), at)
	}
	switch recorded := want.Body.(type) {
	case string:
		if !bytesText.MatchString(recorded) && (want.Headers["content-type"] != "text/plain; charset=utf-8" || !strings.HasPrefix(recorded, "<")) {
			require.Equal(t, cmp.Or(p.with(texts[at]), recorded), got.Body, at)
		}
	case nil:
	default:
		var value any
		got.Decode(t, &value)
		if made, is := value.(map[string]any); is && strings.HasPrefix(fmt.Sprint(made["name"]), "archive-") {
			p.values["archive-<date>.tar.gz"] = made["name"].(string)
		}
		p.shape(t, at, recorded, value)
	}
}

// shape compares the fields and types of two values; of lists those of the first elements.
func (p *player) shape(t *testing.T, at string, want, got any) {
	t.Helper()
	if absent[at] != "" {
		return
	}
	switch want := want.(type) {
	case nil: // of something that was not there at that moment
	case map[string]any:
		if strings.HasSuffix(at, ".configuration") {
			return // the panel's own object, as it sent it; the recorded node adds its defaults
		}
		object, is := got.(map[string]any)
		require.True(t, is, "%s: %v", at, got)
		if p.family != "" {
			delete(object, "disk_io") // which Pterodactyl's pages do not read
		}
		require.Equal(t, slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(object)), at)
		for name := range want {
			p.shape(t, at+"."+name, want[name], object[name])
		}
	case []any:
		if strings.HasSuffix(at, ".downloads") && got == nil {
			return // it has failed already: its host does not exist
		}
		list, is := got.([]any)
		require.True(t, is, "%s: %v", at, got)
		if len(want) > 0 && len(list) > 0 {
			p.shape(t, at+"[0]", want[0], list[0])
		}
		require.Equal(t, len(want) == 0, len(list) == 0, at)
	default:
		require.Equal(t, fmt.Sprintf("%T", want), fmt.Sprintf("%T", got), at)
	}
}
