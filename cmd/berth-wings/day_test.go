package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fasthttp/websocket"
	"github.com/google/uuid"
	"github.com/pkg/sftp"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"berth/api/client"
	v1 "berth/api/v1"
	"berth/hack/test/berthtest"
	"berth/hack/test/enginetest"
	"berth/hack/test/paneltest"
)

// hang is the time after which something that is waited for counts as lost.
const hang = 5 * time.Minute

// play is what the servers of a day run. Each keeps files of how often it was started and stopped, and of what it read.
const play = `echo >> runs; echo Done; while read line; do if [ "$line" = stop ]; then echo >> stops; exit 0; fi; ` +
	`echo "$line" >> said; echo "got $line"; done; echo >> lost`

// day is a panel with customers, whose node is a bridge with a daemon, each of them a process.
type day struct {
	panel   *paneltest.Panel
	berth   *berthtest.Berth
	bridge  *process
	serving *http.Server // the panel

	called chan struct{} // receives when the bridge calls the panel
	killed chan struct{} // closed after the last kill
}

// TestDay is the day of customers, from the installation of their servers to their end, while the bridge, berth and the
// panel are killed: no power action, result of an installation, activity or backup is lost or doubled.
func TestDay(t *testing.T) {
	servers, kills := 2, 5
	if os.Getenv("BERTH_LONG") != "" {
		servers, kills = 20, 100
	}
	sftp := berthtest.FreePort(t)
	d := &day{panel: paneltest.New(), called: make(chan struct{}), killed: make(chan struct{}),
		berth: berthtest.Start(t, berthtest.Options{Config: fmt.Sprintf("sftp: {enabled: true, host: 127.0.0.1, port: %d}", sftp)})}
	d.berth.Engine.Busybox(t)
	d.berth.Engine.Import(t, "berth-test/wings:1", enginetest.BusyboxTar(t), `CMD ["sh","-c","eval \"$STARTUP\""]`)
	d.panel.URL = fmt.Sprint("http://127.0.0.1:", berthtest.FreePort(t))
	d.panel.Fail(func(paneltest.Call) int {
		select {
		case d.called <- struct{}{}:
		default:
		}
		return 0
	})
	d.servePanel(t)
	t.Cleanup(func() { _ = d.serving.Close() })
	d.bridge = newProcess(t, d.panel, d.berth, "")
	d.bridge.env = append(d.bridge.env, fmt.Sprint("BERTH_SFTP=127.0.0.1:", sftp))
	d.bridge.start()
	var list []*customer
	var busy sync.WaitGroup
	over := make(chan struct{})
	t.Run("customers", func(t *testing.T) {
		for n := range servers {
			c := &customer{day: d, n: n, uuid: uuid.NewString(), said: map[string]bool{}, written: map[string]bool{}, backups: map[string]bool{}}
			list = append(list, c)
			busy.Add(1)
			t.Run(fmt.Sprint(n), func(t *testing.T) {
				t.Parallel()
				defer busy.Done()
				c.t = t
				c.live()
			})
		}
		go func() {
			busy.Wait()
			close(over)
		}()
		t.Run("kills", func(t *testing.T) {
			t.Parallel()
			defer close(d.killed)
			d.kill(t, kills, over)
		})
	})
	d.check(t, list)
}

// servePanel has the panel listen.
func (d *day) servePanel(t *testing.T) {
	t.Helper()
	listener, err := net.Listen("tcp", strings.TrimPrefix(d.panel.URL, "http://"))
	require.NoError(t, err)
	d.serving = &http.Server{Handler: d.panel, ReadHeaderTimeout: hang}
	go func() { _ = d.serving.Serve(listener) }()
}

