package e2e_test

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/hack/test/berthtest"
	"berth/hack/test/enginetest"
)

// realServer is a server of Debian, and what its customer does with it.
type realServer struct {
	install string // writes the settings
	startup string
	pattern string
	tty     bool
	stop    berthtest.Spec
	command string // typed into its console, or sent to its port if it begins with SAVE; minetest takes none
	answer  string // matches with a line of the console behind the command
	kept    string // a file of the volume that the command wrote, or that stays as it is
	saved   string // a file that a stop writes
}

// The server of Java reads its console with JLine 2, as Minecraft's and its forks do.
const javaServer = `
import java.nio.file.*;
import jline.console.ConsoleReader;
public class Server {
	public static void main(String[] args) throws Exception {
		Runtime.getRuntime().addShutdownHook(new Thread(() -> write("exit.dat", "world")));
		ConsoleReader console = new ConsoleReader();
		console.setPrompt("> ");
		console.println("Done (0.1s)! For help, type \"help\"");
		for (String line; (line = console.readLine()) != null;) {
			if (line.equals("stop")) System.exit(0);
			write("kept.dat", line);
			console.println("Saved the game: " + line);
		}
	}
	static void write(String name, String text) {
		try { Files.writeString(Path.of(name), text); } catch (Exception e) { throw new RuntimeException(e); }
	}
}`

var realServers = map[string]realServer{
	"redis": {
		install: "printf 'save 3600 1\\nprotected-mode no\\n' > redis.conf", pattern: "Ready to accept connections", stop: berthtest.Spec{"signal": "SIGTERM"},
		startup: `redis-server ./redis.conf --port $SERVER_PORT $MORE`,
		command: "SAVE", answer: "DB saved on disk", kept: "dump.rdb", saved: "dump.rdb",
	},
	"openttd": {
		install: `printf '[gui]\nautosave_on_exit = true\n[difficulty]\nmax_no_competitors = 0\n[game_creation]\nmap_x = 6\nmap_y = 6\n' > openttd.cfg`,
		startup: `/usr/games/openttd -D -c ./openttd.cfg -g $(ls save/kept.sav 2>/dev/null)`,
		pattern: "Network revision name", stop: berthtest.Spec{"command": "quit"},
		command: "save kept", answer: "Map successfully saved", kept: "save/kept.sav", saved: "save/autosave/exit.sav",
	},
	"minetest": {
		install: "mkdir world && echo 'gameid = minetest_game' > world/world.mt",
		startup: `cd /home/container; /usr/games/minetestserver --world world --port $SERVER_PORT`,
		pattern: "listening on", tty: true, stop: berthtest.Spec{"signal": "SIGINT"},
		kept: "world/map_meta.txt", saved: "world/env_meta.txt",
	},
	"java": {
		install: "cat > Server.java <<'E'" + javaServer + "\nE",
		startup: `java -Xmx128M -cp /usr/share/java/jline2.jar:/usr/share/java/jansi1.jar $FLAGS Server.java`,
		pattern: `Done \(`, tty: true, stop: berthtest.Spec{"command": "stop"},
		command: "day 7", answer: "Saved the game: day 7", kept: "kept.dat", saved: "exit.dat",
	},
}

// TestRealServers lives the life of servers as Debian has them, on an image whose sh is dash: install,
// start pattern, command, backup beside it, a stop that saves, restore, start. The short form has redis only.
func TestRealServers(t *testing.T) {
	t.Parallel()
	servers, image := realServers, ""
	if rounds(0, 1) == 1 {
		image = debianServers(t)
	} else {
		servers = map[string]realServer{"redis": realServers["redis"]}
		image = redisImage(t)
	}
	b := berthtest.Start(t, berthtest.Options{})
	for name, s := range servers {
		t.Run(name, func(t *testing.T) { s.live(t, b, name, image) })
	}
}

