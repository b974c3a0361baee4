package volume_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	v1 "berth/api/v1"
	"berth/runtime/volume"
)

// quotaDirs returns the mounted file systems with project quotas that hack/quota.sh makes. Alone
// the tests below do nothing: most hosts have none.
func quotaDirs() []string {
	return strings.FieldsFunc(os.Getenv("BERTH_TEST_QUOTAS"), func(c rune) bool { return c == ':' })
}

// asTenant runs a shell command in dir as a process that may not exceed quotas.
func asTenant(dir, command string) error {
	cmd := exec.Command("/bin/sh", "-c", command)
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 4321, Gid: 4321}}
	return cmd.Run()
}

func newHardBox(t *testing.T, top string, limit int64) box {
	t.Helper()
	m, err := volume.New(top, volume.Options{UID: 4321, GID: 4321, HardLimit: true})
	require.NoError(t, err)
	require.NoError(t, m.HardLimitErr())
	m.SetLimit(id, limit, v1.Usage{})
	require.NoError(t, m.Ensure(id))
	require.NoError(t, m.SetHardLimit(id))
	return box{m, m.Path(id), ""}
}

func TestHardLimit(t *testing.T) {
	for _, top := range quotaDirs() {
		t.Run(filepath.Base(top), func(t *testing.T) {
			require.NoError(t, os.Chmod(top, 0o711))
			b := newHardBox(t, filepath.Join(top, "volumes"), 16<<20)
			require.NoError(t, os.Chmod(filepath.Dir(b.dir), 0o711)) // a container reaches its volume by a mount
			ctx := t.Context()
			require.NoError(t, b.Write(ctx, id, "a/file", content(1<<20)))
			require.ErrorIs(t, b.Write(ctx, id, "more", content(20<<20)), v1.ErrSizeLimit, "the soft limit comes first")
			noTemps(t, b)

			require.Error(t, asTenant(b.dir, "dd if=/dev/zero of=tenant bs=1M count=100 conv=fsync"))
			info, err := os.Stat(filepath.Join(b.dir, "tenant"))
			require.NoError(t, err)
			require.Less(t, info.Size(), int64(40<<20))
			require.Greater(t, info.Size(), int64(16<<20))
			if err := b.Write(ctx, id, "large", content(12<<20)); err != nil { // ext4 lets root write
				require.ErrorIs(t, err, v1.ErrSizeLimit, "before a scan has found it")
			}

			b.SetLimit(id, 100<<20, v1.Usage{})
			require.NoError(t, b.SetHardLimit(id))
			require.NoError(t, asTenant(b.dir, "dd if=/dev/zero of=tenant bs=1M count=60 conv=fsync"), "a larger limit")
			require.NoError(t, b.Delete(ctx, id, "tenant", nil))
			require.Error(t, asTenant(b.dir, "i=0; while [ $i -lt 18000 ]; do : > f$i || exit 1; i=$((i+1)); done"), "files have a limit too")
			require.NoError(t, asTenant(b.dir, "rm f*"))
			_, err = b.Scan(ctx, id)
			require.NoError(t, err)

			require.NoError(t, b.Copy(ctx, id, "a", "b"))
			require.NoError(t, b.Remove(ctx, id))
			noVolume(t, b)
		})
	}
}

// limiting is a reader beside which the hard limit is set.
type limiting struct {
	io.Reader
	b box
}

func (c limiting) Read(p []byte) (int, error) {
	if err := c.b.SetHardLimit(id); err != nil {
		return 0, err
	}
	return c.Reader.Read(p)
}

// TestHardLimitOfRestore: a restore needs space for both trees, and the new one has the limit.
func TestHardLimitOfRestore(t *testing.T) {
	for _, top := range quotaDirs() {
		for _, hard := range []bool{true, false} {
			t.Run(fmt.Sprint(filepath.Base(top), hard), func(t *testing.T) {
				base := filepath.Join(top, fmt.Sprint("restored", hard))
				if !hard { // a volume of before
					m, err := volume.New(base, options())
					require.NoError(t, err)
					require.NoError(t, m.Ensure(id))
					require.NoError(t, os.WriteFile(filepath.Join(m.Path(id), "old"), nil, 0o644))
				}
				b := newHardBox(t, base, 24<<20)
				require.NoError(t, os.Chmod(base, 0o711))
				require.NoError(t, os.Chown(b.dir, 4321, 4321))
				require.NoError(t, b.Write(t.Context(), id, "file", content(23<<20)))
				a, _ := takeBackup(t, b)
				require.NoError(t, a.restore(t.Context(), b, v1.RestoreReplace))
				again := b.Restore(t.Context(), id, limiting{bytes.NewReader(a.data), b}, a.SnapshotArchive, v1.RestoreOptions{Mode: v1.RestoreReplace})
				require.NoError(t, again, "beside SetHardLimit, which leaves the limit lifted")
				noTemps(t, b)
				require.Error(t, asTenant(b.dir, "dd if=/dev/zero of=tenant bs=1M count=40 conv=fsync"))
				require.NoError(t, b.Delete(t.Context(), id, "tenant", nil))

				m, err := volume.New(base, volume.Options{UID: -1, GID: -1, HardLimit: true})
				require.NoError(t, err)
				m.SetLimit(id, 200<<20, v1.Usage{})
				require.NoError(t, m.SetHardLimit(id), "after a restart")
				require.NoError(t, asTenant(b.dir, "dd if=/dev/zero of=tenant bs=1M count=40 conv=fsync"))
				require.NoError(t, m.Remove(t.Context(), id))
				noVolume(t, b)
			})
		}
	}
}

// TestNoHardLimit: a file system without project quotas has soft limits, and the reason is known.
func TestNoHardLimit(t *testing.T) {
	top := inMemory(t, "16m")
	m, err := volume.New(top, volume.Options{UID: -1, GID: -1, HardLimit: true})
	require.NoError(t, err)
	require.ErrorContains(t, m.HardLimitErr(), "has no project quotas")
	m.SetLimit(id, 1<<20, v1.Usage{})
	require.NoError(t, m.Ensure(id))
	require.NoError(t, m.SetHardLimit(id))
	require.NoError(t, m.Check(id))
	require.NoError(t, unix.Access(m.Path(id), unix.W_OK))
}
