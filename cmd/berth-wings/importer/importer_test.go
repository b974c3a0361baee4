package importer_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"berth/api/client"
	"berth/api/egg"
	v1 "berth/api/v1"
	"berth/cmd/berth-wings/config"
	"berth/cmd/berth-wings/importer"
	"berth/cmd/berth-wings/node"
	"berth/cmd/berth-wings/panel"
	"berth/hack/test/berthtest"
	"berth/hack/test/enginetest"
	"berth/hack/test/paneltest"
)

// The servers of the tests: one that runs, one that does not, and one without a folder.
const (
	alpha = "a1a1a1a1-1111-4111-8111-a1a1a1a1a1a1"
	beta  = "b2b2b2b2-2222-4222-8222-b2b2b2b2b2b2"
	gamma = "c3c3c3c3-3333-4333-8333-c3c3c3c3c3c3"
)

// The environment of a process that a test starts for one import, and kills before a step.
const (
	fileOf  = "IMPORT_FILE"
	urlOf   = "IMPORT_BERTH"
	tokenOf = "IMPORT_TOKEN"
	killOf  = "IMPORT_KILL"
	undoOf  = "IMPORT_UNDO"
)

func TestMain(m *testing.M) {
	if os.Getenv(fileOf) == "" {
		os.Exit(m.Run())
	}
	if err := process(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// process is an import of its own process, which kills itself before a step.
func process(ctx context.Context) error {
	berth, err := client.New(client.Options{URL: os.Getenv(urlOf), Token: v1.Secret(os.Getenv(tokenOf))})
	if err != nil {
		return err
	}
	i, err := open(os.Getenv(fileOf), berth, func(step string) {
		if step == os.Getenv(killOf) {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	})
	if err != nil {
		return err
	}
	if uuid := os.Getenv(undoOf); uuid != "" {
		return i.Undo(ctx, uuid)
	}
	plan, err := i.Plan(ctx)
	for _, s := range plan.Servers {
		if err == nil && !s.Imported && s.Refused == nil {
			err = i.Import(ctx, s)
		}
	}
	return err
}

func open(path string, berth *client.Client, step func(string)) (*importer.Importer, error) {
	file, err := config.Load(path, nil)
	if err != nil {
		return nil, err
	}
	p := panel.New(panel.Options{Remote: file.Config.Remote, Identity: node.Identity("1.0.0", file.Config), Timeout: 30 * time.Second, PerPage: 50})
	n, err := node.New(node.Options{File: file, Version: "1.0.0", Log: slog.New(slog.DiscardHandler), Berth: berth, Panel: p})
	if err != nil {
		return nil, err
	}
	return importer.New(importer.Options{Config: file.Config, Berth: berth, Panel: p, Node: n, Stop: 15 * time.Second, Step: step})
}

// host is a host on which wings has run until now.
type host struct {
	*berthtest.Berth
	panel *paneltest.Panel
	file  string // of the node
	data  string // folders of the servers
	ports map[string]int
}

const game = `echo start >> starts; echo Done; while read line; do case $line in stop) echo saved > world; exit 0;; esac; done`

func newHost(t *testing.T) *host {
	t.Helper()
	h := &host{Berth: berthtest.Start(t, berthtest.Options{}), panel: paneltest.Start(t), ports: map[string]int{}}
	h.Engine.Import(t, "berth-test/wings:1", enginetest.BusyboxTar(t), `CMD ["sh","-c","eval \"$STARTUP\""]`)
	root := t.TempDir()
	h.file, h.data = filepath.Join(root, "config.yml"), filepath.Join(root, "volumes")
	require.NoError(t, os.WriteFile(h.file, fmt.Appendf(nil, "token_id: %s\ntoken: %s\nremote: %s\nsystem: {root_directory: %s, user: {uid: 1234, gid: 1234}}\n",
		paneltest.TokenID, paneltest.Token, h.panel.URL, root), 0o600))
	for _, uuid := range []string{alpha, beta, gamma} {
		h.ports[uuid] = berthtest.FreePort(t)
		h.panel.SetServer(t, fmt.Sprintf(`{"settings": {"uuid": %q, "meta": {"name": "server"}, "environment": {}, "invocation": %q, "skip_egg_scripts": false,
"build": {"memory_limit": 64, "swap": 0, "io_weight": 500, "cpu_limit": 50, "threads": null, "disk_space": 16, "oom_killer": true},
"container": {"image": "~berth-test/wings:1"}, "allocations": {"force_outgoing_ip": true, "default": {"ip": "127.0.0.1", "port": %d}, "mappings": {}}, "egg": {}},
"process_configuration": {"startup": {"done": ["Done"]}, "stop": {"type": "command", "value": "stop"}, "configs": []}}`, uuid, game, h.ports[uuid]))
	}
	for _, uuid := range []string{alpha, beta} {
		h.create(t, uuid)
	}
	require.NoError(t, os.MkdirAll(filepath.Join(h.data, ".sftp"), 0o700))
	require.Equal(t, 204, h.Engine.Act(t, alpha, "start"))
	h.starts(t, h.folder(alpha), 1)
	return h
}

func (h *host) folder(uuid string) string { return filepath.Join(h.data, uuid) }

// create creates the folder and the container of a server as wings does.
func (h *host) create(t *testing.T, uuid string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Join(h.folder(uuid), "maps"), 0o755))
	for _, path := range []string{"", "maps", "maps/a.dat"} {
		path = filepath.Join(h.folder(uuid), path)
		if strings.HasSuffix(path, ".dat") {
			require.NoError(t, os.WriteFile(path, []byte(uuid), 0o640))
		}
		require.NoError(t, os.Chown(path, 1234, 1234))
	}
	port := map[string]any{"25565/tcp": []map[string]string{{"HostIp": "127.0.0.1", "HostPort": fmt.Sprint(h.ports[uuid])}}}
	h.Engine.CreateRaw(t, uuid, map[string]any{"Image": "berth-test/wings:1", "Tty": true, "OpenStdin": true, "AttachStdin": true, "User": "1234:1234",
		"Env": []string{"STARTUP=" + game}, "WorkingDir": "/home/container", "Labels": map[string]string{"Service": "Pelican", "ContainerType": "server_process"},
		"ExposedPorts": map[string]any{"25565/tcp": struct{}{}},
		"HostConfig":   map[string]any{"Binds": []string{h.folder(uuid) + ":/home/container"}, "PortBindings": port}})
}

// starts waits until a server has started that often.
func (h *host) starts(t *testing.T, folder string, want int) {
	t.Helper()
	berthtest.Until(t, 3*time.Minute, fmt.Sprint(folder, " has ", want, " starts"), func() bool {
		text, _ := os.ReadFile(filepath.Join(folder, "starts"))
		return string(text) == strings.Repeat("start\n", want)
	})
}

// run runs an import in a process of its own. kill is the step before which it is killed; empty: none.
func (h *host) run(t *testing.T, undo, kill string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), fileOf+"="+h.file, urlOf+"=http://"+h.Addr, tokenOf+"="+h.Token, killOf+"="+kill, undoOf+"="+undo)
	out, err := cmd.CombinedOutput()
	if kill == "" {
		require.NoError(t, err, "%s", out)
		return
	}
	require.Equal(t, -1, cmd.ProcessState.ExitCode(), "it has no step %q: %s", kill, out)
}

