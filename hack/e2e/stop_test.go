package e2e_test

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/stretchr/testify/require"

	"berth/hack/test/berthtest"
)

// game saves when it is asked to stop, and exits with 7.
const game = `#!/bin/busybox sh
trap 'echo saved; exit 7' TERM INT
echo up
while true; do sleep 0.1; done
`

// shellImages has an image with each shell that images have as /bin/sh.
func shellImages(t *testing.T, programs ...string) map[string]string {
	t.Helper()
	images := map[string]string{}
	for _, shell := range []string{"busybox", "dash", "bash"} {
		files := map[string][]byte{
			"game": []byte(game), "start.sh": []byte("#!/bin/sh\n/game\n"), "outer.sh": []byte("/start.sh\necho after\n"),
		}
		for _, program := range programs {
			files = withLibraries(t, program, files)
		}
		if shell != "busybox" {
			files = withLibraries(t, "/bin/"+shell, files)
			files["bin/sh"] = files["bin/"+shell]
		}
		images[shell] = ownImage(t, shell, files, ocispec.ImageConfig{})
	}
	return images
}

// TestStopReachesTheProgram requires that a graceful stop lets the program save its work, whatever
// stands before it, with each shell that images have as /bin/sh. The exit code is that of the
// program where it replaces the shell, or the shell is berth's own.
func TestStopReachesTheProgram(t *testing.T) {
	t.Parallel()
	images := shellImages(t, "/usr/bin/tini")
	b := berthtest.Start(t, berthtest.Options{})
	type run struct {
		what string
		own  bool // its exit code is the program's
	}
	want := map[string]run{}
	lines := []string{"/game $X", "cd / && /game", "A=1 /game", "/game; echo after", // berth's shell waits
		"/start.sh", "/bin/sh -c 'cd . && /game; true'", "/outer.sh", "/usr/bin/tini -- /start.sh", "/usr/bin/tini -g -- /start.sh",
		"/game & wait", "/game | tee /tmp/log"}
	stops := []berthtest.Spec{{}, {"signal": "SIGINT"}, {"command": "^C"}, {"command": "^SIGTERM"}, {"command": "^^C"}}
	for k, shell := range []string{"busybox", "dash", "bash"} {
		for i, line := range lines {
			j := (i + k) % len(stops) // each line with three of them: the test of the keeper has all
			typed := j == 2 || j == 4
			if typed && (strings.Contains(line, "|") || strings.HasPrefix(line, "/usr/bin/tini --")) {
				j = 0 // the terminal sends it to tee too, and tini without -g takes the foreground for its own
			}
			id := fmt.Sprintf("%s-%d-%d", shell, i, j)
			want[id] = run{fmt.Sprint(shell, ": ", line, ": ", stops[j]), i < 4}
			b.Create(t, id, berthtest.Spec{"image": images[shell], "startup_command": line, "start_pattern": "^up", "power": "running", "tty": j > 1, "stop": stops[j]})
		}
	}
	for id := range want {
		b.State(t, id, "running")
		b.Verb(t, id, "stop")
	}
	for id, r := range want {
		c := b.State(t, id, "exit")
		logs := string(b.Must(t, "GET", "/containers/"+id+"/logs", nil).Body)
		require.Contains(t, logs, `saved"}`, "%s: %s", r.what, logs)
		require.NotContains(t, logs, `"after"`, r.what)
		require.NotEqual(t, 137, *c.ExitCode, r.what)
		if r.own {
			require.Equal(t, 7, *c.ExitCode, r.what)
		}
	}
}

// realProgram is a program that writes a file of its volume when it is asked to stop.
type realProgram struct {
	image   string
	files   map[string]string // of its volume: start.sh starts it
	pattern string
	saved   string // the file
}

