package sftp

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	client "github.com/pkg/sftp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"berth/api/auth"
)

func TestReadAndWrite(t *testing.T) {
	h := newHarness(t)
	c := h.open()
	data := bytes.Repeat([]byte("0123456789abcdef"), 100_000)
	require.NoError(t, c.Mkdir("folder"))
	f, err := c.Create("folder/a..b")
	require.NoError(t, err)
	_, err = f.ReadFrom(bytes.NewReader(data))
	require.NoError(t, err)
	require.NoError(t, f.Close())
	require.Equal(t, string(data), h.read("folder/a..b"))
	info, err := os.Stat(filepath.Join(h.dir, "folder/a..b"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o644), info.Mode())
	info, err = os.Stat(filepath.Join(h.dir, "folder"))
	require.NoError(t, err)
	require.Equal(t, os.ModeDir|0o755, info.Mode())

	f, err = c.Open("/folder/../folder/a..b")
	require.NoError(t, err)
	got, err := io.ReadAll(f)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	require.True(t, bytes.Equal(data, got))
	require.Equal(t, float64(len(data)), testutil.ToFloat64(h.server.metrics.received))
	require.Equal(t, float64(len(data)), testutil.ToFloat64(h.server.metrics.sent))
}

// TestResume continues an upload and a download whose connection was cut.
func TestResume(t *testing.T) {
	h := newHarness(t)
	token := h.mint(auth.Grant{})
	c := h.login(h.volume, token)
	f, err := c.Create("file")
	require.NoError(t, err)
	_, err = f.Write([]byte("first "))
	require.NoError(t, err)
	require.NoError(t, c.Close(), "without closing the file")
	h.eventually("no session", func() bool {
		return h.server.limits.handles.Used() == 0
	})
	require.Equal(t, "first ", h.read("file"), "acknowledged writes stay")
	c = h.login(h.volume, token)
	f, err = c.OpenFile("file", os.O_WRONLY)
	require.NoError(t, err)
	_, err = f.WriteAt([]byte("second"), 6)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	require.Equal(t, "first second", h.read("file"))
	f, err = c.OpenFile("file", os.O_WRONLY|os.O_APPEND)
	require.NoError(t, err)
	_, err = f.Write([]byte(" third"))
	require.NoError(t, err)
	require.NoError(t, f.Close())
	require.Equal(t, "first second third", h.read("file"))
	f, err = c.OpenFile("file", os.O_RDWR|os.O_TRUNC)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	require.Equal(t, "", h.read("file"))
}

// TestDirectionOfHandles sends writes to files that are open for reading.
func TestDirectionOfHandles(t *testing.T) {
	h := newHarness(t)
	h.write("file", "text")
	c := h.open()
	r, err := c.Open("file")
	require.NoError(t, err)
	_, err = r.WriteAt([]byte("changed"), 0)
	require.Error(t, err)
	require.Equal(t, "text", h.read("file"))
	_, err = c.OpenFile("other", os.O_RDONLY|os.O_CREATE|os.O_TRUNC)
	require.ErrorIs(t, err, os.ErrNotExist, "nothing is created by a read")
}

// TestPipelinedRequests sends many requests without waiting for an answer: they have the
// result that they have one after the other.
func TestPipelinedRequests(t *testing.T) {
	h := newHarness(t)
	_, in, out := h.raw(adminToken)
	var want []byte
	for id := range uint32(300) {
		want = append(want, bytes.Repeat([]byte{byte(id)}, 10_000)...)
	}
	const then = 1_500_000_000
	go func() {
		_, _ = in.Write(initPacket)
		_, _ = in.Write(packet(typeOpen, uint32(1), "file", uint32(flagWrite|flagCreate|flagAppend), uint32(0)))
		for id := range uint32(300) {
			_, _ = in.Write(packet(typeWrite, id, "1", uint64(0), string(want[10_000*id:10_000*(id+1)])))
		}
		_, _ = in.Write(packet(4, uint32(2), "1"))
		_, _ = in.Write(packet(typeOpen, uint32(3), "other", uint32(flagWrite|flagCreate), uint32(0)))
		for id := range uint32(50) {
			_, _ = in.Write(packet(typeWrite, id, "2", uint64(id)*10_000, string(want[10_000*id:10_000*(id+1)])))
		}
		_, _ = in.Write(packet(10, uint32(4), "2", uint32(8), uint32(then), uint32(then)))
		_, _ = in.Write(packet(4, uint32(5), "2"))
	}()
	answers := 0
	for answer := range packets(out) {
		if answer[0] == 101 {
			require.Zero(t, answer[8], "status of an answer")
		}
		if answers++; answers == 1+2+2+350+1 {
			break
		}
	}
	require.Equal(t, string(want), h.read("file"), "appended in order")
	info, err := os.Stat(filepath.Join(h.dir, "other"))
	require.NoError(t, err)
	require.Equal(t, int64(then), info.ModTime().Unix(), "the time is set after the writes before it")
}

