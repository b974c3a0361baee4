package e2e_test

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/stretchr/testify/require"

	"berth/api/client"
	"berth/api/egg"
	v1 "berth/api/v1"
	"berth/hack/test/berthtest"
	"berth/hack/test/eggs"
)

// The programs of an image that is built as the images of eggs are. Its entrypoint expands
// STARTUP and runs the server, here a game of the test, as a child of its shell. The game needs a
// second to save when it is asked to stop.
const (
	eggEntrypoint = `#!/bin/%s
cd /home/container || exit 1
MODIFIED_STARTUP=$(echo "${STARTUP}" | sed -e 's/{{/${/g' -e 's/}}/}/g')
echo ":/home/container$ ${MODIFIED_STARTUP}"
/bin/game
`
	gameProgram = `#!/bin/sh
save() { sleep 1; echo saved >>saves/game; exit 0; }
trap save INT
echo "account $(id -u):$(id -g)"
find . ! -type l | while read -r file; do [ -w "$file" ] || echo "not writable: $file"; done
echo "$GAME_DONE"
while :; do read -r line || sleep 1; [ "$line" = "$GAME_STOP" ] && [ "$line" ] && save; done
`
)

// kinds are the traits of the eggs that run, each by an egg of its own. The first of them are in
// the short form of the test.
func kinds() []string {
	all := []string{"parser:properties", "stop:double_caret", "bridge_address", "parser:json", "script:chown", "form:yaml",
		"parser:file", "parser:xml", "parser:ini", "parser:yaml", "ini_section_in_brackets", "lower_case_variable", "several_images", "value_of_several_lines",
		"empty_key", "wildcard_key", "denylist", "reserved_variable", "path_not_clean", "several_done", "version:PLCN_v1", "startup_is_shell", "key_with_outer_space", "script:symlinks"}
	return all[:rounds(6, len(all))]
}

// chosen returns an egg of each kind.
func chosen(t *testing.T) (list []eggs.Egg) {
	t.Helper()
	wild, _ := eggs.Set(t)
	for _, kind := range kinds() {
		free := func(e eggs.Egg) bool {
			taken := slices.ContainsFunc(list, func(other eggs.Egg) bool { return other.ID == e.ID })
			return e.Has(kind) && !taken && e.Expect.Install.Image != ""
		}
		at := slices.IndexFunc(wild, func(e eggs.Egg) bool { return free(e) && len(e.Expect.NeedsValues) == 0 })
		if at < 0 {
			at = slices.IndexFunc(wild, free)
		}
		require.GreaterOrEqual(t, at, 0, kind)
		list = append(list, wild[at])
	}
	return list
}

// TestEggGames installs, starts, stops, changes and starts an egg of each kind, in images with a
// shell or with tini as the first process.
func TestEggGames(t *testing.T) {
	t.Parallel()
	bash, err := os.ReadFile("/bin/bash-static")
	require.NoError(t, err, "run hack/docker.sh tools")
	tini, err := os.ReadFile("/usr/bin/tini-static")
	require.NoError(t, err, "run hack/docker.sh tools")
	var images []string
	for tag, shape := range map[string]struct {
		shell           string
		entrypoint, cmd []string
	}{
		"bash": {"bash", nil, []string{"/bin/bash", "/entrypoint.sh"}}, "ash": {"ash", nil, []string{"/bin/ash", "/entrypoint.sh"}},
		"tini": {"bash", []string{"/bin/tini", "-g", "--"}, []string{"/entrypoint.sh"}},
	} {
		files := map[string][]byte{"bin/bash": bash, "bin/tini": tini, "bin/game": []byte(gameProgram), "entrypoint.sh": fmt.Appendf(nil, eggEntrypoint, shape.shell)}
		images = append(images, ownImage(t, tag, files, ocispec.ImageConfig{Entrypoint: shape.entrypoint, Cmd: shape.cmd,
			WorkingDir: "/home/container", Env: []string{"HOME=/home/container", "USER=container"}}))
	}
	slices.Sort(images)
	b := berthtest.Start(t, berthtest.Options{})
	for i, e := range chosen(t) {
		t.Run(e.ID, func(t *testing.T) { play(t, b, e, images[i%len(images)]) })
	}
}