// redisImage has the redis of the host: redis-tools has the same program by another name.
func redisImage(t *testing.T) string {
	files := withLibraries(t, "/bin/dash", map[string][]byte{})
	files = withLibraries(t, "/usr/bin/redis-check-rdb", files)
	files["bin/sh"], files["bin/redis-server"] = files["bin/dash"], files["usr/bin/redis-check-rdb"]
	return ownImage(t, "redis", files, ocispec.ImageConfig{})
}

// debianServers is a whole Debian with the servers. The first call on a machine takes two minutes.
func debianServers(t *testing.T) string {
	root, err := exec.Command("tar", "-C", enginetest.Root(t, "servers"), "--exclude=./proc/*", "--exclude=./sys/*", "--exclude=./dev/*", "-c", ".").Output()
	require.NoError(t, err)
	const ref = "berth-test/servers:1"
	engine := enginetest.Shared(t)
	engine.Import(t, ref, root, `CMD ["sh"]`)
	t.Cleanup(func() { engine.RemoveImage(t, ref) })
	return ref
}

func (s realServer) live(t *testing.T, b *berthtest.Berth, id, image string) {
	port, volume := b.Port(t), b.Volume(t)
	file := func(name string) string { return filepath.Join(b.Data, "volumes", volume, name) }
	b.Create(t, id, berthtest.Spec{
		"image": image, "volume_id": volume, "install_script": s.install, "startup_command": s.startup,
		"start_pattern": s.pattern, "tty": s.tty, "power": "running", "env": berthtest.Spec{"SERVER_PORT": fmt.Sprint(port.Port)},
		"stop": s.stop, "limits": berthtest.Spec{"memory": 1 << 30, "disk": 1 << 30},
		"ports": []berthtest.Spec{{"ip": port.IP, "port": port.Port, "protocol": "tcp"}},
	})
	b.State(t, id, "running")
	s.act(t, b, id, port)
	kept, err := os.ReadFile(file(s.kept))
	require.NoError(t, err)
	backup := startBackup(t, b, volume, nil)
	require.Equal(t, "completed", backedUp(t, b, backup).State)

	require.NoError(t, os.RemoveAll(file(s.saved)))
	b.Verb(t, id, "stop")
	require.NotEqual(t, 137, *b.State(t, id, "exit").ExitCode, "it was killed")
	require.FileExists(t, file(s.saved), "the stop has saved nothing")

	require.NoError(t, os.Remove(file(s.kept)))
	state, message := restored(t, b, backup, nil)
	require.Equal(t, "completed", state, message)
	again, err := os.ReadFile(file(s.kept))
	require.NoError(t, err)
	require.Equal(t, kept, again)
	b.Verb(t, id, "start")
	b.State(t, id, "running")
	s.act(t, b, id, port)
	b.Delete(t, id)
}

// act gives the command of the server and waits for its answer, which no earlier line of the console is.
func (s realServer) act(t *testing.T, b *berthtest.Berth, id string, port v1.PortRef) {
	if s.command == "" {
		return
	}
	began := time.Now()
	if strings.HasPrefix(s.command, "SAVE") {
		c, err := net.Dial("tcp", net.JoinHostPort(port.IP, fmt.Sprint(port.Port)))
		require.NoError(t, err)
		defer c.Close()
		_, err = fmt.Fprint(c, "SET day 7\r\n", s.command, "\r\n")
		require.NoError(t, err)
		answer, err := bufio.NewReader(c).ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, "+OK\r\n", answer)
	} else {
		b.Post(t, "/containers/"+id+"/command", map[string]string{"command": s.command})
	}
	answer := regexp.MustCompile(s.answer)
	var logs struct {
		Lines []struct {
			Time time.Time
			Data string
		}
	}
	defer func() {
		if t.Failed() {
			t.Log(logs)
		}
	}()
	berthtest.Until(t, 3*time.Minute, s.answer+" is in the console of "+id, func() bool {
		b.Get(t, "/containers/"+id+"/logs?tail=200", &logs)
		for _, l := range logs.Lines {
			if l.Time.After(began) && answer.MatchString(l.Data) {
				return true
			}
		}
		return false
	})
}
