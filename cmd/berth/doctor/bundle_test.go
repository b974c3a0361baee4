package doctor

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
)

// unpack returns the files of a bundle.
func unpack(t *testing.T, archive []byte) map[string]string {
	t.Helper()
	files := map[string]string{}
	z, err := gzip.NewReader(bytes.NewReader(archive))
	require.NoError(t, err)
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		require.NoError(t, err)
		require.EqualValues(t, 0o600, h.Mode)
		text, err := io.ReadAll(r)
		require.NoError(t, err)
		files[strings.TrimPrefix(h.Name, "berth-doctor/")] = string(text)
	}
}

// TestBundle: every secret is in every source, and in no file.
func TestBundle(t *testing.T) {
	secrets := []string{"configured-token", "remote-token", "registry-password", "variable-value", "line-of-a-key", "path-of-the-panel", "bucket-secret", "berth_0123456789abcdef0123456789abcdef"}
	all := strings.Join(secrets, " ")
	host, _ := newFakeEngine(t)
	log := filepath.Join(t.TempDir(), "berth.log")
	require.NoError(t, os.WriteFile(log, []byte("first line\n"+strings.ReplaceAll(all, "path-of-the-panel", "")+"\n"), 0o600))
	o := Options{Version: "1.2.3", Config: configured(func(c *v1.Config) {
		c.Authorization.Token = "configured-token"
		c.Remote = v1.RemoteConfig{URL: "https://panel.example/path-of-the-panel", Token: "remote-token"}
		c.Docker.Host = host
		c.Docker.Registries = map[string]v1.Registry{"r.example": {Username: "u", Password: "registry-password"}}
		c.Backups.S3.SecretKey = "bucket-secret"
	}), Daemon: newFakeDaemon(t, map[string]string{
		"/readyz": `!{"error":"variable-value"}`, "/metrics": "m{a=\"variable-value\"} 1\n",
		"/containers": `{"containers":[{"internal_id":"a"},{"internal_id":"gone"}]}`, "/containers/a": `{"internal_id":"a","env":{"KEY":"variable-value","DEBUG":"1","PEM":"begin\nline-of-a-key\nend"}}`,
		"/events?limit=1": `{"newest":1500,"epoch":"e"}`, "/events?since=500&epoch=e&limit=1000": `{"events":[{"seq":501,"data":"variable-value"}]}`,
	})}
	var out bytes.Buffer
	report := Report{Version: "1.2.3", Results: []Result{{Check: "daemon", Message: "says variable-value"}}}
	require.NoError(t, Bundle(t.Context(), &out, o, report, log))
	files := unpack(t, out.Bytes())
	for name, text := range files {
		for _, secret := range secrets {
			require.NotContains(t, text, secret, name)
		}
	}
	require.Contains(t, files["doctor.json"], "says ***")
	require.Contains(t, files["config.json"], "https://panel.example/***")
	require.Contains(t, files["version.txt"], "berth 1.2.3\ngo")
	require.Contains(t, files["engine.json"], `"version": "28.5.2"`)
	require.Contains(t, files["log.txt"], "first line")
	require.Contains(t, files["readyz.txt"], "***")
	require.Equal(t, "m{a=\"***\"} 1\n", files["metrics.txt"])
	require.Contains(t, files["events.json"], `"seq": 501`)
}

// TestBundleNeedsVariables: what cannot be hidden is not written.
func TestBundleNeedsVariables(t *testing.T) {
	o := Options{Config: configured(func(*v1.Config) {}), Daemon: newFakeDaemon(t, map[string]string{"/readyz": "{}"})}
	err := Bundle(t.Context(), io.Discard, o, Report{}, "/does/not/exist")
	require.ErrorContains(t, err, "cannot read the variables of containers")
}

func TestLogTail(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	long := strings.Repeat("0123456789abcde\n", bundleLog/16+10)
	require.NoError(t, os.WriteFile(log, []byte("begin\n"+long), 0o600))
	tail := string(logTail(t.Context(), log))
	require.Less(t, len(tail), bundleLog)
	require.Greater(t, len(tail), bundleLog-32)
	require.True(t, strings.HasPrefix(tail, "0123456789abcde\n"), "whole lines")
	require.Contains(t, string(logTail(t.Context(), "/does/not/exist")), "no such file")
	require.Contains(t, string(logTail(t.Context(), t.TempDir())), "is not a regular file")
}
