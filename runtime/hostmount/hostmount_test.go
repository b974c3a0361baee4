package hostmount_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"berth/runtime"
	"berth/runtime/hostmount"
)

// host is a directory that is allowed, a secret beside it, and a Pinner.
type host struct {
	*hostmount.Pinner
	dir, shared, secret string
	allowed             []string
}

var name = runtime.Name{ID: "mc", Role: runtime.Server}

func newHost(t *testing.T) *host {
	t.Helper()
	dir := t.TempDir()
	h := &host{dir: filepath.Join(dir, "pins"), shared: filepath.Join(dir, "shared"), secret: filepath.Join(dir, "secret")}
	h.allowed = []string{h.shared}
	for _, d := range []string{h.shared + "/maps/deep", h.secret} {
		require.NoError(t, os.MkdirAll(d, 0o755))
	}
	require.NoError(t, os.WriteFile(h.shared+"/maps/file", []byte("ours"), 0o644))
	require.NoError(t, os.WriteFile(h.secret+"/key", []byte("secret"), 0o600))
	h.Pinner = hostmount.New(h.dir, func() []string { return h.allowed }, slog.New(slog.DiscardHandler))
	t.Cleanup(func() {
		require.NoError(t, h.Close())
		require.Empty(t, mountsBelow(t, dir), "no mount is left")
	})
	return h
}

func mountsBelow(t *testing.T, dir string) (list []string) {
	t.Helper()
	text, err := os.ReadFile("/proc/self/mounts")
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		if place := strings.Fields(line)[1]; strings.HasPrefix(place, dir+"/") {
			list = append(list, place)
		}
	}
	return list
}

func one(source string) []runtime.Mount { return []runtime.Mount{{Source: source, Target: "/maps"}} }

func TestPinSurvivesSwap(t *testing.T) {
	h := newHost(t)
	pinned, release, err := h.Pin(t.Context(), name, one(h.shared+"/maps"))
	require.NoError(t, err)
	require.NoError(t, os.Rename(h.shared+"/maps", h.shared+"/old"))
	require.NoError(t, os.Symlink(h.secret, h.shared+"/maps"))
	text, err := os.ReadFile(pinned[0].Source + "/file")
	require.NoError(t, err)
	require.Equal(t, "ours", string(text))
	release()
	require.NoFileExists(t, pinned[0].Source, "an engine that starts it later finds no source")
	require.FileExists(t, h.shared+"/old/file", "the mounted source is untouched")
	require.Len(t, mountsBelow(t, h.dir), 0)
	_, _, err = h.Pin(t.Context(), name, one(h.shared+"/maps"))
	require.ErrorIs(t, err, runtime.ErrMountRefused)
}

func TestPinRefuses(t *testing.T) {
	h := newHost(t)
	require.NoError(t, os.Symlink(h.secret, h.shared+"/link"))
	require.NoError(t, os.Symlink("maps", h.shared+"/inner"))
	require.NoError(t, os.Symlink("/proc/self/root", h.shared+"/magic"))
	require.NoError(t, unix.Mkfifo(h.shared+"/fifo", 0o600))
	require.NoError(t, os.Symlink(h.secret, h.shared+"/nested"))
	h.allowed = append(h.allowed, h.shared+"/nested") // the tenant can rename it
	for source, want := range map[string]error{
		h.secret:                     runtime.ErrMountRefused,
		h.shared + "2":               runtime.ErrMountRefused,
		h.shared + "/../secret":      runtime.ErrMountRefused,
		h.shared + "/link":           runtime.ErrMountRefused,
		h.shared + "/link/key":       runtime.ErrMountRefused,
		h.shared + "/inner":          runtime.ErrMountRefused,
		h.shared + "/magic/etc":      runtime.ErrMountRefused,
		h.shared + "/nested":         runtime.ErrMountRefused,
		h.shared + "/nested/key":     runtime.ErrMountRefused,
		h.shared + "/fifo":           runtime.ErrMountRefused,
		h.shared + "/maps/file/deep": runtime.ErrMountRefused,
		h.shared + "/absent":         runtime.ErrMountMissing,
	} {
		_, _, err := h.Pin(t.Context(), name, append(one(h.shared+"/maps"), one(source)...))
		require.ErrorIs(t, err, want, source)
		if source != h.shared+"/fifo" { // which is found when it is pinned
			require.Equal(t, want == runtime.ErrMountRefused, h.Check(source) != "", source)
		}
		require.ErrorContains(t, err, source+" at /maps")
		require.Empty(t, filesOf(t, h.dir), "nothing of a refused pin is left")
	}
}

