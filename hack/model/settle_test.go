package model_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"berth/hack/test/berthtest"
)

// settle waits until everything that was requested of the game is done, and compares its files with the model.
func (g *game) settle() {
	if !g.look() {
		if g.volume != "" {
			g.awaitGone()
		}
		return
	}
	v := g.await()
	g.narrow(v, true)
	runs, installs := g.count("runs"), g.count("installs")
	fits := func(s spec) bool {
		return between(runs-g.runs, oneIf(s.on && s.runs > 0), s.runs) && between(installs-g.installs, oneIf(s.installs > 0), s.installs)
	}
	if !slices.ContainsFunc(g.possible, fits) {
		g.wrong("%s ran %d times and was installed %d times since it had %d and %d; possible: %+v; it is %+v",
			g.id, runs-g.runs, installs-g.installs, g.runs, g.installs, g.possible, v)
	}
	s := g.possible[0]
	s.runs, s.installs = 0, 0
	g.possible, g.runs, g.installs = []spec{s}, runs, installs
	g.checkCommands()
	g.checkEngine(v)
	g.uid = v.UID
}

func between(n, least, most int) bool { return least <= n && n <= most }

// await waits until berth reports that the spec is carried out.
func (g *game) await() (v view) {
	settled := func() bool {
		v = view{}
		if !g.get("/containers/"+g.id, &v) {
			return true
		}
		reached := v.State == "ready" || v.State == "exit"
		if v.Power == "running" {
			reached = v.State == "running"
		}
		return reached && v.Observed == v.Generation
	}
	if !berthtest.Within(wait, settled) {
		g.wrong("%s does not become what was requested: %+v", g.id, v)
	}
	return v
}

// countLast counts what a deleted game did in its volume, if that is still there.
func (g *game) countLast() {
	if g.dir == "" {
		return
	}
	runs, installs, mostRuns, mostInstalls := g.count("runs"), g.count("installs"), 0, 0
	for _, s := range g.possible {
		mostRuns, mostInstalls = max(mostRuns, s.runs), max(mostInstalls, s.installs)
	}
	if runs-g.runs > mostRuns || installs-g.installs > mostInstalls {
		g.wrong("%s, now deleted, ran %d times and was installed %d times since it had %d and %d; possible: %+v",
			g.id, runs-g.runs, installs-g.installs, g.runs, g.installs, g.possible)
	}
	g.runs, g.installs = runs, installs
}

func (g *game) count(name string) int {
	content, err := os.ReadFile(filepath.Join(g.dir, name))
	if err != nil && !os.IsNotExist(err) {
		g.wrong("%s: %v", g.id, err)
	}
	return strings.Count(string(content), "\n")
}

// checkCommands requires that acknowledged commands were typed, and no command twice without a repetition.
func (g *game) checkCommands() {
	received := map[string]int{}
	for _, line := range g.lines("commands") {
		received[line]++
	}
	for line, n := range received {
		if n > 1 && !g.repeatable[line] {
			g.wrong("%s received the command %s %d times", g.id, line, n)
		}
	}
	for _, line := range g.typed {
		if received[line] == 0 {
			g.wrong("%s lost the command %s", g.id, line)
		}
	}
}

// checkEngine compares the engine's containers with the spec: there is one, it runs or not, with these ports.
func (g *game) checkEngine(v view) {
	var servers []string
	for _, c := range g.b.Containers(g.t, g.id) {
		if c.Labels["io.berth.role"] == "server" {
			servers = append(servers, c.ID)
		}
	}
	if len(servers) != 1 {
		g.wrong("%s has the containers %v on the engine", g.id, servers)
		return
	}
	one, _ := g.b.Engine.Inspect(g.t, servers[0])
	if on := v.Power == "running"; one.State.Running != on {
		g.wrong("%s: it runs on the engine: %t; its power is %s", g.id, one.State.Running, v.Power)
	}
	if !one.State.Running {
		return
	}
	var ports []int
	for _, list := range one.NetworkSettings.Ports {
		for _, p := range list {
			number := 0
			_, _ = fmt.Sscan(p.HostPort, &number)
			ports = append(ports, number)
		}
	}
	slices.Sort(ports)
	if fmt.Sprint(ports) != v.ports() || !slices.Contains(one.Config.Env, "VERSION="+v.Env["VERSION"]) {
		g.wrong("%s runs with ports %v and %v, and is requested with %s and version %s", g.id, ports, one.Config.Env, v.ports(), v.Env["VERSION"])
	}
}
