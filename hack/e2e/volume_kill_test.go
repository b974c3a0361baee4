package e2e_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
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

// fileOperation is a long file operation on its own volume, during which the daemon is killed.
type fileOperation struct {
	name    string
	prepare func(t *testing.T, dir string)
	begin   func(ctx context.Context, b *berthtest.Berth, at string) error // returns nil if it was completed
	volume  string
	before  map[string]string
	ended   chan error
}

// fileOperations are long enough that the daemon is always killed before they end.
var fileOperations = []fileOperation{
	{name: "upload", prepare: prepareOld, begin: uploadSlowly("old/file")},
	{name: "upload new", prepare: prepareOld, begin: uploadSlowly("old/new")},
	{name: "compress", prepare: prepareTree, begin: func(ctx context.Context, b *berthtest.Berth, at string) error {
		return done(b.Try(ctx, "POST", at+"/compress", map[string]any{"output_name": "made", "format": "tar.bz2"}))
	}},
	{name: "decompress into a new folder", prepare: prepareArchive, begin: func(ctx context.Context, b *berthtest.Berth, at string) error {
		return done(b.Try(ctx, "POST", at+"/decompress", map[string]any{"archive_path": "in.tar.gz", "destination": "made/here"}))
	}},
	{name: "decompress over existing files", prepare: prepareArchive, begin: func(ctx context.Context, b *berthtest.Berth, at string) error {
		return done(b.Try(ctx, "POST", at+"/decompress", map[string]any{"archive_path": "in.tar.gz", "destination": "."}))
	}},
	{name: "extract a tar into a new folder", prepare: prepareOld, begin: extractSlowly("tar", "made/here")},
	{name: "extract a tar over existing files", prepare: prepareOld, begin: extractSlowly("tar", ".")},
	{name: "extract a zip over existing files", prepare: prepareOld, begin: extractSlowly("zip", ".")},
}

func done(answer berthtest.Answer, err error) error {
	if err == nil && answer.Status != 200 {
		err = fmt.Errorf("%d %s", answer.Status, answer.Body)
	}
	return err
}

func prepareOld(t *testing.T, dir string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "old/empty"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "old/file"), bytes.Repeat([]byte("old"), 10_000), 0o640))
	require.NoError(t, os.Link(filepath.Join(dir, "old/file"), filepath.Join(dir, "old/again")))
	require.NoError(t, os.Symlink("file", filepath.Join(dir, "old/link")))
}

// prepareTree creates 48 MiB of incompressible files: at least 3 s of work.
func prepareTree(t *testing.T, dir string) {
	t.Helper()
	prepareOld(t, dir)
	random := rand.NewChaCha8([32]byte{})
	for i := range 48 {
		data := make([]byte, 1<<20)
		_, _ = random.Read(data)
		require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("old/%02d", i)), data, 0o644))
	}
}

// prepareArchive creates an archive that replaces all existing files and then
// continues for 4 GiB.
func prepareArchive(t *testing.T, dir string) {
	t.Helper()
	prepareOld(t, dir)
	const member, members = 64 << 20, 64
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	w := tar.NewWriter(z)
	for i := range 500 {
		require.NoError(t, w.WriteHeader(&tar.Header{Name: fmt.Sprintf("old/%03d", i), Mode: 0o600, Typeflag: tar.TypeReg}))
	}
	require.NoError(t, w.WriteHeader(&tar.Header{Name: "old/file", Mode: 0o600, Size: 3}))
	_, err := w.Write([]byte("new"))
	require.NoError(t, err)
	require.NoError(t, w.WriteHeader(&tar.Header{Name: "zeros", Mode: 0o600, Size: member * members}))
	require.NoError(t, z.Close())

	var zeros bytes.Buffer // a gzip file may have several members
	z = gzip.NewWriter(&zeros)
	_, err = z.Write(make([]byte, member))
	require.NoError(t, errors.Join(err, z.Close()))
	packed.Write(bytes.Repeat(zeros.Bytes(), members+1)) // the last one is the end of the tar
	require.NoError(t, os.WriteFile(filepath.Join(dir, "in.tar.gz"), packed.Bytes(), 0o644))
}

// uploadSlowly sends 8 MiB and then a few bytes every 5 ms, without an end.
func uploadSlowly(path string) func(ctx context.Context, b *berthtest.Berth, at string) error {
	return func(ctx context.Context, b *berthtest.Berth, at string) error {
		body, w := io.Pipe()
		go sendSlowly(w, bytes.Repeat([]byte("new"), 8<<20/3))
		return send(ctx, b, at+"/files/content?path="+path, body)
	}
}

// extractSlowly sends an archive that replaces an existing file, and then a few bytes every 5 ms of a file that has no end.
func extractSlowly(format, folder string) func(ctx context.Context, b *berthtest.Berth, at string) error {
	return func(ctx context.Context, b *berthtest.Berth, at string) error {
		var head bytes.Buffer
		if format == "zip" { // it is kept until its end
			head.WriteString("PK\x03\x04")
		}
		w := tar.NewWriter(&head)
		err := w.WriteHeader(&tar.Header{Name: "old/file", Mode: 0o600, Size: 3})
		if err == nil {
			_, err = w.Write([]byte("new"))
		}
		if err = errors.Join(err, w.WriteHeader(&tar.Header{Name: "zeros", Mode: 0o600, Size: 1 << 30})); err != nil {
			return err
		}
		body, sent := io.Pipe()
		go sendSlowly(sent, head.Bytes())
		return send(ctx, b, at+"/archive?format="+format+"&path="+folder, body)
	}
}

