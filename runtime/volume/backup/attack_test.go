package backup_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	v1 "berth/api/v1"
	"berth/runtime/volume/backup"
)

// attacks change an entry of the tree as a hostile container does. secret is a file
// outside of the tree.
var attacks = []func(p, secret string){
	func(p, secret string) { os.Symlink(secret, p) },
	func(p, secret string) { os.Symlink(filepath.Dir(secret), p) },
	func(p, _ string) { unix.Mkfifo(p, 0o644) },
	func(p, _ string) { unix.Mknod(p, unix.S_IFCHR|0o666, int(unix.Mkdev(1, 5))) }, // /dev/zero
	func(p, _ string) { unix.Mknod(p, unix.S_IFSOCK|0o666, 0) },
	func(p, _ string) { overwrite(p, os.O_TRUNC, 100_000) },
	func(p, _ string) { os.Mkdir(p, 0o755); overwrite(p+"/inner", os.O_TRUNC, 5) },
	func(p, _ string) { resize(p, 1<<20) },
	func(p, _ string) { resize(p, 3) },
	func(p, _ string) { os.Rename(p, filepath.Join(filepath.Dir(filepath.Dir(p)), "moved")) },
	func(p, _ string) { overwrite(p, os.O_APPEND, 10_000) },
}

// overwrite writes n bytes. It does not wait for the reader of a FIFO.
func overwrite(p string, flag, n int) {
	f, err := os.OpenFile(p, flag|os.O_CREATE|os.O_WRONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0o644)
	if err == nil {
		f.Write(bytes.Repeat([]byte("w"), n))
		f.Close()
	}
}

// resize changes the size of a file, and not that of a link's target.
func resize(p string, n int64) {
	f, err := os.OpenFile(p, os.O_CREATE|os.O_WRONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0o644)
	if err == nil {
		f.Truncate(n)
		f.Close()
	}
}

// attack changes the tree at dir until stop is closed. It moves old entries to trash:
// os.RemoveAll would wait for a FIFO.
func attack(dir, trash, secret string, seed int, stop chan struct{}) {
	for i := seed; ; i++ {
		select {
		case <-stop:
			return
		default:
		}
		p := filepath.Join(dir, fmt.Sprint("d", i%7), fmt.Sprint("f", i%13))
		if i%3 == 0 {
			p = filepath.Dir(p)
		}
		if i%2 == 0 {
			os.Rename(p, filepath.Join(trash, fmt.Sprint(i)))
		}
		attacks[i/3%len(attacks)](p, secret)
	}
}

// TestTreeUnderAttack: while a tenant swaps everything, each archive is complete, can be
// restored, and has nothing from outside.
func TestTreeUnderAttack(t *testing.T) {
	top := t.TempDir()
	secret := filepath.Join(top, "outside", "secret")
	require.NoError(t, os.Mkdir(filepath.Dir(secret), 0o755))
	require.NoError(t, os.WriteFile(secret, []byte("the secret of the host"), 0o600))
	dir, trash := filepath.Join(top, "volume"), filepath.Join(top, "trash")
	require.NoError(t, os.Mkdir(trash, 0o755))
	for i := range 7 {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, fmt.Sprint("d", i)), 0o755))
	}
	stop := make(chan struct{})
	var attackers sync.WaitGroup
	for seed := range 3 {
		attackers.Go(func() { attack(dir, trash, secret, seed*1_000_000, stop) })
	}
	reasons := map[string]bool{}
	for range 60 {
		archive, got, a := write(t, dir, backup.Options{})
		for _, s := range got.Skipped {
			reasons[s.Reason] = true
		}
		require.NotContains(t, string(decompress(t, archive)), "secret of the host")
		_, err := extract(t, archive, a)
		require.NoError(t, err)
	}
	close(stop)
	attackers.Wait()
	require.True(t, reasons["special"], "%v", reasons)
	data, err := os.ReadFile(secret)
	require.NoError(t, err)
	require.Equal(t, "the secret of the host", string(data))
}

// growing appends to a file while it is read.
type growing struct {
	t    *testing.T
	path string
	done bool
}