// TestStopOfRealPrograms requires that programs keep their last write at each kind of stop behind
// scripts: redis, and a bot behind a launcher that passes no signal on. The long form has minetest,
// a server of Java and a bot behind npm too.
func TestStopOfRealPrograms(t *testing.T) {
	t.Parallel()
	programs := map[string]realProgram{}
	for shell, image := range shellImages(t, "/usr/bin/redis-check-rdb", "/usr/bin/node") {
		programs[shell+"-redis"] = realProgram{image, map[string]string{"start.sh": `cp /usr/bin/redis-check-rdb redis-server
./redis-server --save 3600 1 --port 7777 & for i in 1 2 3 4 5 6 7 8 9; do sleep 1; echo SET a b | nc 127.0.0.1 7777 -w 1 | grep OK && break; done; wait`}, "OK", "dump.rdb"}
		programs[shell+"-bot"] = realProgram{image, map[string]string{"bot.js": bot,
			"start.sh": `node -e 'require("child_process").spawn("node", ["bot.js"], {stdio: "inherit"})'`}, "^up", "saved"}
	}
	if rounds(0, 1) == 1 {
		debian, java, minetest := debianServers(t), realServers["java"], realServers["minetest"]
		programs["java"] = realProgram{debian, map[string]string{"start.sh": java.install + "\nsh ./run.sh", "run.sh": java.startup}, java.pattern, java.saved}
		programs["minetest"] = realProgram{debian, map[string]string{"start.sh": minetest.install + "\nsh ./run.sh", "run.sh": minetest.startup}, minetest.pattern, minetest.saved}
		programs["npm"] = realProgram{npmImage(t), map[string]string{"start.sh": "npm start", "bot.js": bot,
			"package.json": `{"name": "bot", "scripts": {"start": "node bot.js"}}`}, "^up", "saved"}
	}
	b := berthtest.Start(t, berthtest.Options{})
	for name, p := range programs {
		t.Run(name, func(t *testing.T) { p.keepsItsLastWrite(t, b, name) })
	}
}

// keepsItsLastWrite has the program start in each way and stop in each way, where a pipe has no terminal.
func (p realProgram) keepsItsLastWrite(t *testing.T, b *berthtest.Berth, name string) {
	type run struct{ what, volume string }
	want := map[string]run{}
	for i, line := range []string{"sh ./start.sh", "sh -c 'cd . && sh ./start.sh; echo'", "sh ./start.sh | tee log"} {
		for j, stop := range []berthtest.Spec{{}, {"signal": "SIGINT"}, {"command": "^C"}} {
			tty := j == 2
			if tty && strings.Contains(line, "|") || rounds(3, 1) == 3 && (i+j+len(name))%3 != 0 {
				continue // the short form has each line and each stop once
			}
			id, volume := fmt.Sprint(name, "-", i, "-", j), b.Volume(t)
			for file, content := range p.files {
				require.NoError(t, os.WriteFile(filepath.Join(b.Data, "volumes", volume, file), []byte(content+"\n"), 0o755))
			}
			want[id] = run{fmt.Sprint(line, ": ", stop), volume}
			b.Create(t, id, berthtest.Spec{"image": p.image, "volume_id": volume, "startup_command": line, "start_pattern": p.pattern,
				"power": "running", "tty": tty, "stop": stop, "env": berthtest.Spec{"SERVER_PORT": "30000"}})
		}
	}
	for id := range want {
		b.State(t, id, "running")
		b.Verb(t, id, "stop")
	}
	for id, r := range want {
		b.State(t, id, "exit")
		require.FileExists(t, filepath.Join(b.Data, "volumes", r.volume, p.saved), "%s\n%s", r.what, b.Must(t, "GET", "/containers/"+id+"/logs?tail=10", nil).Body)
	}
}

// npmImage has the npm of the host, with the packages that lie beside it.
func npmImage(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("../docker.sh", "tools", "npm:npm").CombinedOutput()
	require.NoError(t, err, "%s", out)
	program, err := exec.LookPath("npm")
	require.NoError(t, err)
	program, err = filepath.EvalSymlinks(program)
	require.NoError(t, err)
	files := withLibraries(t, "/usr/bin/node", map[string][]byte{"usr/bin/npm": []byte("#!/bin/sh\nexec node " + program + " \"$@\"\n")})
	packages := filepath.Join(program, "../../..")
	require.NoError(t, filepath.WalkDir(packages, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		files[path[1:]] = content
		return err
	}))
	return ownImage(t, "npm", files, ocispec.ImageConfig{})
}

// bot writes a file when it is asked to stop, some time later, as a bot that leaves its server.
const bot = `for (const s of ['SIGINT', 'SIGTERM']) process.on(s, () => setTimeout(() => {
	console.log('saving'); require('fs').writeFileSync('saved', 'x'); process.exit(0) }, 500));
setInterval(() => 0, 1000); console.log('up')
`

// withLibraries adds a program of the host and the libraries that it loads.
func withLibraries(t *testing.T, program string, files map[string][]byte) map[string][]byte {
	t.Helper()
	out, err := exec.Command("ldd", program).Output()
	require.NoError(t, err)
	paths := []string{program}
	for word := range strings.FieldsSeq(string(out)) {
		if strings.HasPrefix(word, "/") {
			paths = append(paths, word)
		}
	}
	for _, path := range paths {
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		files[strings.TrimPrefix(path, "/")] = content
	}
	return files
}
