package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/stretchr/testify/require"

	"berth/hack/test/berthtest"
)

// The programs of the test's image that eggs download with: they read what is at the end of
// a URL from /fixtures.
const (
	curl = `#!/bin/sh
out=
while [ $# -gt 0 ]; do
	case $1 in http*) url=$1 ;; -*o) out=$2; shift ;; esac
	shift
done
[ -f "/fixtures/${url##*/}" ] || { echo "curl: there is no $url" >&2; exit 22; }
if [ "$out" ]; then cat "/fixtures/${url##*/}" >"$out"; else cat "/fixtures/${url##*/}"; fi
`
	wget = "#!/bin/sh\nfor one; do case $one in http*) cp \"/fixtures/${one##*/}\" . ;; esac; done\n"
)

// downloads are the files that the scripts download.
var downloads = map[string]string{
	"versions.json":        "[ \"1.20.6\", \"1.21.4\" ]\n",
	"build.txt":            "435",
	"paper-1.21.4-435.jar": "jar of build 435",
	"server.properties":    "motd=A server\nserver-port=25565\n",
	"version_manifest.txt": "1.20 https://launcher.example/old.jar\n1.21.4 https://launcher.example/server-1214.jar\n",
	"server-1214.jar":      "jar of 1.21.4",
	"BungeeCord.jar":       "jar of build 1700",
	"murmur.ini":           "; a comment\nport=64738\n\nusers=5\nwelcometext=hi\n",
	"app.py":               "print(\"hello\")\n",
	"redis.conf":           "port 6379\nmaxmemory 1gb\n",
}

// archives are the archives that they download, with the files in them.
var archives = map[string]map[string]string{
	"terraria-server-1449.zip": {"1449/Linux/TerrariaServer.bin.x86_64": "terraria server", "1449/Windows/x.exe": "not this"},
	"opengfx-all.zip":          {"opengfx.txt": "graphics"},
	"bedrock-server-1.20.zip":  {"bedrock_server": "bedrock server", "server.properties": "server-name=Dedicated", "permissions.json": "[1]"},
	"headless.tar.xz":          {"factorio/bin/x64/factorio": "factorio server", "factorio/data/server-settings.example.json": "{\n \"name\": \"x\",\n \"max\": 0\n}\n"},
	"steamcmd_linux.tar.gz": {"linux32/steamclient.so": "client 32", "linux64/steamclient.so": "client 64",
		"steamcmd.sh": "#!/bin/bash\nwhile [[ $1 ]]; do [[ $1 == +force_install_dir ]] && dir=$2; [[ $1 == +app_update ]] && app=$2; shift; done\necho \"\\\"appid\\\" \\\"$app\\\"\" > \"$dir/steamapps/appmanifest_$app.acf\"\n"},
}

// eggPrograms returns the programs and fixtures of the image in which the scripts run.
func eggPrograms(t *testing.T) map[string][]byte {
	t.Helper()
	bash, err := os.ReadFile("/bin/bash-static")
	require.NoError(t, err, "run hack/docker.sh tools")
	files := map[string][]byte{"bin/bash": bash, "bin/curl": []byte(curl), "bin/wget": []byte(wget)}
	for name, content := range downloads {
		files["fixtures/"+name] = []byte(content)
	}
	for name, content := range archives {
		dir := t.TempDir()
		for path, text := range content {
			require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, path)), 0o755))
			require.NoError(t, os.WriteFile(filepath.Join(dir, path), []byte(text), 0o644))
		}
		file := filepath.Join(t.TempDir(), name)
		pack := exec.Command("sh", "-c", `case $1 in *.zip) zip -qr "$1" . ;; *) tar -caf "$1" * ;; esac`, "sh", file)
		pack.Dir = dir
		out, err := pack.CombinedOutput()
		require.NoError(t, err, string(out))
		files["fixtures/"+name], err = os.ReadFile(file)
		require.NoError(t, err)
	}
	return files
}

// TestEggScripts installs with each script of testdata/eggs, unchanged. They are written as
// the eggs of other panels are: for bash, and for a volume at /mnt/server. A comment names
// the files and texts that a script has to leave.
func TestEggScripts(t *testing.T) {
	t.Parallel()
	scripts, err := filepath.Glob("testdata/eggs/*.sh")
	require.NoError(t, err)
	require.Len(t, scripts, 20)
	image := ownImage(t, "1", eggPrograms(t), ocispec.ImageConfig{})
	b := berthtest.Start(t, berthtest.Options{})
	text := map[string]string{}
	for _, path := range scripts {
		script, err := os.ReadFile(path)
		require.NoError(t, err)
		id := strings.TrimSuffix(filepath.Base(path), ".sh")
		text[id] = string(script)
		b.Create(t, id, berthtest.Spec{"image": image, "install_script": string(script), "install_mount": "/mnt/server", "install_entrypoint": "bash",
			"env": map[string]string{"SERVER_JARFILE": "server.jar", "SERVER_PORT": "25577", "EULA": "true"}})
	}
	for id, script := range text {
		c := b.Await(t, id, "the end of the installation", func(c berthtest.Container) bool { return c.State == "ready" || c.State == "failed" })
		require.EqualValues(t, "ready", c.State, "%s: %s: %s", id, c.Message, b.Must(t, "GET", "/containers/"+id+"/install-logs", nil).Body)
		found := 0
		for line := range strings.SplitSeq(script, "\n") {
			wanted, is := strings.CutPrefix(line, "# expects: ")
			if !is {
				continue
			}
			path, content, _ := strings.Cut(wanted, " ")
			file, err := os.ReadFile(filepath.Join(c.Mount.Source, path))
			require.NoError(t, err, id)
			require.Contains(t, string(file), content, id)
			found++
		}
		require.NotZero(t, found, id)
	}
	// A shell that the image does not have is a failure with its reason.
	b.Create(t, "no-shell", berthtest.Spec{"install_script": "true", "install_entrypoint": "bash"})
	b.State(t, "no-shell", "failed")
	berthtest.Until(t, wait, "the log names the shell", func() bool {
		return strings.Contains(string(b.Must(t, "GET", "/containers/no-shell/install-logs", nil).Body), `exec: \"bash\": executable file not found`)
	})
}