func (g *growing) grow(read, _ int64) {
	if g.done || read == 0 { // no file is read yet
		return
	}
	g.done = true
	f, err := os.OpenFile(g.path, os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(g.t, err)
	defer f.Close()
	_, err = f.WriteString("more")
	require.NoError(g.t, err)
}

// TestChangedFiles: a file that grows, or shrinks, keeps its size in the archive and is
// listed.
func TestChangedFiles(t *testing.T) {
	dir := t.TempDir()
	p := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(p, bytes.Repeat([]byte("0123"), 1<<20), 0o644))
	g := growing{t: t, path: p}
	archive, got, a := write(t, dir, backup.Options{Progress: g.grow})
	require.Equal(t, `[{file changed}]`, fmt.Sprint(got.Skipped))
	to, err := extract(t, archive, a)
	require.NoError(t, err)
	data, err := os.ReadFile(filepath.Join(to, "file"))
	require.NoError(t, err)
	require.Equal(t, bytes.Repeat([]byte("0123"), 1<<20), data)

	cut := false
	archive, got, a = write(t, dir, backup.Options{Progress: func(read, _ int64) {
		if !cut && read > 0 {
			cut = true
			require.NoError(t, os.Truncate(p, 4))
		}
	}})
	require.Equal(t, `[{file changed}]`, fmt.Sprint(got.Skipped))
	to, err = extract(t, archive, a)
	require.NoError(t, err)
	data, err = os.ReadFile(filepath.Join(to, "file"))
	require.NoError(t, err)
	require.Len(t, data, 4<<20+4)
	require.Equal(t, strings.Repeat("\x00", 1<<20), string(data[3<<20:4<<20]), "zeros fill it up")
}

// TestManyNames: the names of a folder have a bound, and so have handles and depth.
func TestManyNames(t *testing.T) {
	dir := t.TempDir()
	long := strings.Repeat("n", 200)
	for i := range 10_000 {
		require.NoError(t, unix.Mknod(filepath.Join(dir, fmt.Sprintf("%s%d", long, i)), unix.S_IFREG|0o644, 0))
	}
	deep := open(t, dir)
	for i := range 300 {
		require.NoError(t, deep.Mkdir("d", 0o700), i)
		next, err := deep.OpenRoot("d")
		require.NoError(t, err)
		defer next.Close()
		deep = next
	}
	steps := 0
	opt := backup.Options{NameBytes: 4 << 20, Progress: func(int64, int64) {
		if steps++; steps%100 == 0 {
			list, err := os.ReadDir("/proc/self/fd")
			require.NoError(t, err)
			require.Less(t, len(list), 300+256+64, "300 of them are the test's")
		}
	}}
	archive, got, a := write(t, dir, opt)
	require.EqualValues(t, 10_000, got.Files)
	require.EqualValues(t, 1, got.SkippedTotal, "the folder below the deepest one")
	require.Equal(t, v1.Skipped{Path: strings.TrimSuffix(strings.Repeat("d/", 257), "/"), Reason: "unreadable"}, got.Skipped[0])
	_, err := extract(t, archive, a)
	require.NoError(t, err)
	opt.NameBytes = 1 << 20
	_, err = backup.Write(context.Background(), open(t, dir), io.Discard, opt)
	require.ErrorContains(t, err, "too many files")
}

// TestSkippedIsBounded: of many skipped entries the first are listed, and all counted.
func TestSkippedIsBounded(t *testing.T) {
	dir := t.TempDir()
	for i := range 1500 {
		require.NoError(t, unix.Mkfifo(filepath.Join(dir, fmt.Sprint(i)), 0o644))
	}
	_, got, _ := write(t, dir, backup.Options{})
	require.Len(t, got.Skipped, 1000)
	require.EqualValues(t, 1500, got.SkippedTotal)
}

