package e2e_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"berth/hack/test/berthtest"
)

// killedArchives are volumes whose archives are interrupted by kills.
type killedArchives struct {
	*testing.T
	b           *berthtest.Berth
	random      *rand.Rand
	volume, dir string
	took        time.Duration // the last extraction, or until the kill
}

// TestKilledArchives kills the daemon at random moments of the end of an extraction, of a download of a folder, and of a
// restore of some paths. Of an extraction into a new folder there is all or nothing, and of one into a folder that
// exists each file is the old or the new one; a download that was interrupted is seen as such; the restore is completed. Nothing
// temporary remains.
func TestKilledArchives(t *testing.T) {
	t.Parallel()
	k := &killedArchives{T: t, b: berthtest.Start(t, berthtest.Options{}), random: dice(t)}
	k.volume = k.b.Volume(t)
	k.dir = filepath.Join(k.b.Data, "volumes", k.volume)
	prepareTree(t, k.dir)
	backup := startBackup(t, k.b, k.volume, nil)
	require.Equal(t, "completed", backedUp(t, k.b, backup).State)
	before, complete, some := fullTree(t, k.dir), 0, 0
	n := rounds(5, 50)
	for range 2 { // the first one also waits for what the disk has to write
		answered, created, replaced := k.extract(func() {})
		require.Equal(t, []any{true, archiveFiles, archiveFiles}, []any{answered, created, replaced})
	}
	takes := k.took
	t.Logf("two extractions take %s", takes)
	for round := range n {
		done, moved := k.killedExtract(func() {
			switch round % 3 {
			case 0:
				k.await("made")
			case 1:
				k.await("there/0")
			default:
				pause(takes/4 + time.Duration(k.random.Int64N(2*int64(takes))))
			}
		})
		if done {
			complete++
		}
		if moved > 0 && moved < archiveFiles {
			some++
		}
		k.killedDownload()
		k.killedRestore(backup, before)
	}
	t.Logf("%d kills of each: %d extractions were answered, %d had moved some of their files", n, complete, some)
}

// archiveFiles is how many files killedExtract replaces.
const archiveFiles = 1000

// extract extracts an archive into a new folder and into one whose files it replaces, and calls during meanwhile. It returns
// whether both were answered, and how many files of the first and of the second one are those of the archive. All others are
// as they were.
func (k *killedArchives) extract(during func()) (answered bool, created, replaced int) {
	made, there := "made", "there"
	require.NoError(k, errors.Join(os.RemoveAll(filepath.Join(k.dir, made)), os.RemoveAll(filepath.Join(k.dir, there))))
	for i := range archiveFiles {
		require.NoError(k, os.MkdirAll(filepath.Join(k.dir, there), 0o755))
		require.NoError(k, os.WriteFile(filepath.Join(k.dir, there, fmt.Sprint(i)), []byte("old"), 0o644))
	}
	content := strings.Repeat("new!", 256)
	var data bytes.Buffer
	w := tar.NewWriter(&data)
	for i := range archiveFiles {
		require.NoError(k, w.WriteHeader(&tar.Header{Name: fmt.Sprint(i), Mode: 0o600, Size: int64(len(content))}))
		_, err := io.WriteString(w, content)
		require.NoError(k, err)
	}
	require.NoError(k, w.Close())
	ended := make(chan error, 2)
	for _, to := range []string{made, there} {
		go func() {
			ended <- send(k.Context(), k.b, "/volumes/"+k.volume+"/archive?path="+to, io.NopCloser(bytes.NewReader(data.Bytes())))
		}()
	}
	began := time.Now()
	during()
	answered = errors.Join(<-ended, <-ended) == nil
	k.took = time.Since(began)
	for i := range archiveFiles {
		text, err := os.ReadFile(filepath.Join(k.dir, made, fmt.Sprint(i)))
		if !errors.Is(err, fs.ErrNotExist) {
			require.Equal(k, content, string(text))
			created++
		}
		text, err = os.ReadFile(filepath.Join(k.dir, there, fmt.Sprint(i)))
		require.NoError(k, err)
		if string(text) != "old" {
			require.Equal(k, content, string(text))
			replaced++
		}
	}
	return answered, created, replaced
}