// play is the life of one egg.
func play(t *testing.T, b *berthtest.Berth, e eggs.Egg, image string) {
	port := b.Port(t)
	request := v1.EggRequest{Egg: string(e.Content), InternalID: e.ID, VolumeID: b.Volume(t), Memory: 256 << 20,
		Ports: []v1.Port{{IP: port.IP, Port: port.Port, Protocol: port.Protocol}}}
	request.Variables = map[string]string{}
	for _, name := range e.Expect.NeedsValues {
		request.Variables[name] = "given1"
	}
	got, err := egg.Import(request)
	require.NoError(t, err)
	spec := got.Spec
	spec.Image, spec.InstallImage = image, image
	spec.Env["GAME_DONE"], spec.Env["GAME_STOP"] = "started", spec.Stop.Command
	if len(e.Expect.Done) > 0 {
		spec.Env["GAME_DONE"] = e.Expect.Done[0]
	}
	require.NoError(t, b.API.Containers().Create(t.Context(), spec))
	b.Await(t, e.ID, "its installation", func(c berthtest.Container) bool { return c.State != "installing" })
	require.EqualValues(t, "ready", b.Container(t, e.ID).State, "%s", b.Must(t, "GET", "/containers/"+e.ID+"/install-logs", nil).Body)

	run := func(spec v1.ContainerSpec, runs int) {
		b.Verb(t, e.ID, "start")
		b.State(t, e.ID, "running")
		log := string(b.Must(t, "GET", "/containers/"+e.ID+"/logs", nil).Body)
		require.Contains(t, log, "account 988:988")
		require.NotContains(t, log, "not writable")
		hasValues(t, b.Container(t, e.ID), e, spec)
		b.Verb(t, e.ID, "stop")
		b.State(t, e.ID, "exit")
		saved, err := os.ReadFile(filepath.Join(b.Container(t, e.ID).Mount.Source, "saves/game"))
		require.NoError(t, err)
		require.Equal(t, strings.Repeat("saved\n", runs), string(saved), "the game saves at each stop")
	}
	run(spec, 1)
	if name := changeable(e, spec); name != "" {
		spec.Env[name] = "77"
		_, err = b.API.Containers().Apply(t.Context(), spec, client.ApplyOptions{})
		require.NoError(t, err)
	}
	run(spec, 2)
	b.Must(t, "DELETE", "/containers/"+e.ID+"?volume=true", nil)
}

// changeable returns a variable that a configuration file has alone as a value, or "".
func changeable(e eggs.Egg, spec v1.ContainerSpec) string {
	for _, f := range spec.ConfigFiles {
		for _, edit := range f.Edits {
			name := strings.TrimSuffix(strings.TrimPrefix(edit.Value, "${"), "}")
			if _, is := spec.Env[name]; is && edit.If == "" && !slices.Contains([]string{"SERVER_PORT", "SERVER_IP", "SERVER_MEMORY"}, name) {
				return name
			}
		}
	}
	return ""
}

// plain matches the values that each format writes as they are.
var plain = regexp.MustCompile(`^[A-Za-z0-9.]+$`)

// hasValues requires that each value without a condition is in its file.
func hasValues(t *testing.T, c berthtest.Container, e eggs.Egg, spec v1.ContainerSpec) {
	t.Helper()
	for _, f := range spec.ConfigFiles {
		content, err := os.ReadFile(filepath.Join(c.Mount.Source, path.Clean(f.Path)))
		require.NoError(t, err, e.ID)
		for _, edit := range f.Edits {
			value, _ := v1.Expand(edit.Value, spec.Env)
			if edit.If == "" && f.Format != "text" && plain.MatchString(value) && !strings.Contains(edit.Key, "*") {
				require.Contains(t, string(content), value, "%s: %s", f.Path, edit.Key)
			}
		}
	}
}