func TestRenames(t *testing.T) {
	h := newHarness(t)
	h.write("a", "a")
	h.write("b", "b")
	h.write("folder/file", "file")
	c := h.open()
	require.Error(t, c.Rename("a", "b"))
	require.Equal(t, "b", h.read("b"))
	require.NoError(t, c.PosixRename("a", "b"))
	require.Equal(t, "a", h.read("b"))
	require.NoError(t, c.Rename("b", "folder/b"))
	require.Equal(t, "a", h.read("folder/b"))
	require.Error(t, c.PosixRename("folder", "folder/sub"))
	require.Error(t, c.PosixRename("folder/b", "folder/none/b"), "no parents are made")
	require.ErrorIs(t, c.Rename("none", "x"), os.ErrNotExist)
	require.NoError(t, c.Mkdir("empty"))
	require.NoError(t, c.PosixRename("folder", "empty"))
	require.Equal(t, "file", h.read("empty/file"))
	require.Error(t, c.PosixRename("empty/b", "empty"), "a file in the place of a folder")
}

func TestAttributes(t *testing.T) {
	h := newHarness(t)
	h.write("file", "text")
	file := filepath.Join(h.dir, "file")
	c := h.open()
	mode := func() os.FileMode {
		info, err := os.Stat(file)
		require.NoError(t, err)
		return info.Mode()
	}
	require.NoError(t, c.Chmod("file", 0o751))
	require.Equal(t, os.FileMode(0o751), mode())
	for _, bits := range []os.FileMode{os.ModeSetuid, os.ModeSetgid, os.ModeSticky} {
		require.ErrorIs(t, c.Chmod("file", bits|0o755), os.ErrPermission)
		require.Equal(t, os.FileMode(0o751), mode())
	}
	then := time.Unix(1_500_000_000, 0)
	require.NoError(t, c.Chtimes("file", then.Add(time.Hour), then))
	info, err := c.Stat("file")
	require.NoError(t, err)
	require.Equal(t, then.Unix(), info.ModTime().Unix())
	var st syscall.Stat_t
	require.NoError(t, syscall.Stat(file, &st))
	require.Equal(t, then.Add(time.Hour).Unix(), st.Atim.Sec)
	require.ErrorIs(t, c.Chown("file", 12345, 0), os.ErrPermission)
	require.NoError(t, c.Chown("file", os.Getuid(), os.Getgid()), "the owner that it has")
	require.NoError(t, c.Truncate("file", 2))
	require.Equal(t, "te", h.read("file"))
	require.ErrorIs(t, c.Chmod("none", 0o600), os.ErrNotExist)
}

func TestLinks(t *testing.T) {
	h := newHarness(t)
	h.write("folder/file", "text")
	c := h.open()
	require.NoError(t, c.Symlink("folder/file", "link"))
	require.NoError(t, c.Symlink("../link", "folder/back"))
	for _, target := range []string{"/etc/passwd", "..", "../x", "folder/../../x", "", "a\x00b", strings.Repeat("x/", 3000)} {
		require.Error(t, c.Symlink(target, "bad"), target)
	}
	require.NoFileExists(t, filepath.Join(h.dir, "bad"))
	require.ErrorIs(t, c.Symlink("../../x", "folder/bad"), os.ErrPermission)
	target, err := c.ReadLink("link")
	require.NoError(t, err)
	require.Equal(t, "folder/file", target)
	f, err := c.Open("folder/back")
	require.NoError(t, err)
	b, err := io.ReadAll(f)
	require.NoError(t, err)
	require.Equal(t, "text", string(b))
	info, err := c.Lstat("link")
	require.NoError(t, err)
	require.NotZero(t, info.Mode()&os.ModeSymlink)
	info, err = c.Stat("link")
	require.NoError(t, err)
	require.True(t, info.Mode().IsRegular())
	require.ErrorContains(t, c.Link("folder/file", "hard"), "SSH_FX_OP_UNSUPPORTED")
	_, err = c.ReadLink("folder/file")
	require.Error(t, err)
}