// volume returns the volume of a server.
func (h *host) volume(t *testing.T, uuid string) (list []v1.VolumeView) {
	t.Helper()
	list, err := h.API.Volumes().List(t.Context(), egg.ServerLabel+"="+uuid)
	require.NoError(t, err)
	return list
}

// TestImport moves servers to berth and back, and is killed before each step of both.
func TestImport(t *testing.T) {
	h := newHost(t)
	for _, step := range []string{"create the volume", "stop", "remove the container", "rename", "create the container", "forget"} {
		h.run(t, "", step)
	}
	h.run(t, "", "")
	for uuid, state := range map[string]string{alpha: "running", beta: "ready"} {
		volumes := h.volume(t, uuid)
		require.Len(t, volumes, 1)
		require.Equal(t, map[string]string{egg.ServerLabel: uuid}, volumes[0].Labels)
		c := h.State(t, uuid, state)
		require.Equal(t, volumes[0].VolumeID, c.VolumeID)
		require.Equal(t, uuid, c.Labels[egg.ServerLabel])
		text, err := os.ReadFile(filepath.Join(volumes[0].Path, "maps", "a.dat"))
		require.NoError(t, err)
		require.Equal(t, uuid, string(text))
		require.NoDirExists(t, h.folder(uuid))
		_, found := h.Engine.Inspect(t, uuid)
		require.False(t, found, "the container of wings is gone")
		require.Contains(t, h.Pool(t), fmt.Sprintf("127.0.0.1:%d/tcp", h.ports[uuid]))
	}
	path := h.volume(t, alpha)[0].Path
	h.starts(t, path, 2)
	require.FileExists(t, filepath.Join(path, "world"), "it was stopped by its command")
	require.Empty(t, h.volume(t, gamma))

	for _, step := range []string{"stop in berth", "delete in berth", "remove the ports", "rename back", "delete the volume"} {
		h.run(t, alpha, step)
	}
	h.run(t, alpha, "")
	h.Gone(t, alpha)
	berthtest.Until(t, 3*time.Minute, "the volume is gone", func() bool { return len(h.volume(t, alpha)) == 0 })
	require.NoDirExists(t, path)
	require.NotContains(t, h.Pool(t), fmt.Sprintf("127.0.0.1:%d/tcp", h.ports[alpha]))
	h.starts(t, h.folder(alpha), 2)
	info, err := os.Stat(filepath.Join(h.folder(alpha), "maps", "a.dat"))
	require.NoError(t, err)
	require.Equal(t, uint32(1234), info.Sys().(*syscall.Stat_t).Uid)
	require.Equal(t, os.FileMode(0o640), info.Mode())

	h.create(t, alpha) // as wings does at the next start
	require.Equal(t, 204, h.Engine.Act(t, alpha, "start"))
	h.starts(t, h.folder(alpha), 3)
	began := time.Now()
	h.run(t, "", "")
	h.starts(t, h.volume(t, alpha)[0].Path, 4)
	require.Less(t, time.Since(began), time.Minute, "between the start of the import and that of the server")
}

