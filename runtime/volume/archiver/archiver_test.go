package archiver_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	v1 "berth/api/v1"
	"berth/runtime/volume"
	"berth/runtime/volume/archiver"
)

const id = "11111111-2222-3333-4444-555555555555"

// orphanVariable makes this program the daemon of TestDaemonIsKilled. It names the directory
// of volumes, and programVariable the program that writes archives.
const (
	orphanVariable  = "BERTH_TEST_ORPHAN"
	programVariable = "BERTH_TEST_PROGRAM"
)

// TestMain lets this program be the one that Archiver starts.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == archiver.Command {
		os.Exit(archiver.Main())
	}
	if dir := os.Getenv(orphanVariable); dir != "" {
		daemon(dir)
		return
	}
	goleak.VerifyTestMain(m)
}

// box is a volume.
type box struct {
	*volume.Manager
	dir string
	log *bytes.Buffer // of the Archiver
}

// newBox returns a volume whose archives program writes; empty: this process.
func newBox(t *testing.T, base, program string) box {
	t.Helper()
	b := box{log: &bytes.Buffer{}}
	opt := volume.Options{UID: -1, GID: -1}
	if program != "" {
		a := archiver.Archiver{Program: program, Log: slog.New(slog.NewTextHandler(b.log, nil))}
		opt.Archive = a.Write
	}
	m, err := volume.New(base, opt)
	require.NoError(t, err)
	require.NoError(t, m.Ensure(id))
	b.Manager, b.dir = m, m.Path(id)
	return b
}

// write writes the archive of the volume to w.
func (b box) write(ctx context.Context, w io.Writer) (v1.Snapshot, error) {
	return b.Snapshots().Write(ctx, id, w, v1.SnapshotOptions{Ignore: []string{"*.log"}})
}

// large fills a volume with more than the pipes and buffers between two processes take.
func large(t *testing.T, dir string) {
	t.Helper()
	f, err := os.Create(filepath.Join(dir, "large"))
	require.NoError(t, err)
	_, err = io.CopyN(f, rand.Reader, 16<<20)
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

// TestArchive: the archive and its description are those that this process writes.
func TestArchive(t *testing.T) {
	base := t.TempDir()
	b := newBox(t, base, archiver.Self)
	large(t, b.dir)
	for _, name := range []string{"a/b/c/file", "a/other", "debug.log", ".berth-manifest.json", ".berth-tmp-" + strings.Repeat("ab", 16), "\xff<&>"} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(b.dir, name)), 0o750))
		require.NoError(t, os.WriteFile(filepath.Join(b.dir, name), []byte(name), 0o640))
	}
	require.NoError(t, os.Link(filepath.Join(b.dir, "a/other"), filepath.Join(b.dir, "hard")))
	require.NoError(t, os.Symlink("/etc/passwd", filepath.Join(b.dir, "link")))
	require.NoError(t, unix.Mkfifo(filepath.Join(b.dir, "fifo\xff<&>"), 0o600))
	require.NoError(t, os.Truncate(filepath.Join(b.dir, "a/b/c/file"), 1<<30)) // a hole

	want, err := newBox(t, base, "").write(t.Context(), io.Discard)
	require.NoError(t, err)
	require.Len(t, want.Skipped, 2)
	var out bytes.Buffer
	var last int64
	got, err := b.Snapshots().Write(t.Context(), id, &out, v1.SnapshotOptions{Ignore: []string{"*.log"}, Progress: func(n, total int64) {
		require.GreaterOrEqual(t, n, last)
		require.GreaterOrEqual(t, total, n)
		last = n
	}})
	require.NoError(t, err)
	sum := sha256.Sum256(out.Bytes())
	require.Equal(t, "sha256:"+hex.EncodeToString(sum[:]), got.Checksum)
	require.EqualValues(t, out.Len(), got.Size)
	want.Checksum, want.Size = got.Checksum, got.Size // the manifest has the time
	require.Equal(t, want, got)
	require.Greater(t, last, int64(16<<20), "the last report has all bytes")
	a := v1.SnapshotArchive{Checksum: got.Checksum, Size: got.Size, Bytes: got.Bytes}
	require.NoError(t, b.Snapshots().Verify(t.Context(), &out, a))
	require.Empty(t, b.log)
}

// during calls do with the id of the process, once, in the middle of an archive.
type during struct {
	t    *testing.T
	do   func(pid int)
	done bool
}

func (w *during) Write(p []byte) (int, error) {
	if !w.done {
		w.done = true
		pids := children(w.t, os.Getpid())
		require.Len(w.t, pids, 1)
		w.do(pids[0])
	}
	return len(p), nil
}