// TestSpecialFiles requires that neither FIFOs nor devices are opened or wait.
func TestSpecialFiles(t *testing.T) {
	h := newHarness(t)
	require.NoError(t, syscall.Mkfifo(filepath.Join(h.dir, "fifo"), 0o644))
	c := h.open()
	for name, flags := range map[string]int{"read": os.O_RDONLY, "write": os.O_WRONLY, "both": os.O_RDWR | os.O_CREATE | os.O_TRUNC} {
		_, err := c.OpenFile("fifo", flags)
		require.ErrorContains(t, err, "Not a file", name)
	}
	require.Error(t, c.Chmod("fifo", 0o777))
	require.NoError(t, c.Remove("fifo"))
	require.Error(t, c.Remove("."))
	require.Error(t, c.RemoveDirectory("."))
}

func TestRemove(t *testing.T) {
	h := newHarness(t)
	h.write("folder/file", "text")
	c := h.open()
	require.ErrorContains(t, c.RemoveDirectory("folder"), "not empty")
	require.Error(t, removeOnly(c, "folder"))
	require.ErrorContains(t, c.RemoveDirectory("folder/file"), "Not a folder")
	require.NoError(t, removeOnly(c, "folder/file"))
	require.NoError(t, c.RemoveDirectory("folder"))
	require.ErrorIs(t, c.RemoveDirectory("folder"), os.ErrNotExist)
	require.NoDirExists(t, filepath.Join(h.dir, "folder"))
}

// removeOnly removes a file. Client.Remove would try to remove a folder afterwards.
func removeOnly(c *client.Client, path string) error {
	info, err := c.Lstat(path)
	if err == nil && info.IsDir() {
		return errors.New("is a folder")
	}
	return c.Remove(path)
}

// TestLongListing lists 10,000 files, and checks that none is listed twice.
func TestLongListing(t *testing.T) {
	h := newHarness(t)
	const count = 10_000
	for i := range count {
		require.NoError(t, os.WriteFile(filepath.Join(h.dir, fmt.Sprint("file", i)), nil, 0o644))
	}
	list, err := h.open().ReadDir(".")
	require.NoError(t, err)
	names := map[string]bool{}
	for _, info := range list {
		names[info.Name()] = true
	}
	require.Len(t, names, count)
	require.Len(t, list, count)
}

// limited returns a harness whose volume has a limit.
// TestQuotaOfHoles fills the holes of a sparse file: its size fits, what it occupies does not.
// TestQuotaOfUnlinkedFiles fills files, unlinks them and keeps them open: a scan counts
// them as long as they are open.
// TestAuditOfFiles compares the entries with what a client did, in order.
// TestAuditOfRefusedWrites requires that the entry of a file has the refusal of its last
// writes.
// TestUnrecordedChange requires that a change is not acknowledged if it cannot be
// recorded.
// hostileNames break the path rules after the ".." components are resolved.
// resolvedNames stay in the volume because ".." is resolved in the text, and name
// nothing there.
// TestHostilePaths sends every hostile path with every request: each is refused, the
// session goes on, and nothing outside of the volume changes.
// around describes everything below a directory.

// TestAnyName: SFTP passes the bytes of names as they are. The audit log shows them as HTTP does.
func TestAnyName(t *testing.T) {
	h := newHarness(t)
	c := h.login(h.volume, h.mint(auth.Grant{}))
	for _, name := range []string{"\xc4\xe3", "a\nb", `C:\x`, `\x`, `\xff`, "a..b"} {
		require.NoError(t, c.Mkdir(name))
		list, err := c.ReadDir("/")
		require.NoError(t, err)
		require.Len(t, list, 1)
		require.Equal(t, name, list[0].Name())
		require.NoError(t, c.Rename(name, "other"))
		require.NoError(t, c.RemoveDirectory("other"))
	}
	require.Equal(t, h.volume+`/\xc4\xe3`, h.audit()[1].Object)
}
