package model_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"berth/hack/test/berthtest"
)

// The game appends a line to a file for each run and for each command; its installer does so for each installation.
const (
	command = `echo $VERSION >> runs; echo up; while read line; do echo "$line" >> commands; done; sleep 100000`
	install = `echo >> installs; sleep 0.2`
)

// game is one container, as the client that owns it knows it.
type game struct {
	*client
	id, volume, dir        string
	possible               []spec
	runs, installs         int             // lines of its files when it was last settled
	bornRuns, bornInstalls int             // lines of its files when it was created
	leaving, whole         bool            // its deletion was acknowledged, with its volume
	uid                    string          // when it was last settled
	typed                  []string        // commands that were acknowledged
	repeatable             map[string]bool // commands that were sent again, because an answer was lost: they may be typed again
}

// spec is a desired state that the game may have.
type spec struct {
	exists  bool
	version int
	ports   string // sorted and joined
	on      bool
	// At most so many runs and installations were requested since the game was last settled. The last of them is carried
	// out if the game stays on; an earlier one may be overtaken.
	runs, installs int
}

func newGame(c *client, id string) *game { return &game{client: c, id: id, possible: []spec{{}}} }

// step requests something, or waits until what was requested is done.
func (g *game) step() {
	there := g.look()
	if !there && g.leaving {
		g.gone()
	}
	if !there && !g.leaving {
		g.create()
	}
	if !there {
		return
	}
	switch n := g.random.IntN(100); {
	case n < 13:
		g.request("start", g.power("start"), start)
	case n < 21:
		g.request("stop", g.power("stop"), stop)
	case n < 28:
		g.request("kill", g.power("kill"), stop)
	case n < 38:
		g.request("restart", g.power("restart"), restart)
	case n < 52:
		g.apply()
	case n < 58:
		g.rebind()
	case n < 64:
		g.request("reinstall", g.power("reinstall"), reinstall)
	case n < 76:
		g.command()
	case n < 83:
		g.remove()
	case n < 90:
		g.settle()
	}
}

// wrong reports a violation, with what the daemon has logged about the game, and its containers on the engine.
func (g *game) wrong(format string, args ...any) {
	g.t.Helper()
	for line := range strings.Lines(g.b.Log()) {
		if strings.Contains(line, g.id) {
			g.t.Log(strings.TrimSpace(line))
		}
	}
	for _, c := range g.b.Containers(g.t, g.id) {
		one, _ := g.b.Engine.Inspect(g.t, c.ID)
		g.t.Logf("%s: %+v", one.Name, one.Raw["State"])
	}
	g.violated(g.client, format, args...)
}

// change is what a request does to a spec if it is carried out.
type change func(spec) spec

func start(s spec) spec {
	if !s.on {
		s.on, s.runs = true, s.runs+1
	}
	return s
}

func stop(s spec) spec { s.on = false; return s }

func restart(s spec) spec { s.on, s.runs = true, s.runs+1; return s }

func reinstall(s spec) spec { s.on, s.installs = false, s.installs+1; return s }

func remove(s spec) spec { return spec{runs: s.runs, installs: s.installs} }

// replaced returns the change to a new spec, whose run needs another container.
func replaced(version int, ports string, on bool) change {
	return func(s spec) spec {
		if !s.exists {
			return spec{exists: true, version: version, ports: ports, on: on, runs: oneIf(on), installs: 1}
		}
		if on && (!s.on || s.version != version || s.ports != ports) {
			s.runs++
		}
		s.version, s.ports, s.on = version, ports, on
		return s
	}
}

func oneIf(b bool) int {
	if b {
		return 1
	}
	return 0
}

// request sends a request and changes the model by its outcome.
func (g *game) request(name string, send func() answer, f change) answer {
	a := send()
	g.become(f, a.outcome)
	if a.outcome == refused && !slices.Contains(allowed[name], a.code()) {
		g.wrong("%s of %s was refused: %d %s", name, g.id, a.Status, a.Body)
	}
	return a
}

// allowed are the codes with which a request of a container that exists may be refused.
var allowed = map[string][]string{
	"create": {"port_not_in_pool", "port_bound"},
	"apply":  {"port_not_in_pool", "port_bound", "precondition_failed"},
	"rebind": {"port_not_in_pool", "port_bound", "container_installing"},
}