// sendSlowly sends bytes, and then a few every 5 ms until the reader closes.
func sendSlowly(w *io.PipeWriter, first []byte) {
	_, err := w.Write(first)
	for err == nil {
		pause(5 * time.Millisecond)
		_, err = w.Write([]byte("new"))
	}
}

// send sends a body with PUT, and closes it.
func send(ctx context.Context, b *berthtest.Berth, at string, body io.ReadCloser) error {
	defer body.Close()
	request, err := http.NewRequestWithContext(ctx, "PUT", "http://"+b.Addr+at, body)
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+b.Token)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%d %s", response.StatusCode, text)
	}
	return err
}

// TestKillDuringFileOperations kills the daemon while it extracts, compresses and
// receives uploads. The existing files stay, no partial result is ever visible,
// and temporary files are removed.
func TestKillDuringFileOperations(t *testing.T) {
	t.Parallel()
	b, random := berthtest.Start(t, berthtest.Options{}), dice(t)
	list := append([]fileOperation(nil), fileOperations...)
	for i := range list {
		h := &list[i]
		h.volume = b.Volume(t)
		h.prepare(t, h.dir(b))
		h.before = everything(t, h.dir(b))
	}
	for round := range rounds(2, 20) {
		for i := range list {
			h := &list[i]
			h.ended = make(chan error, 1)
			go func() { h.ended <- h.begin(t.Context(), b, "/volumes/"+h.volume) }()
		}
		for i := range list {
			berthtest.Until(t, wait, list[i].name+" is running", func() bool { return temps(t, list[i].dir(b)) > 0 })
		}
		after := time.Duration(random.IntN(700)) * time.Millisecond
		pause(after)
		b.Kill9(t)
		t.Logf("round %d: killed after %s", round, after)
		for i := range list {
			require.Error(t, <-list[i].ended, "%s was complete before the kill", list[i].name)
			require.Positive(t, temps(t, list[i].dir(b)), "%s was running", list[i].name)
		}
		b.Run(t)
		b.Ready(t)
		for i := range list {
			list[i].check(t, b)
		}
	}
}

func (h *fileOperation) dir(b *berthtest.Berth) string {
	return filepath.Join(b.Data, "volumes", h.volume)
}

// check compares what clients see right after the restart, and later the
// directory itself, with the state before the operation.
func (h *fileOperation) check(t *testing.T, b *berthtest.Berth) {
	t.Helper()
	var body struct{ Files []struct{ Name, Path string } }
	for _, request := range []string{"/files", "/files/search?query=zeros"} {
		body.Files = nil
		b.Get(t, "/volumes/"+h.volume+request, &body)
		for _, f := range body.Files {
			require.Contains(t, h.before, f.Name+f.Path, "%s is seen of %s", request, h.name)
		}
	}
	berthtest.Until(t, wait, "the remains of "+h.name+" are gone", func() bool { return temps(t, h.dir(b)) == 0 })
	require.Empty(t, cmp.Diff(h.before, everything(t, h.dir(b))), h.name)
	var v struct{ Size int64 }
	if !berthtest.Within(wait, func() bool { b.Get(t, "/volumes/"+h.volume, &v); return v.Size == occupied(t, h.dir(b)) }) {
		t.Fatalf("%s: size is %d, a walk counts %d", h.name, v.Size, occupied(t, h.dir(b)))
	}
}

// temps returns the number of temporary entries of the volume whose directory is dir.
func temps(t *testing.T, dir string) int {
	t.Helper()
	list, err := os.ReadDir(filepath.Join(filepath.Dir(dir), ".tmp", filepath.Base(dir)))
	if !errors.Is(err, fs.ErrNotExist) {
		require.NoError(t, err)
	}
	return len(list)
}

// everything returns all entries below dir with their mode, time and content.
func everything(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || p == dir {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		name := strings.TrimPrefix(p, dir+"/")
		all[name] = info.Mode().String()
		switch {
		case d.Type().IsRegular():
			data, err := os.ReadFile(p)
			all[name] += fmt.Sprintf(" %s %x", info.ModTime(), sha256.Sum256(data))
			return err
		case d.Type()&fs.ModeSymlink != 0:
			target, err := os.Readlink(p)
			all[name] += " " + target
			return err
		}
		return nil
	}))
	return all
}

// blockSize is what each file, folder and link counts at least.
const blockSize = 4096

// occupied returns the disk usage of a directory by berth's rule: each inode once, and
// each at least blockSize.
func occupied(t *testing.T, dir string) (bytes int64) {
	t.Helper()
	seen := map[uint64]bool{}
	require.NoError(t, filepath.WalkDir(dir, func(p string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		var st syscall.Stat_t
		if err := syscall.Lstat(p, &st); err != nil {
			return err
		}
		if !seen[st.Ino] {
			seen[st.Ino], bytes = true, bytes+max(st.Blocks*512, blockSize)
		}
		return nil
	}))
	return bytes
}