// killedExtract kills the daemon while it extracts archives that have arrived, once a function returns.
func (k *killedArchives) killedExtract(moment func()) (answered bool, replaced int) {
	answered, created, replaced := k.extract(func() {
		moment()
		k.killAndRun()
	})
	k.check()
	require.Contains(k, []int{0, archiveFiles}, created, "a new folder has all of it or is not there")
	if created == 0 {
		require.NoDirExists(k, filepath.Join(k.dir, "made"))
	}
	if answered {
		require.Equal(k, []int{archiveFiles, archiveFiles}, []int{created, replaced}, "an extraction that was answered stays")
	}
	return answered, replaced
}

// await returns once the file of this name has more bytes than it has of before, or there is the folder.
func (k *killedArchives) await(name string) {
	for end := time.Now().Add(wait); time.Now().Before(end); {
		if info, err := os.Stat(filepath.Join(k.dir, name)); err == nil && info.Size() > 3 {
			return
		}
	}
}

// killedDownload kills the daemon while a client receives a folder.
func (k *killedArchives) killedDownload() {
	before := fullTree(k.T, k.dir)
	request, err := http.NewRequestWithContext(k.Context(), "GET", "http://"+k.b.Addr+"/volumes/"+k.volume+"/archive?format=tar", nil)
	require.NoError(k, err)
	request.Header.Set("Authorization", "Bearer "+k.b.Token)
	response, err := http.DefaultClient.Do(request)
	require.NoError(k, err)
	defer response.Body.Close()
	require.Equal(k, 200, response.StatusCode)
	_, err = io.CopyN(io.Discard, response.Body, k.random.Int64N(8<<20)) // of 48 MiB: at most 36 MiB of the rest are on the way
	require.NoError(k, err)
	k.killAndRun()
	_, err = io.Copy(io.Discard, response.Body)
	require.Error(k, err, "the client sees that the archive is not complete")
	k.check()
	require.Empty(k, cmp.Diff(before, fullTree(k.T, k.dir)))
}

// killedRestore kills the daemon while it restores some paths.
func (k *killedArchives) killedRestore(backup string, want map[string]string) {
	for _, name := range []string{"old/00", "old/47", "old/file"} {
		require.NoError(k, os.WriteFile(filepath.Join(k.dir, name), []byte("overwritten"), 0o600))
	}
	now := fullTree(k.T, k.dir)
	k.b.Post(k.T, "/backups/"+backup+"/restore", map[string]any{"paths": []string{"old/47", "old/00"}})
	pause(time.Duration(k.random.IntN(400)) * time.Millisecond)
	k.killAndRun()
	state, message := awaitRestore(k.T, k.b, backup)
	require.Equal(k, "completed", state, message)
	now["old/00"], now["old/47"] = want["old/00"], want["old/47"]
	require.Empty(k, cmp.Diff(now, fullTree(k.T, k.dir)))
	k.check()
}

func (k *killedArchives) killAndRun() {
	k.b.Signal(k.T, syscall.SIGKILL) // at once, which Kill9 does not
	k.b.Exit(k.T, time.Now())
	k.b.Run(k.T)
	k.b.Ready(k.T)
}

// check requires that nothing temporary remains of the volume, and that its size is that of its files.
func (k *killedArchives) check() {
	var v struct{ Size int64 }
	berthtest.Until(k.T, wait, "the remains are gone and the size is right", func() bool {
		k.b.Get(k.T, "/volumes/"+k.volume, &v)
		return temps(k.T, k.dir) == 0 && v.Size == occupied(k.T, k.dir)
	})
}
