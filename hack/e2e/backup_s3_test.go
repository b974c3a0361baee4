package e2e_test

import (
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"berth/api/client"
	v1 "berth/api/v1"
	"berth/hack/test/berthtest"
	"berth/hack/test/s3test"
)

// startWithS3 starts a daemon with the target s3, and a volume whose archive has two
// parts.
func startWithS3(t *testing.T) (b *berthtest.Berth, s3 *s3test.Server, volume, dir string) {
	t.Helper()
	s3 = s3test.Start(t)
	b = berthtest.Start(t, berthtest.Options{Config: fmt.Sprintf("backups: {s3: {endpoint: '%s', region: %s, bucket: %s, prefix: node1, "+
		"access_key: %s, secret_key: %s, path_style: true}}", s3.URL, s3test.Region, s3test.Bucket, s3test.AccessKey, s3test.SecretKey)})
	t.Cleanup(func() { require.NotContains(t, b.Log(), s3test.SecretKey) })
	volume = b.Volume(t)
	dir = filepath.Join(b.Data, "volumes", volume)
	prepareOld(t, dir)
	world := make([]byte, 70<<20)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(world)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "world"), world, 0o640))
	return b, s3, volume, dir
}

// isStored checks that the bucket holds exactly one archive, with the checksum of a
// backup, and no unfinished upload.
func isStored(t *testing.T, s3 *s3test.Server, id string, s backupState) {
	t.Helper()
	object := "node1/" + id + ".tar.zst"
	require.Equal(t, []string{object}, s3.Objects(t))
	require.Empty(t, s3.Uploads(t))
	content := s3.Content(t, object)
	require.Equal(t, s.Checksum, fmt.Sprintf("sha256:%x", sha256.Sum256(content)))
	require.EqualValues(t, s.Size, len(content))
}

// erased deletes a backup and waits until it is gone.
func erased(t *testing.T, b *berthtest.Berth, s3 *s3test.Server, id string) {
	t.Helper()
	b.Must(t, "DELETE", "/backups/"+id, nil)
	berthtest.Until(t, 3*time.Minute, "the backup is gone", func() bool { return b.Do(t, "GET", "/backups/"+id, nil).Status == 404 })
	require.Empty(t, s3.Objects(t))
	require.Empty(t, s3.Uploads(t))
}

// TestBackupToS3: upload, download by a URL, restore and deletion.
func TestBackupToS3(t *testing.T) {
	t.Parallel()
	b, s3, volume, dir := startWithS3(t)
	id := startBackup(t, b, volume, map[string]any{"target": "s3"})
	s := backedUp(t, b, id)
	require.Equal(t, "completed", s.State, s.Message)
	isStored(t, s3, id, s)

	request, err := http.NewRequest(http.MethodGet, "http://"+b.Addr+"/backups/"+id+"/content", nil)
	require.NoError(t, err)
	request.Header = http.Header{"Authorization": {"Bearer " + b.Token}, "Accept": {client.Vendor}}
	noRedirect := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	redirect, err := noRedirect.Do(request)
	require.NoError(t, err)
	redirect.Body.Close()
	require.Equal(t, http.StatusFound, redirect.StatusCode)
	require.Contains(t, redirect.Header.Get("Location"), "X-Amz-Expires=300&")
	archive, err := http.Get(redirect.Header.Get("Location")) // without berth's token
	require.NoError(t, err)
	defer archive.Body.Close()
	content, err := io.ReadAll(archive.Body)
	require.NoError(t, err)
	require.Equal(t, s.Checksum, fmt.Sprintf("sha256:%x", sha256.Sum256(content)))
	require.Equal(t, "attachment; filename="+id+".tar.zst", archive.Header.Get("Content-Disposition"))

	before := fullTree(t, dir)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "world"), []byte("overwritten"), 0o600))
	s3.Inject(s3test.Cut(10<<20), s3test.Is("get"), 1)
	state, message := restored(t, b, id, nil)
	require.Equal(t, "completed", state, message)
	require.Empty(t, cmp.Diff(before, fullTree(t, dir)))
	require.Contains(t, s3.Served(), "!get")

	s3.Inject(s3test.Refuse(404, "NoSuchKey"), s3test.Is("get"), 0)
	state, message = restored(t, b, id, nil)
	require.Equal(t, "failed", state)
	require.Contains(t, message, "not found")
	require.Empty(t, cmp.Diff(before, fullTree(t, dir)))
	s3.Clear()
	erased(t, b, s3, id)
}