func filesOf(t *testing.T, dir string) []os.DirEntry {
	t.Helper()
	list, err := os.ReadDir(dir)
	require.NoError(t, err)
	return list
}

func TestPinAllowedDirectory(t *testing.T) {
	h := newHost(t)
	require.NoError(t, os.Symlink(h.shared, h.secret+"/operators"))
	h.allowed = []string{h.secret + "/operators"} // a link in the configured path
	mounts := []runtime.Mount{{Source: h.secret + "/operators", Target: "/a"}, {Source: h.secret + "/operators/maps/file", Target: "/b", ReadOnly: true}}
	pinned, release, err := h.Pin(t.Context(), name, mounts)
	require.NoError(t, err)
	defer release()
	require.FileExists(t, pinned[0].Source+"/maps/file")
	require.FileExists(t, pinned[1].Source)
	require.True(t, pinned[1].ReadOnly)
	require.Empty(t, h.Check(mounts[1].Source))
	again, second, err := h.Pin(t.Context(), name, mounts)
	require.NoError(t, err)
	defer second()
	require.Equal(t, pinned, again, "a container finds its mounts at the next start")
	mounts[1].ReadOnly = false
	other, third, err := h.Pin(t.Context(), name, mounts)
	require.NoError(t, err)
	defer third()
	require.NotEqual(t, pinned[1].Source, other[1].Source, "one created with read_only does not find them writable")
}

// TestStalePinsAreUnmounted leaves pins, one of them with shared mounts below its
// source, as a kill at the worst moment does.
func TestStalePinsAreUnmounted(t *testing.T) {
	h := newHost(t)
	below := h.shared + "/maps/deep"
	require.NoError(t, unix.Mount("x", below, "tmpfs", 0, ""))
	t.Cleanup(func() { _ = unix.Unmount(below, unix.MNT_DETACH) })
	require.NoError(t, unix.Mount("", below, "", unix.MS_SHARED, ""))
	require.NoError(t, os.WriteFile(below+"/file", nil, 0o600))
	pinned, _, err := h.Pin(t.Context(), name, one(h.shared+"/maps"))
	require.NoError(t, err)
	require.FileExists(t, pinned[0].Source+"/deep/file")
	require.NoError(t, unix.Mount(h.shared+"/maps", pinned[0].Source, "", unix.MS_BIND|unix.MS_REC, ""))

	next := hostmount.New(h.dir, func() []string { return h.allowed }, slog.New(slog.DiscardHandler))
	require.Empty(t, mountsBelow(t, h.dir))
	require.FileExists(t, below+"/file", "mounts of the host are left")
	_, release, err := next.Pin(t.Context(), name, one(h.shared+"/maps"))
	require.NoError(t, err)
	release()
	require.FileExists(t, below+"/file")
	require.NoError(t, next.Close())
}

// TestPinUnprivileged runs without CAP_SYS_ADMIN.
func TestPinUnprivileged(t *testing.T) {
	h := newHost(t)
	require.NoError(t, withoutSysAdmin(func() error {
		_, _, err := h.Pin(t.Context(), name, one(h.shared+"/maps"))
		return err
	}, func(err error) {
		require.ErrorIs(t, err, runtime.ErrMountRefused)
		require.ErrorContains(t, err, "CAP_SYS_ADMIN")
	}))
}