// TestHoles: a hole takes no space, in the archive and after it.
func TestHoles(t *testing.T) {
	dir := t.TempDir()
	f, err := os.Create(filepath.Join(dir, "sparse"))
	require.NoError(t, err)
	_, err = f.WriteAt([]byte("data"), 64<<20)
	require.NoError(t, err)
	require.NoError(t, f.Truncate(256<<20+1))
	require.NoError(t, f.Close())
	want := describe(t, dir)
	archive, got, a := write(t, dir, backup.Options{})
	require.Less(t, len(archive), 64<<10)
	require.EqualValues(t, 2*4096, got.Bytes)
	to, err := extract(t, archive, a)
	require.NoError(t, err)
	sameTree(t, want, describe(t, to))
	var st unix.Stat_t
	require.NoError(t, unix.Stat(filepath.Join(to, "sparse"), &st))
	require.LessOrEqual(t, st.Blocks*512, int64(64<<10))

	_, err = backup.Write(t.Context(), open(t, dir), io.Discard, backup.Options{NameBytes: 1 << 20, Bounds: backup.Bounds{Apparent: 256 << 20}})
	require.ErrorContains(t, err, "too large holes")
}

// TestPriority: the archive is written by a thread of the lowest priority, which does not
// outlive it.
func TestPriority(t *testing.T) {
	var threads []int
	opt := backup.Options{NameBytes: 1 << 20, Progress: func(int64, int64) {
		threads = append(threads, unix.Gettid())
		nice, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
		require.NoError(t, err)
		require.Equal(t, 20-19, nice, "as the system call has it")
		io, _, errno := unix.Syscall(unix.SYS_IOPRIO_GET, 1, 0, 0)
		require.Zero(t, errno)
		require.EqualValues(t, 3, io>>13, "the class idle")
	}}
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "file"), make([]byte, 1<<20), 0o600))
	_, err := backup.Write(t.Context(), open(t, dir), io.Discard, opt)
	require.NoError(t, err)
	require.NotEmpty(t, threads)
	require.Len(t, slices.Compact(threads), 1)
	require.Eventually(t, func() bool {
		_, err := os.Stat(fmt.Sprint("/proc/self/task/", threads[0]))
		return errors.Is(err, fs.ErrNotExist) || threads[0] == os.Getpid() // Go ends all threads but the first, which runs nothing then
	}, time.Minute, time.Millisecond)
}

// niceness is an io.Reader and an io.Writer that keep the niceness of the threads that call them.
type niceness struct {
	io.Reader
	seen map[int]bool
}

func (n niceness) note() {
	nice, _ := unix.Getpriority(unix.PRIO_PROCESS, 0)
	n.seen[20-nice] = true
}

func (n niceness) Read(p []byte) (int, error) {
	n.note()
	return n.Reader.Read(p)
}

func (n niceness) Write(p []byte) (int, error) {
	n.note()
	return len(p), nil
}

// TestPriorityOfTransfers: trees are read and written with the lowest priority, or with that of the process.
func TestPriorityOfTransfers(t *testing.T) {
	own, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	require.NoError(t, err)
	for p, nice := range map[v1.Priority]int{v1.LowPriority: 19, v1.NormalPriority: 20 - own} {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, "file"), make([]byte, 1<<20), 0o600))
		for what, do := range map[string]func(n niceness) error{
			"list": func(n niceness) error {
				_, err := backup.ListTree(t.Context(), open(t, dir), n, moveNames, p)
				return err
			},
			"send": func(n niceness) error {
				opt := backup.SendOptions{SendOptions: v1.SendOptions{Priority: p}, NameBytes: moveNames}
				_, err := backup.Send(t.Context(), open(t, dir), nil, n, opt)
				return err
			},
			"receive": func(n niceness) error {
				var stream bytes.Buffer
				_, err := backup.Send(t.Context(), open(t, dir), nil, &stream, backup.SendOptions{NameBytes: moveNames})
				require.NoError(t, err)
				n.Reader = &stream
				return backup.Receive(t.Context(), n, 1<<30, open(t, t.TempDir()), backup.ExtractOptions{Priority: p})
			},
		} {
			n := niceness{seen: map[int]bool{}}
			require.NoError(t, do(n), what)
			require.Equal(t, map[int]bool{nice: true}, n.seen, what)
		}
	}
}

// TestPanic: a panic is an error with its place, and ends neither berth nor another job.
func TestPanic(t *testing.T) {
	_, err := backup.Write(t.Context(), nil, io.Discard, backup.Options{})
	require.ErrorContains(t, err, "nil pointer dereference at berth/runtime/volume/backup.")
	require.NotContains(t, err.Error(), "\n")
}
