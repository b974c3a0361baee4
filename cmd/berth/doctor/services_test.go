package doctor

import (
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/hack/test/s3test"
)

// checkPanelAt checks a panel at url.
func checkPanelAt(t *testing.T, url string) Result {
	t.Helper()
	o := Options{Version: "1.2.3", Config: configured(func(c *v1.Config) {
		c.Remote = v1.RemoteConfig{Enabled: true, URL: url + "/secret-path", Token: "panel-token"}
	})}
	return checkPanel(t.Context(), newExamination(t.Context(), o))
}

// TestPanelReceivesOneHead: nothing else may disturb a panel.
func TestPanelReceivesOneHead(t *testing.T) {
	var got []string
	panel := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.Method+" "+r.URL.Path+" "+r.Header.Get("Authorization"))
	}))
	defer panel.Close()
	require.Equal(t, ok("answers HEAD with 200"), checkPanelAt(t, panel.URL))
	require.Equal(t, []string{"HEAD /secret-path Bearer panel-token"}, got)
}

// TestPanelRedirect: the token must not reach another host.
func TestPanelRedirect(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the redirect was followed") }))
	defer other.Close()
	panel := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusFound))
	defer panel.Close()
	require.Equal(t, Fail, checkPanelAt(t, panel.URL).Status)
}

func TestPanelAway(t *testing.T) {
	r := checkPanelAt(t, "http://127.0.0.1:1")
	require.Equal(t, Fail, r.Status)
	require.NotContains(t, r.Message, "secret-path")
	r = checkPanelAt(t, "http://\x7f")
	require.Equal(t, Fail, r.Status)
	require.NotContains(t, r.Message, "secret-path")
	require.Equal(t, OK, checkPanel(t.Context(), newExamination(t.Context(), Options{})).Status, "there is none")
}

func TestJudgePanel(t *testing.T) {
	for status, want := range map[int]Status{200: OK, 204: OK, 400: OK, 405: OK, 401: Fail, 403: Fail, 404: Warn, 410: Warn, 302: Fail, 500: Fail, 503: Fail} {
		r := judgePanel(status, 0, 0)
		require.Equal(t, want, r.Status, status)
		require.Equal(t, want == OK, r.Remedy == "")
	}
	require.Equal(t, Warn, judgePanel(200, -2*time.Minute, 0).Status)
	require.Equal(t, OK, judgePanel(200, 30*time.Second, 0).Status)
	require.Equal(t, Warn, judgePanel(405, 0, 1001).Status)
}

func TestSkew(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	r := &http.Response{Header: http.Header{"Date": {"Sun, 01 Mar 2026 12:05:00 GMT"}}}
	require.Equal(t, 5*time.Minute, skew(r, now))
	require.Zero(t, skew(&http.Response{}, now))
}

func TestBackupPath(t *testing.T) {
	dir := t.TempDir()
	require.Equal(t, OK, checkBackupPath(filepath.Join(dir, "later")).Status)
	path := filepath.Join(dir, "backups")
	require.NoError(t, os.Mkdir(path, 0o700))
	require.Equal(t, ok(path+" is writable"), checkBackupPath(path))
	require.NoError(t, os.Chmod(path, 0o750))
	r := checkBackupPath(path)
	require.Equal(t, warning(path+" is open to other users (mode 0750)", "run chmod 700 on it"), r)
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.Equal(t, Fail, checkBackupPath(file).Status)
	require.Equal(t, Warn, checkBackupPath(file+"/backups").Status)
	require.NotEqual(t, OK, checkBackupPath("/proc/sys/kernel").Status, "read-only for everyone")
}

func TestBucket(t *testing.T) {
	server := s3test.Start(t)
	e := hostWith(t, nil)
	check := func(change func(*v1.S3Config)) Result {
		c := v1.S3Config{Endpoint: server.URL, Region: s3test.Region, Bucket: s3test.Bucket, Prefix: "a",
			AccessKey: s3test.AccessKey, SecretKey: s3test.SecretKey, PathStyle: true}
		change(&c)
		e.Config.Config.Backups.S3 = c
		return checkBackups(t.Context(), e)
	}
	require.Equal(t, ok("the bucket backups at "+server.URL+" answers"), check(func(*v1.S3Config) {}))
	require.Equal(t, []string{"list"}, server.Served(), "nothing is changed")
	r := check(func(c *v1.S3Config) { c.SecretKey = "wrong" })
	require.Equal(t, Fail, r.Status)
	require.Contains(t, r.Message, "SignatureDoesNotMatch")
	require.NotContains(t, r.Message, s3test.SecretKey)
	require.Equal(t, Fail, check(func(c *v1.S3Config) { c.Bucket = "another" }).Status)
	require.Contains(t, check(func(c *v1.S3Config) { c.Endpoint = "" }).Message, "does not exist yet: the first backup creates it; 1 at once, without a limit")
	require.Equal(t, OK, check(func(c *v1.S3Config) { c.PathStyle = false }).Status, "an address has no bucket in its name")
	require.Equal(t, "2 at once, 3MiB per second", pace(v1.BackupsConfig{Concurrency: 2, Bandwidth: 3 * v1.MiB}))

	file := filepath.Join(e.Root, e.Config.Config.Backups.Path)
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.Contains(t, check(func(*v1.S3Config) {}).Message, "is not a directory")
	require.NoError(t, os.Remove(file))
	require.NoError(t, os.Mkdir(file, 0o755))
	require.NoError(t, os.Chmod(file, 0o755))
	require.Equal(t, Warn, check(func(*v1.S3Config) {}).Status, "a bucket that answers does not hide it")
}

func TestHostKeyFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ed25519")
	require.Equal(t, Warn, checkHostKey(file).Status, "it does not exist")
	require.NoError(t, os.WriteFile(file, []byte("key"), 0o600))
	require.Equal(t, OK, checkHostKey(file).Status)
	require.NoError(t, os.Chmod(file, 0o644))
	require.Equal(t, failed(file+" is open to other users (mode 0644)", "run chmod 600 on it"), checkHostKey(file))
	require.Equal(t, Warn, checkHostKey(file+"/x").Status)
}

func TestSFTPPort(t *testing.T) {
	answers := make(chan string, 2)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write([]byte(<-answers))
			conn.Close()
		}
	}()
	c := v1.SFTPConfig{Enabled: true, Host: "0.0.0.0", Port: ln.Addr().(*net.TCPAddr).Port, MaxSessions: 64}
	answers <- v1.SFTPVersion + "\r\n"
	require.Equal(t, OK, checkSFTPPort(t.Context(), c).Status)
	answers <- "SSH-2.0-OpenSSH_9.2\r\n"
	require.Equal(t, Fail, checkSFTPPort(t.Context(), c).Status)
	require.NoError(t, ln.Close())
	<-done
	require.Equal(t, Warn, checkSFTPPort(t.Context(), c).Status)

	e := hostWith(t, nil)
	e.Config = configured(func(*v1.Config) {})
	require.Equal(t, ok("is not enabled"), checkSFTP(t.Context(), e))
	e.Config = configured(func(c *v1.Config) { c.SFTP.Enabled = true })
	require.Equal(t, Warn, checkSFTP(t.Context(), e).Status, "the key does not exist")
}