// TestPathsOfBackupInS3: the folders of an archive in S3 are listed, and paths of it restored, also over a connection that
// is cut. What cannot be read whole changes nothing.
func TestPathsOfBackupInS3(t *testing.T) {
	t.Parallel()
	b, s3, volume, dir := startWithS3(t)
	id := startBackup(t, b, volume, map[string]any{"target": "s3", "ignore": []string{"old/empty"}})
	s := backedUp(t, b, id)
	require.Equal(t, "completed", s.State, s.Message)
	listed := func(query string) (names []string) {
		var list struct{ Files []v1.FileEntry }
		b.Get(t, "/backups/"+id+"/files"+query, &list)
		for _, f := range list.Files {
			names = append(names, fmt.Sprint(f.Name, " ", f.Size))
		}
		slices.Sort(names)
		return names
	}
	s3.Inject(s3test.Cut(10<<20), s3test.Is("get"), 1)
	require.Equal(t, []string{"old 0", fmt.Sprint("world ", 70<<20)}, listed(""))
	require.Contains(t, s3.Served(), "!get")
	old := listed("?path=old")
	require.Len(t, old, 3)
	require.Subset(t, append(old, "file 30000", "again 30000"), old, "one of the two names has the size")
	require.Equal(t, 404, b.Do(t, "GET", "/backups/"+id+"/files?path=none", nil).Status)

	before := fullTree(t, dir)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "world"), []byte("overwritten"), 0o600))
	require.NoError(t, os.RemoveAll(filepath.Join(dir, "old")))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "later"), []byte("new"), 0o600))
	now := fullTree(t, dir)
	s3.Inject(s3test.Refuse(404, "NoSuchKey"), s3test.Is("get"), 0)
	require.Equal(t, 404, b.Do(t, "GET", "/backups/"+id+"/files", nil).Status)
	state, message := restored(t, b, id, map[string]any{"paths": []string{"old"}})
	require.Equal(t, []string{"failed", "open the archive: archive not found"}, []string{state, message})
	s3.Clear()
	state, message = restored(t, b, id, map[string]any{"paths": []string{"old", "none"}})
	require.Equal(t, []string{"failed", "Backup does not have the path: none"}, []string{state, message})
	require.Empty(t, cmp.Diff(now, fullTree(t, dir)))

	s3.Inject(s3test.Cut(10<<20), s3test.Is("get"), 1)
	state, message = restored(t, b, id, map[string]any{"paths": []string{"old/file", "old/again", "old/link"}})
	require.Equal(t, "completed", state, message)
	require.Contains(t, s3.Served(), "!get")
	for _, name := range []string{"old", "old/file", "old/again", "old/link"} {
		now[name] = before[name]
	}
	require.Empty(t, cmp.Diff(now, fullTree(t, dir)))
}

// TestBackupToS3WithFaults: a fault that ends is survived; one that does not leaves a
// failed backup with its reason, and nothing in the bucket.
func TestBackupToS3WithFaults(t *testing.T) {
	t.Parallel()
	b, s3, volume, _ := startWithS3(t)
	for name, fault := range map[string]s3test.Fault{
		"reset": s3test.Reset, "500": s3test.Refuse(500, "InternalError"), "503": s3test.Refuse(503, "SlowDown"),
		"lost": s3test.Lose,
	} {
		for _, at := range []string{"create", "part 1", "part 2", "complete"} {
			s3.Served()
			s3.Inject(fault, s3test.Is(at), 1)
			id := startBackup(t, b, volume, map[string]any{"target": "s3"})
			s := backedUp(t, b, id)
			require.Equal(t, "completed", s.State, "%s at %s: %s", name, at, s.Message)
			require.Contains(t, s3.Served(), "!"+at, name)
			isStored(t, s3, id, s)
			erased(t, b, s3, id)
		}
	}
	for name, fault := range map[string]s3test.Fault{"wrong ETag": s3test.WrongETag, "altered": s3test.AlterAndSign} {
		s3.Inject(fault, s3test.Is("part 2"), 1)
		s := backedUp(t, b, startBackup(t, b, volume, map[string]any{"target": "s3"}))
		require.Equal(t, "failed", s.State, name)
		require.Empty(t, s3.Objects(t), name)
		require.Empty(t, s3.Uploads(t), name)
	}
	for _, at := range []string{"list", "create", "part 2", "complete"} {
		s3.Inject(s3test.Refuse(403, "AccessDenied"), s3test.Is(at), 0)
		id := startBackup(t, b, volume, map[string]any{"target": "s3"})
		berthtest.Until(t, 3*time.Minute, "the refusal arrives", func() bool { return slices.Contains(s3.Served(), "!"+at) })
		if at == "list" { // until it may be listed, the daemon cannot know that nothing is left
			s3.Clear()
		}
		s := backedUp(t, b, id)
		require.Equal(t, "failed", s.State, at)
		require.Contains(t, s.Message, "AccessDenied", at)
		require.Empty(t, s3.Objects(t), at)
		require.Empty(t, s3.Uploads(t), at)
		s3.Clear()
	}
}

// TestBackupToS3Hangs: a request without progress is repeated after 30 s.
func TestBackupToS3Hangs(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"part 2", "complete"} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			b, s3, volume, _ := startWithS3(t)
			s3.Inject(s3test.Hang, s3test.Is(at), 1)
			id := startBackup(t, b, volume, map[string]any{"target": "s3"})
			s := backedUp(t, b, id)
			require.Equal(t, "completed", s.State, s.Message)
			isStored(t, s3, id, s)
		})
	}
}

// TestKillDuringUpload: the upload of a killed daemon is aborted, and the backup is made
// again; DELETE ends one that hangs.
func TestKillDuringUpload(t *testing.T) {
	t.Parallel()
	b, s3, volume, _ := startWithS3(t)
	for _, at := range []string{"create", "part 1", "part 2", "complete", "stat"} {
		s3.Served()
		s3.Inject(s3test.LoseAndHang, s3test.Is(at), 0)
		id := startBackup(t, b, volume, map[string]any{"target": "s3"})
		berthtest.Until(t, 3*time.Minute, at+" hangs", func() bool { return strings.Contains(fmt.Sprint(s3.Served()), "!"+at) })
		if at != "stat" {
			berthtest.Until(t, 3*time.Minute, "the server has an upload or its object", func() bool { return len(s3.Uploads(t))+len(s3.Objects(t)) > 0 })
		}
		b.Kill9(t)
		s3.Clear()
		b.Run(t)
		b.Ready(t)
		s := backedUp(t, b, id)
		require.Equal(t, "completed", s.State, s.Message)
		isStored(t, s3, id, s)
		erased(t, b, s3, id)
	}
	s3.Inject(s3test.LoseAndHang, s3test.Is("part 2"), 0)
	id := startBackup(t, b, volume, map[string]any{"target": "s3"})
	berthtest.Until(t, 3*time.Minute, "the upload hangs", func() bool { return slices.Contains(s3.Served(), "!part 2") })
	erased(t, b, s3, id)
}