// TestPlan: what is imported, what stays, and why. Nothing is changed.
func TestPlan(t *testing.T) {
	h := newHost(t)
	i, err := open(h.file, h.API, func(step string) { t.Error("a plan has the step " + step) })
	require.NoError(t, err)
	defer i.Close()
	require.NoError(t, os.MkdirAll(filepath.Join(filepath.Dir(h.data), "backups", alpha), 0o700))
	for _, path := range []string{alpha + "/x.tar.gz", "y.tar.gz"} {
		require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(h.data), "backups", path), nil, 0o600))
	}
	of := func(uuid string) importer.Server {
		plan, err := i.Plan(t.Context())
		require.NoError(t, err)
		require.Equal(t, []string{".sftp"}, plan.Left)
		require.Equal(t, 2, plan.Backups)
		for _, s := range plan.Servers {
			if s.UUID == uuid {
				return s
			}
		}
		t.Fatal("it is not in the plan")
		return importer.Server{}
	}
	s := of(alpha)
	require.NoError(t, s.Refused)
	require.True(t, s.Runs)
	require.Greater(t, s.Size, int64(4096))
	require.Contains(t, strings.Join(s.Notes, " "), "force_outgoing_ip")
	require.False(t, of(beta).Runs)
	require.ErrorContains(t, of(gamma).Refused, "is missing")

	h.Engine.CreateRaw(t, beta+"_installer", map[string]any{"Image": "berth-test/wings:1", "Env": []string{"STARTUP=read x"}, "OpenStdin": true})
	require.Equal(t, 204, h.Engine.Act(t, beta+"_installer", "start"))
	require.ErrorContains(t, of(beta).Refused, "is being installed")

	_, err = h.API.Volumes().Create(t.Context(), v1.VolumeSpec{Labels: map[string]string{egg.ServerLabel: beta}})
	require.NoError(t, err)
	require.ErrorContains(t, of(beta).Refused, "--undo "+beta)
	require.NoError(t, os.Symlink("/etc", h.folder(gamma)))
	require.ErrorContains(t, of(gamma).Refused, "is not a folder")
	require.Empty(t, h.volume(t, alpha))
}

// TestOtherMount: a server whose folder cannot be renamed runs on with wings.
func TestOtherMount(t *testing.T) {
	h := newHost(t)
	h.Engine.Kill(t, alpha)
	h.Engine.Remove(t, alpha)
	require.NoError(t, syscall.Mount(h.data, h.data, "", syscall.MS_BIND, ""))
	t.Cleanup(func() { require.NoError(t, syscall.Unmount(h.data, syscall.MNT_DETACH)) })
	h.create(t, alpha)
	require.Equal(t, 204, h.Engine.Act(t, alpha, "start"))
	i, err := open(h.file, h.API, nil)
	require.NoError(t, err)
	defer i.Close()
	plan, err := i.Plan(t.Context())
	require.NoError(t, err)
	require.ErrorContains(t, i.Import(t.Context(), plan.Servers[0]), "another file system or mount")
	c, found := h.Engine.Inspect(t, alpha)
	require.True(t, found && c.State.Running, "it was not stopped")
	berthtest.Until(t, 3*time.Minute, "the volume is gone", func() bool { return len(h.volume(t, alpha)) == 0 })
}