// TestProcess: what the process has, and what it has not.
func TestProcess(t *testing.T) {
	t.Setenv("BERTH_BACKUPS_S3_SECRET_KEY", "secret")
	b := newBox(t, t.TempDir(), archiver.Self)
	large(t, b.dir)
	inherited, err := os.Create(filepath.Join(t.TempDir(), "inherited"))
	require.NoError(t, err)
	defer inherited.Close()
	_, err = unix.FcntlInt(inherited.Fd(), unix.F_SETFD, 0) // as if this process had inherited it
	require.NoError(t, err)
	_, err = b.write(t.Context(), &during{t: t, do: func(pid int) {
		require.Zero(t, len(read(t, pid, "environ")))
		require.Equal(t, "berth\x00archive-volume\x00"+id+"\x00", read(t, pid, "cmdline"))
		require.Equal(t, "berth-archive\n", read(t, pid, "comm"))
		session, err := unix.Getsid(pid)
		require.NoError(t, err)
		require.Equal(t, pid, session)
		if text, err := os.ReadFile("/proc/" + pidText(pid) + "/autogroup"); err == nil { // this kernel has it
			require.True(t, strings.HasSuffix(string(text), " nice 19\n"), string(text))
		}
		for _, thread := range list(t, pid, "task") {
			checkPriority(t, thread)
		}
		files := 0
		for _, h := range list(t, pid, "fd") {
			to, err := os.Readlink(filepath.Join("/proc", pidText(pid), "fd", h))
			if err == nil && strings.HasPrefix(to, b.dir) {
				files++
			}
			require.NotEqual(t, inherited.Name(), to)
		}
		require.Equal(t, 2, files, "the root folder and the file")
	}})
	require.NoError(t, err)
}

func checkPriority(t *testing.T, thread string) {
	t.Helper()
	tid := number(t, thread)
	attr, err := unix.SchedGetAttr(tid, 0)
	require.NoError(t, err)
	require.Contains(t, []uint32{unix.SCHED_BATCH, unix.SCHED_IDLE}, attr.Policy)
	io, _, errno := unix.Syscall(unix.SYS_IOPRIO_GET, 1, uintptr(tid), 0)
	require.Zero(t, errno)
	require.EqualValues(t, 3, io>>13, "the class idle")
}

// TestProcessIsKilled: somebody kills the process.
func TestProcessIsKilled(t *testing.T) {
	b := newBox(t, t.TempDir(), archiver.Self)
	large(t, b.dir)
	_, err := b.write(t.Context(), &during{t: t, do: func(pid int) {
		require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
	}})
	require.EqualError(t, err, "the process that writes the archive has failed: signal: killed; the host may be out of memory")
	require.Contains(t, b.log.String(), "volume="+id)
	require.Empty(t, children(t, os.Getpid()))
}

// TestProcessIgnoresSignals: a service manager signals all processes of the daemon.
func TestProcessIgnoresSignals(t *testing.T) {
	b := newBox(t, t.TempDir(), archiver.Self)
	large(t, b.dir)
	_, err := b.write(t.Context(), &during{t: t, do: func(pid int) {
		for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
			require.NoError(t, syscall.Kill(pid, s))
		}
	}})
	require.NoError(t, err)
}

// TestCancel: the process has ended when Write returns.
func TestCancel(t *testing.T) {
	b := newBox(t, t.TempDir(), archiver.Self)
	large(t, b.dir)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := b.write(ctx, &during{t: t, do: func(int) { cancel() }})
	require.ErrorIs(t, err, context.Canceled)
	require.Empty(t, children(t, os.Getpid()))
	_, err = b.write(ctx, io.Discard)
	require.ErrorIs(t, err, context.Canceled)
	require.Empty(t, b.log, "it is no fault")
}

type refusing struct{}

func (refusing) Write([]byte) (int, error) { return 0, fs.ErrClosed }

// TestTargetFails: the error of the target ends the process.
func TestTargetFails(t *testing.T) {
	b := newBox(t, t.TempDir(), archiver.Self)
	large(t, b.dir)
	_, err := b.write(t.Context(), refusing{})
	require.ErrorIs(t, err, fs.ErrClosed)
	require.Empty(t, children(t, os.Getpid()))
	require.Empty(t, b.log)
}

// TestDaemonIsKilled: the process ends with the one that started it, also when it writes
// nothing that its reader could miss.
func TestDaemonIsKilled(t *testing.T) {
	base := t.TempDir()
	newBox(t, base, "")
	cmd := exec.Command(archiver.Self)
	cmd.Env = append(os.Environ(), orphanVariable+"="+base, programVariable+"="+script(t, "echo archive; exec sleep 1000"))
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	_, err = out.Read(make([]byte, 1)) // the archive has begun
	require.NoError(t, err)
	pids := children(t, cmd.Process.Pid)
	require.Len(t, pids, 1)
	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait())
	ended := func() bool { return !alive(pids[0]) }
	t.Cleanup(func() {
		if !ended() {
			require.NoError(t, syscall.Kill(pids[0], syscall.SIGKILL))
		}
	})
	require.Eventually(t, ended, 10*time.Second, time.Millisecond)
}

// daemon writes an archive to nobody.
func daemon(base string) {
	a := archiver.Archiver{Program: os.Getenv(programVariable), Log: slog.Default()}
	m, err := volume.New(base, volume.Options{UID: -1, GID: -1, Archive: a.Write})
	if err != nil {
		panic(err)
	}
	_, err = m.Snapshots().Write(context.Background(), id, stuck{}, v1.SnapshotOptions{})
	panic(err)
}

// stuck reports that it is written to, and never returns.
type stuck struct{}

func (stuck) Write([]byte) (int, error) {
	_, _ = os.Stdout.WriteString("x")
	select {}
}