func (g *game) become(f change, o outcome) {
	var after []spec
	for _, s := range g.possible {
		if o != done {
			after = append(after, s)
		}
		if o != refused {
			after = append(after, f(s))
		}
	}
	slices.SortFunc(after, func(a, b spec) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	g.possible = slices.Compact(after)
}

func (g *game) power(verb string) func() answer {
	return func() answer {
		var body any
		if verb == "reinstall" {
			body = map[string]any{}
		}
		return g.change(verb, "POST", "/containers/"+g.id+"/"+verb, body)
	}
}

// body returns a request for the game.
func (g *game) body(version int, ports []int, on bool) map[string]any {
	power := "stopped"
	if on {
		power = "running"
	}
	return map[string]any{
		"internal_id": g.id, "volume_id": g.volume, "image": g.image, "startup_command": command, "start_pattern": "^up",
		"env": map[string]string{"VERSION": fmt.Sprint(version)}, "labels": map[string]string{"version": fmt.Sprint(version)},
		"hostname": fmt.Sprintf("v%d", version), "power": power, "ports": bindings(ports), "tty": false,
	}
}

func bindings(ports []int) []map[string]any {
	list := []map[string]any{}
	for _, p := range ports {
		list = append(list, map[string]any{"ip": "127.0.0.1", "port": p, "protocol": "tcp"})
	}
	return list
}

// somePorts returns up to two ports that may be another game's.
func (g *game) somePorts() (ports []int) {
	for range g.random.IntN(3) {
		if p := g.ports[g.random.IntN(len(g.ports))]; !slices.Contains(ports, p) {
			ports = append(ports, p)
		}
	}
	slices.Sort(ports)
	return ports
}

// create creates the game, with POST or PUT, in its volume, which is made first if there is none.
func (g *game) create() {
	if g.volume == "" {
		g.volume, g.dir = g.newVolume(g.id)
		g.runs, g.installs, g.typed, g.repeatable = 0, 0, nil, map[string]bool{}
	}
	if g.chance(10) {
		g.createWithoutImage()
		return
	}
	g.bornRuns, g.bornInstalls = g.runs, g.installs
	version, ports, on := g.unique(), g.somePorts(), g.chance(50)
	body := g.body(version, ports, on)
	body["install_script"] = install
	g.request("create", func() answer {
		if g.chance(30) {
			return g.change("create", "PUT", "/containers/"+g.id, body)
		}
		a := g.change("create", "POST", "/containers", body)
		if a.code() == "container_exists" {
			g.wrong("%s exists: %s", g.id, a.Body)
		}
		return a
	}, replaced(version, fmt.Sprint(ports), on))
}

// createWithoutImage requests a container whose image does not exist. The answer is true at its moment: 500, and there
// is none, or 200, and there is one. A 500 is not kept for its key: a repetition may meet what is being taken back.
func (g *game) createWithoutImage() {
	body := g.body(g.unique(), nil, false)
	body["image"] = g.missing
	a := g.change("create without an image", "POST", "/containers", body)
	there := g.exists()
	switch {
	case a.Status == 500 && there:
		g.wrong("%s is refused, and is there", g.id)
	case a.outcome == refused && a.code() != "image_not_found" && !strings.Contains(string(a.Body), "is being deleted"):
		g.wrong("%s without an image: %d %s", g.id, a.Status, a.Body)
	case a.outcome == done && !there:
		g.wrong("%s was created, and is not there", g.id)
	}
	if there {
		g.repeat("DELETE", "/containers/"+g.id, nil)
	}
	g.awaitGone()
}

// apply replaces the spec; sometimes it changes the power only.
func (g *game) apply() {
	now, ports, on := g.possible[0], g.somePorts(), g.chance(60)
	version := g.unique()
	if g.chance(20) && len(g.possible) == 1 {
		version = now.version
	}
	var header []string
	if g.chance(20) {
		var seen struct {
			Version string `json:"resource_version"`
		}
		if !g.get("/containers/"+g.id, &seen) {
			g.wrong("%s is missing", g.id)
		}
		header = []string{"If-Match", seen.Version}
	}
	g.request("apply", func() answer {
		return g.change("apply", "PUT", "/containers/"+g.id, g.body(version, ports, on), header...)
	}, replaced(version, fmt.Sprint(ports), on))
}

func (g *game) rebind() {
	ports := g.somePorts()
	g.request("rebind", func() answer {
		return g.change("rebind", "POST", "/containers/"+g.id+"/rebind-network", map[string]any{"ports": bindings(ports)})
	}, func(s spec) spec { return replaced(s.version, fmt.Sprint(ports), s.on)(s) })
}

// command types a line if the game runs. If that is acknowledged, the game receives it, because this client does
// nothing else until then.
func (g *game) command() {
	var v view
	if g.get("/containers/"+g.id, &v); v.State != "running" || v.Power != "running" || v.Observed != v.Generation {
		return
	}
	line, repeated := fmt.Sprintf("line-%d", g.unique()), g.counts["repeated"]
	a := g.request("command", func() answer {
		return g.change("command", "POST", "/containers/"+g.id+"/command", map[string]any{"command": line})
	}, func(s spec) spec { return s })
	g.repeatable[line] = g.counts["repeated"] > repeated
	switch a.outcome {
	case refused:
		g.wrong("%s runs, and refused a command: %s", g.id, a.Body)
	case done:
		g.typed = append(g.typed, line)
		if !berthtest.Within(wait, func() bool { return slices.Contains(g.lines("commands"), line) }) {
			g.wrong("%s was typed, and %s has only %q", line, g.id, g.lines("commands"))
		}
	}
}

// remove deletes the game, half of the time with its volume.
func (g *game) remove() {
	path, whole := "/containers/"+g.id, g.chance(50)
	if whole {
		path += "?volume=true"
	}
	a := g.request("delete", func() answer { return g.change("delete", "DELETE", path, nil) }, remove)
	if a.outcome == done || a.outcome == lost && !g.look() {
		g.leaving, g.whole = true, whole
	}
}

// forgetVolume requires that the volume is gone, or going.
func (g *game) forgetVolume() {
	if !berthtest.Within(wait, func() bool { _, err := os.Stat(g.dir); return os.IsNotExist(err) }) {
		g.wrong("the volume %s of %s is still there", g.dir, g.id)
	}
	g.volume, g.dir = "", ""
	g.runs, g.installs = 0, 0
	g.possible = []spec{{}}
}

// awaitGone waits until the container is deleted.
func (g *game) awaitGone() {
	if !berthtest.Within(wait, g.gone) {
		g.wrong("%s is not deleted", g.id)
	}
}

// gone reports whether the container is deleted. Then it requires that the engine does not have it any more, and
// that its volume is gone, if that was requested too.
func (g *game) gone() bool {
	if g.get("/containers/"+g.id, nil) {
		return false
	}
	for _, c := range g.b.Containers(g.t, g.id) {
		if c.State != "created" { // else a killed daemon requested it: an orphan
			g.wrong("%s is deleted, and the engine has %s (%s)", g.id, c.ID, c.State)
		}
	}
	g.countLast()
	g.possible = []spec{{}}
	if g.leaving && g.whole {
		g.forgetVolume()
	}
	g.leaving = false
	return true
}

// view is a container as berth reports it.
type view struct {
	UID        string `json:"uid"`
	State      string `json:"state"`
	Power      string `json:"power"`
	Generation uint64 `json:"generation"`
	Observed   uint64 `json:"observed_generation"`
	Labels     map[string]string
	Env        map[string]string
	Hostname   string
	Message    string
	Ports      []struct{ Port int }
}

func (v view) ports() string {
	var list []int
	for _, p := range v.Ports {
		list = append(list, p.Port)
	}
	slices.Sort(list)
	return fmt.Sprint(list)
}

// look compares what berth shows with the model, and reports whether the game exists.
func (g *game) look() bool {
	var v view
	there := g.get("/containers/"+g.id, &v) && v.State != "deleting"
	g.narrow(v, there)
	return there
}

func (g *game) exists() bool {
	var v view
	return g.get("/containers/"+g.id, &v) && v.State != "deleting"
}

// narrow removes the possible specs that do not have what berth shows.
func (g *game) narrow(v view, there bool) {
	version := 0
	_, _ = fmt.Sscan(v.Labels["version"], &version)
	if there && (v.Env["VERSION"] != v.Labels["version"] || v.Hostname != "v"+v.Env["VERSION"]) {
		g.wrong("%s is half of a request: labels %v, env %v, hostname %s", g.id, v.Labels, v.Env, v.Hostname)
	}
	fits := func(s spec) bool {
		return s.exists == there && (!there || s.version == version && s.ports == v.ports() && s.on == (v.Power == "running"))
	}
	if !slices.ContainsFunc(g.possible, fits) {
		g.wrong("%s (exists: %t) has version %d, ports %s, power %s; possible: %+v", g.id, there, version, v.ports(), v.Power, g.possible)
		return
	}
	g.possible = slices.DeleteFunc(g.possible, func(s spec) bool { return !fits(s) })
}

// lines returns the lines of a file of the volume.
func (g *game) lines(name string) []string {
	content, _ := os.ReadFile(filepath.Join(g.dir, name))
	return strings.Fields(string(content))
}