// kill kills the bridge, berth and the panel until the customers' day is over: at any moment, or when the bridge has called the
// panel, and so has not finished something. The panel has answered what it was sent.
func (d *day) kill(t *testing.T, kills int, over <-chan struct{}) {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	t.Log("seed", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for n := range kills {
		called := d.called
		if random.IntN(2) == 0 {
			called = nil
		}
		select {
		case <-time.After(time.Duration(random.IntN(1500)) * time.Millisecond): // the moment is the test's input
		case <-called:
		case <-over:
			return
		}
		switch n % 3 {
		case 0:
			d.bridge.restart()
		case 1:
			d.berth.Kill9(t)
			d.berth.Run(t)
			d.berth.Answers(t, "/healthz")
		case 2:
			require.NoError(t, d.serving.Shutdown(context.WithoutCancel(t.Context())))
			d.servePanel(t)
		}
	}
}

// customer is one with a server.
type customer struct {
	*day
	t    *testing.T
	n    int
	uuid string
	port int

	volume  string // its folder
	least   int    // restarts that were answered
	most    int    // and those that were not, too
	creates int    // requests for the installation

	said    map[string]bool // commands, and whether they were carried out
	written map[string]bool // files by SFTP, and whether they were written
	backups map[string]bool // and whether they were accepted
}

func (c *customer) at(path string) string { return "/api/servers/" + c.uuid + path }

// set gives the panel the server, with further settings.
func (c *customer) set(more string) {
	c.panel.SetServer(c.t, fmt.Sprintf(`{"settings": {"id": %d, %s"uuid": %q, "meta": {"name": "s"}, "environment": {"A": "b"}, "invocation": %q,
"skip_egg_scripts": false, "build": {"memory_limit": 64, "swap": 0, "io_weight": 500, "cpu_limit": 50, "disk_space": 64, "oom_killer": true},
"container": {"image": "~berth-test/wings:1"}, "allocations": {"default": {"ip": "127.0.0.1", "port": %d}, "mappings": {"127.0.0.1": [%d]}}, "egg": {}},
"process_configuration": {"startup": {"done": ["Done"]}, "stop": {"type": "command", "value": "stop"}, "configs": []}}`,
		c.n, more, c.uuid, play, c.port, c.port))
}

// ask sends a request, and again until it is answered. It returns the last status, and how often it was sent.
func (c *customer) ask(method, path string, body any) (status, times int) {
	c.t.Helper()
	c.until("an answer to "+method+" "+path, func() bool {
		times++
		a, err := c.bridge.Try(c.t, method, path, body)
		status = a.Status
		return err == nil && a.Status < 500
	})
	return status, times
}

func (c *customer) until(what string, done func() bool) {
	c.t.Helper()
	berthtest.Until(c.t, hang, fmt.Sprintf("server %d: %s", c.n, what), done)
}

// lines returns how many lines a file of the server has.
func (c *customer) lines(name string) int {
	text, _ := os.ReadFile(filepath.Join(c.volume, name)) // none: it was not written
	return strings.Count(string(text), "\n")
}

func (c *customer) power(action string) (times int) {
	c.t.Helper()
	status, times := c.ask("POST", c.at("/power"), map[string]any{"action": action, "wait_seconds": 300})
	require.Equal(c.t, 202, status, action)
	return times
}

func (c *customer) state(want string) {
	c.t.Helper()
	c.until("is "+want, func() bool {
		a, err := c.bridge.Try(c.t, "GET", c.at(""), nil)
		var v struct{ State string }
		return err == nil && a.Status == 200 && json.Unmarshal([]byte(a.Body), &v) == nil && v.State == want
	})
}

// live is the customer's day.
func (c *customer) live() {
	c.port = berthtest.FreePort(c.t)
	c.set("")
	c.panel.SetScript(c.uuid, "berth-test/busybox:1", "sh", "echo >> /mnt/server/installs")
	status, times := c.ask("POST", "/api/servers", map[string]any{"uuid": c.uuid, "start_on_completion": true})
	require.Equal(c.t, 202, status)
	c.creates = times
	c.until("the result of the installation", func() bool { return len(c.panel.Calls("POST /servers/"+c.uuid+"/install")) > 0 })
	c.until("its folder", func() bool {
		view, err := c.berth.API.Containers().Get(c.t.Context(), c.uuid)
		c.volume = view.Mount.Source
		return err == nil
	})
	c.state("running")
	for done := false; !done; {
		select {
		case <-c.killed:
			done = true
		default:
		}
		c.talk()
		c.write()
		c.backup()
		c.change()
		c.restart()
	}
	c.rebind()
	c.suspend()
	require.Equal(c.t, 1, c.lines("installs"))
	require.Zero(c.t, c.lines("lost"), "the console was closed")
	for line := range strings.Lines(c.read("said")) {
		line = strings.TrimSpace(line)
		was, sent := c.said[line]
		require.True(c.t, sent, line)
		require.Falsef(c.t, was, "%s was carried out twice", line)
		c.said[line] = true
	}
	c.end()
}

func (c *customer) read(name string) string {
	text, err := os.ReadFile(filepath.Join(c.volume, name))
	require.NoError(c.t, err)
	return string(text)
}

// talk types commands by a socket, until it has the output of one.
func (c *customer) talk() {
	for number, heard := 0, false; !heard; number++ {
		command := fmt.Sprintf("%d-%d-%s", c.n, number, uuid.NewString())
		c.until("a socket", func() bool {
			conn, response, err := websocket.DefaultDialer.DialContext(c.t.Context(), strings.Replace(c.bridge.URL, "http", "ws", 1)+c.at("/ws"),
				http.Header{"Origin": {c.panel.URL}})
			if err != nil {
				return false
			}
			defer conn.Close()
			_ = response.Body.Close()
			heard, err = c.say(conn, command)
			return err == nil
		})
	}
}

// say types a command once a socket is open, and reads until it has the output.
func (c *customer) say(conn *websocket.Conn, command string) (heard bool, err error) {
	token := paneltest.Sign(c.t, map[string]any{"server_uuid": c.uuid, "scope": "websocket", "permissions": []string{"*"}})
	err = conn.WriteJSON(map[string]any{"event": "auth", "args": []string{token}})
	for err == nil {
		var e paneltest.Event
		if err = conn.SetReadDeadline(time.Now().Add(hang)); err == nil {
			err = conn.ReadJSON(&e)
		}
		switch {
		case err != nil:
		case e.Event == "status" && e.Argument() == "running":
			c.said[command] = false
			err = conn.WriteJSON(map[string]any{"event": "send command", "args": []string{command}})
			if err == nil {
				return c.hears(conn, command), nil
			}
		case e.Event == "jwt error": // the token is as old as the bridge
			return false, fmt.Errorf("%s", e.Argument())
		}
	}
	return false, err
}

// hears reports whether the output of a command arrives before the socket ends.
func (c *customer) hears(conn *websocket.Conn, command string) bool {
	for {
		var e paneltest.Event
		if conn.SetReadDeadline(time.Now().Add(hang)) != nil || conn.ReadJSON(&e) != nil || e.Event == "daemon error" {
			return false
		}
		if e.Event == "console output" && e.Argument() == "got "+command {
			return true
		}
	}
}

// write writes files: by the panel, and by SFTP until one is written.
func (c *customer) write() {
	status, _ := c.ask("POST", c.at("/files/write?file=a.txt"), "text")
	require.Equal(c.t, 204, status)
	status, _ = c.ask("GET", c.at("/files/contents?file=a.txt"), nil)
	require.Equal(c.t, 200, status)
	user := "user." + c.uuid[:8]
	c.panel.SetLogin(user, "secret", paneltest.User, c.uuid, "*")
	c.until("a file by SFTP", func() bool {
		name := "/" + uuid.NewString()
		conn, err := ssh.Dial("tcp", c.bridge.sftp, &ssh.ClientConfig{User: user, Auth: []ssh.AuthMethod{ssh.Password("secret")},
			HostKeyCallback: ssh.InsecureIgnoreHostKey()})
		if err != nil {
			return false
		}
		defer conn.Close()
		files, err := sftp.NewClient(conn)
		if err != nil {
			return false
		}
		c.written[name] = false
		f, err := files.Create(name)
		if err == nil {
			err = f.Close()
		}
		c.written[name] = err == nil
		return err == nil
	})
}

// backup has a backup made, as the panel does: one whose request is not answered is another one the next time.
func (c *customer) backup() {
	c.until("a backup", func() bool {
		id := uuid.NewString()
		a, err := c.bridge.Try(c.t, "POST", c.at("/backup"), map[string]string{"adapter": "wings", "uuid": id, "ignore": ""})
		c.backups[id] = err == nil && a.Status == 202
		if !c.backups[id] {
			return false
		}
		c.until("the report of a backup", func() bool { return len(c.panel.Calls("POST /backups/"+id)) > 0 })
		claims := map[string]any{"server_uuid": c.uuid, "scope": "backup-download", "backup_uuid": id}
		c.until("its download", func() bool {
			claims["unique_id"] = uuid.NewString()
			a, err := c.bridge.Try(c.t, "GET", "/download/backup?token="+url.QueryEscape(paneltest.Sign(c.t, claims)), nil, "Authorization", "")
			return err == nil && a.Status == 200 && a.Body != ""
		})
		return true
	})
}

// change changes a limit: the server runs on.
func (c *customer) change() {
	before := c.lines("runs")
	status, _ := c.ask("POST", c.at("/sync"), nil)
	require.Equal(c.t, 204, status)
	require.Equal(c.t, before, c.lines("runs"))
}

func (c *customer) restart() {
	runs := c.lines("runs")
	times := c.power("restart")
	c.least, c.most = c.least+1, c.most+times
	c.until("it is restarted", func() bool { return c.lines("runs") > runs })
	c.until("it is restarted as often", func() bool { return c.settled() })
	c.state("running")
}

// settled reports whether berth has done everything that it was asked for, and the bridge has nothing more to ask.
func (c *customer) settled() bool {
	view, err := c.berth.API.Containers().Get(c.t.Context(), c.uuid)
	if err != nil || !view.Observed() || view.State != v1.Running {
		return false
	}
	volume, err := c.berth.API.Volumes().Get(c.t.Context(), view.VolumeID)
	return err == nil && !slices.ContainsFunc(slices.Collect(maps.Keys(volume.Labels)), func(label string) bool {
		return strings.HasPrefix(label, "wings.power.")
	})
}

// rebind gives the server another port, which it has after the next start.
func (c *customer) rebind() {
	c.port = berthtest.FreePort(c.t)
	c.set("")
	c.change()
	c.restart()
	spec, err := c.berth.API.Containers().Spec(c.t.Context(), c.uuid)
	require.NoError(c.t, err)
	require.Len(c.t, spec.Ports, 2)
	require.Equal(c.t, c.port, spec.Ports[0].Port)
}

// suspend suspends the server and has it started again. It has been started and stopped as often as that was requested.
func (c *customer) suspend() {
	c.set(`"suspended": true, `)
	status, _ := c.ask("POST", c.at("/sync"), nil)
	require.Equal(c.t, 204, status)
	c.state("offline")
	status, _ = c.ask("POST", c.at("/power"), map[string]any{"action": "start"})
	require.Equal(c.t, 400, status)
	c.set("")
	status, _ = c.ask("POST", c.at("/sync"), nil)
	require.Equal(c.t, 204, status)
	c.power("start")
	c.state("running")
	c.power("stop")
	c.state("offline")
	runs, stops := c.lines("runs"), c.lines("stops")
	require.Equal(c.t, runs, stops)
	require.GreaterOrEqual(c.t, runs, c.least+2, "a restart is lost")
	require.LessOrEqual(c.t, runs, c.most+2, "a restart is doubled")
	c.t.Logf("server %d: %d runs, %d to %d restarts", c.n, runs, c.least, c.most)
}

// end deletes the server: nothing of it is left.
func (c *customer) end() {
	list, err := c.berth.API.Backups().List(c.t.Context(), "")
	require.NoError(c.t, err)
	made := map[string]bool{}
	for _, b := range list {
		made[b.BackupID] = true
	}
	for id, accepted := range c.backups {
		require.True(c.t, !accepted || made[id], "a backup is lost")
	}
	status, times := c.ask("DELETE", c.at(""), nil)
	require.True(c.t, status == 204 || status == 404 && times > 1, status)
	c.panel.RemoveServer(c.uuid)
	c.until("it is gone", func() bool {
		_, err := c.berth.API.Containers().Get(c.t.Context(), c.uuid)
		_, missing := os.Stat(c.volume)
		return client.StatusOf(err) == 404 && os.IsNotExist(missing) && len(c.berth.Containers(c.t, c.uuid)) == 0
	})
}

// received is what the panel took of one thing that is reported once.
type received struct {
	times int
	life  int // of the bridge, that reported it last
	last  int // the report, by its number
}

// check compares what the panel has received with what was done.
func (d *day) check(t *testing.T, list []*customer) {
	t.Helper()
	var all map[string]received
	done := func(c *customer) (want []string) {
		for command, carriedOut := range c.said {
			if carriedOut {
				want = append(want, c.uuid+" server:console.command "+command)
			}
		}
		for name, written := range c.written {
			if written {
				want = append(want, c.uuid+" server:sftp.create "+name)
			}
		}
		for id, accepted := range c.backups {
			if accepted {
				want = append(want, "backup "+id)
			}
		}
		return append(want, "install "+c.uuid)
	}
	total, creates, accepted := 0, map[string]int{}, map[string]bool{}
	for _, c := range list {
		creates["install "+c.uuid] = c.creates
		maps.Copy(accepted, c.backups)
	}
	for _, c := range list {
		for _, what := range done(c) {
			total++
			berthtest.Until(t, hang, "the panel receives: "+what, func() bool {
				all = d.received(t, creates, accepted)
				return all[what].times > 0
			})
		}
	}
	t.Logf("%d reports and entries, and %d of what was not seen done", total, len(all)-total)
}

// received returns what the panel took. Some was requested more than once. Another report that it took twice is a fault,
// unless the bridge ended before it had the answer to the first one: no node can know then. A backup that was not accepted
// may have failed: the bridge ended before berth had its request.
func (d *day) received(t *testing.T, requests map[string]int, accepted map[string]bool) map[string]received {
	t.Helper()
	all, life, lastOf := map[string]received{}, 0, map[int]int{} // of activity, by life
	take := func(kind, what string, number int) {
		r := all[what]
		if r.times > 0 && r.times >= requests[what] {
			t.Logf("twice, in lives %d and %d of the bridge: %s", r.life, life, what)
			inFlight := kind != "activity" || lastOf[r.life] == r.last
			require.Truef(t, r.life == life-1 && inFlight, "the panel has received it twice: %s", what)
		}
		all[what] = received{r.times + 1, life, number}
	}
	for number, call := range d.panel.Calls("") {
		parts := strings.Split(call.Path, "/")
		switch kind := call.Method + " " + strings.Join(slices.Concat(parts[1:2], parts[min(3, len(parts)):]), "/"); {
		case call.Status/100 != 2:
		case kind == "GET servers" && len(parts) == 2:
			life++
		case kind == "POST servers/install":
			require.Contains(t, call.Body, `"successful":true`)
			take("install", "install "+parts[2], number)
		case kind == "POST backups":
			require.True(t, strings.Contains(call.Body, `"successful":true`) || !accepted[parts[2]], call.Body)
			take("backup", "backup "+parts[2], number)
		case kind == "POST activity":
			lastOf[life] = number
			for _, what := range entriesOf(t, call.Body) {
				take("activity", what, number)
			}
		}
	}
	return all
}

// entriesOf returns the entries of a report of activity: the server, the event, and the command or the file.
func entriesOf(t *testing.T, body string) (list []string) {
	t.Helper()
	var sent struct {
		Data []struct {
			Server, Event string
			Metadata      struct {
				Command string
				Files   []string
			}
		}
	}
	require.NoError(t, json.Unmarshal([]byte(body), &sent))
	for _, e := range sent.Data {
		for _, file := range append(e.Metadata.Files, e.Metadata.Command) {
			if file != "" {
				list = append(list, e.Server+" "+e.Event+" "+file)
			}
		}
	}
	return list
}
