package e2e_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/hack/test/berthtest"
)

// TestConfigFiles: a server reads the values of config_files in its first run, and a file
// that cannot be changed is named by a condition.
func TestConfigFiles(t *testing.T) {
	t.Parallel()
	b := berthtest.Start(t, berthtest.Options{})
	volume := b.Volume(t)
	dir := filepath.Join(b.Data, "volumes", volume)
	berthtest.Until(t, wait, "the directory exists", func() bool { _, err := os.Stat(dir); return err == nil })
	yaml := "# kept\nsettings:\n  port: 1 # the port\n  name: 'old'\n"
	require.NoError(t, os.WriteFile(dir+"/paper.yml", []byte(yaml), 0o600))
	require.NoError(t, os.Symlink("/etc/passwd", dir+"/link.json"))
	require.NoError(t, syscall.Mkfifo(dir+"/fifo.ini", 0o600))
	huge, err := os.Create(dir + "/huge.xml")
	require.NoError(t, err)
	require.NoError(t, huge.Truncate(1<<30))
	require.NoError(t, huge.Close())
	require.NoError(t, os.WriteFile(dir+"/server.cfg", []byte("port 1\n"), 0o600))
	require.NoError(t, os.WriteFile(dir+"/proxy.json", []byte(`{"servers": {"a": "localhost:1", "b": "10.0.0.9:2"}}`), 0o600))
	set := func(key string) map[string]string { return map[string]string{key: "${PORT}"} }
	spec := b.Body(t, "mc", berthtest.Spec{
		"volume_id": volume, "env": map[string]string{"PORT": "25565"}, "power": "running", "start_pattern": "^up",
		"startup_command": "cat server.properties paper.yml; echo up; sleep 100000",
		"config_files": []any{
			v1.ConfigFile{Path: "server.properties", Format: "properties", Set: set("server-port")},
			v1.ConfigFile{Path: "paper.yml", Format: "yaml", Set: map[string]string{"settings.port": "${PORT}", "settings.name": "it's new"}},
			v1.ConfigFile{Path: "link.json", Format: "json", Set: set("port")},
			v1.ConfigFile{Path: "fifo.ini", Format: "ini", Set: set("s.port")},
			v1.ConfigFile{Path: "huge.xml", Format: "xml", Set: set("/a/b")},
			berthtest.Spec{"path": "server.cfg", "format": "text", "append": false, "edits": []berthtest.Spec{
				{"key": "port", "value": "port ${PORT}"}, {"key": "name", "value": "name x"}}},
			berthtest.Spec{"path": "proxy.json", "format": "json", "edits": []berthtest.Spec{
				{"key": "servers.*", "value": "${PORT}$1", "if": `regex:^localhost(:\d+)$`}}},
			berthtest.Spec{"path": "missing.json", "format": "json", "create": false, "set": set("port")},
		},
	})
	b.Post(t, "/containers", spec)
	c := b.State(t, "mc", "running")
	logs := string(b.Must(t, "GET", "/containers/mc/logs", nil).Body)
	for _, line := range []string{"server-port=25565", "# kept", "  port: 25565 # the port", "  name: 'it''s new'"} {
		require.Contains(t, logs, line)
	}
	condition := v1.FindCondition(c.Conditions, v1.ConfigFilesApplied)
	require.Equal(t, v1.False, condition.Status)
	for _, text := range []string{"link.json: a link", "fifo.ini: something that is not a file", "huge.xml: the file is larger than 512 KiB"} {
		require.Contains(t, condition.Message, text)
	}
	for file, want := range map[string]string{"server.cfg": "port 25565\n", "proxy.json": `{"servers": {"a": "25565:1", "b": "10.0.0.9:2"}}`} {
		content, err := os.ReadFile(filepath.Join(dir, file))
		require.NoError(t, err)
		require.Equal(t, want, string(content))
	}
	require.NoFileExists(t, dir+"/missing.json")
	written, err := os.Stat(dir + "/paper.yml")
	require.NoError(t, err)

	engineID := c.ContainerID
	spec["config_files"] = []v1.ConfigFile{{Path: "paper.yml", Format: "yaml", Set: map[string]string{"settings.port": "25565"}}}
	b.Must(t, "PUT", "/containers/mc", spec)
	b.Verb(t, "mc", "restart")
	c = b.Await(t, "mc", "the condition is true", func(c berthtest.Container) bool {
		return v1.FindCondition(c.Conditions, v1.ConfigFilesApplied).Status == v1.True && c.State == v1.Running
	})
	require.Equal(t, engineID, c.ContainerID, "no other container is needed")
	again, err := os.Stat(dir + "/paper.yml")
	require.NoError(t, err)
	require.True(t, os.SameFile(written, again), "a second application writes nothing")
}
