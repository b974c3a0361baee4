package doctor

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/hack/test/s3test"
)

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