// packageScript does what package managers do as root, and must not do what no installation needs. It leaves
// files of root, of an account of its own, and of one that only an archive knows.
const packageScript = `set -e
[ "$(id -u)" = 0 ]
echo of the entrypoint: $FROM_ENTRYPOINT
mkdir -p deep/er && echo 1 >deep/er/file && chmod 600 deep/er/file && ln -s deep link && ln deep/er/file hard
echo 1 >unpacked && chown 1001:127 unpacked
echo 1 >/setid
chown 0:55 /setid
chmod 2755 /setid
[ -g /setid ]
chroot / /bin/true
grep CapBnd /proc/self/status
cp /bin/busybox /ping
setcap cap_net_raw+ep /ping
setcap -v cap_net_raw+ep /ping
! mknod /dev/x b 8 0 2>/dev/null
`

// TestInstallUser requires that an installer that is root may do what package managers do, after the
// entrypoint of its image, and that all that it leaves belongs to the server when that starts: also after a file
// of root was put there from outside, and in the same way for the user of an image by its name.
func TestInstallUser(t *testing.T) {
	t.Parallel()
	entrypoint := []byte("#!/bin/sh\nexport FROM_ENTRYPOINT=set\nexec \"$@\"\n")
	programs := withLibraries(t, "/usr/sbin/setcap", map[string][]byte{"entrypoint.sh": entrypoint})
	programs["bin/setcap"] = programs["usr/sbin/setcap"]
	installImage := ownImage(t, "installer", programs, ocispec.ImageConfig{Entrypoint: []string{"/bin/sh", "/entrypoint.sh"}})
	image := ownImage(t, "player", nil, ocispec.ImageConfig{User: "player"})
	b := berthtest.Start(t, berthtest.Options{})
	for id, user := range map[string]string{"number": "988:988", "named": ""} {
		b.Create(t, id, berthtest.Spec{"image": image, "install_image": installImage, "user": user, "install_user": "root", "install_entrypoint": "sh",
			"install_script": packageScript, "start_pattern": "^up", "startup_command": "find . ! -user $(id -u); find . ! -type l | while read -r f; do [ -w \"$f\" ] || echo \"refused $f\"; done; " +
				"grep CapBnd /proc/self/status; echo up; sleep 100000"})
		b.Await(t, id, "its installation", func(c berthtest.Container) bool { return c.State != "installing" })
		var log string
		berthtest.Until(t, wait, "the log of the installer", func() bool { // an engine that is slow to give it delays no state for long
			log = string(b.Must(t, "GET", "/containers/"+id+"/install-logs", nil).Body)
			return strings.Contains(log, "CapBnd")
		})
		require.EqualValues(t, "ready", b.Container(t, id).State, log)
		require.Contains(t, log, "of the entrypoint: set")
		require.Contains(t, log, "00000000a00404fb", "CHOWN to SETUID, NET_BIND_SERVICE, SYS_CHROOT, AUDIT_WRITE and SETFCAP")
		for range 2 {
			b.Verb(t, id, "start")
			c := b.State(t, id, "running")
			log = string(b.Must(t, "GET", "/containers/"+id+"/logs", nil).Body)
			require.NotContains(t, log, "./", "files of others, or refused")
			require.NotContains(t, log, "refused")
			require.Contains(t, log, "00000000000004eb", "of a server")
			require.Empty(t, v1.FindCondition(c.Conditions, v1.VolumeWritable).Status)
			b.Verb(t, id, "stop")
			b.State(t, id, "exit")
			require.NoError(t, os.WriteFile(filepath.Join(c.Mount.Source, "restored"), nil, 0o600))
		}
	}
}

// TestInstallerIsRoot requires on every engine that a server which is not root can change what its installer,
// who is, has written.
func TestInstallerIsRoot(t *testing.T) {
	t.Parallel()
	b := berthtest.Start(t, berthtest.Options{})
	volume := b.Volume(t)
	b.Create(t, "mc", berthtest.Spec{"volume_id": volume, "user": "988:988", "install_user": "root", "start_pattern": "^up", "power": "running",
		"install_script":  "id -u > installer; mkdir -p game/data; echo world > game/data/world; chmod -R go= game",
		"startup_command": "echo day >> game/data/world && mv game/data/world game/ && echo up; sleep 100000"})
	b.State(t, "mc", "running")
	for file, want := range map[string]string{"installer": "0\n", "game/world": "world\nday\n"} {
		got, err := os.ReadFile(filepath.Join(b.Data, "volumes", volume, file))
		require.NoError(t, err)
		require.Equal(t, want, string(got))
	}
}
