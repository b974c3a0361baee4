package volume_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
)

// damages make an archive that must not be restored. n numbers the variants.
var damages = map[string]func(t *testing.T, r *rand.Rand, a backup, n int) backup{
	"missing": func(_ *testing.T, _ *rand.Rand, a backup, _ int) backup { return backup{nil, a.SnapshotArchive} },
	"truncated": func(_ *testing.T, r *rand.Rand, a backup, _ int) backup {
		return backup{a.data[:r.IntN(len(a.data))], a.SnapshotArchive}
	},
	"flipped": func(_ *testing.T, r *rand.Rand, a backup, _ int) backup {
		data := bytes.Clone(a.data)
		data[r.IntN(len(data))] ^= 1 << r.IntN(8)
		return backup{data, a.SnapshotArchive}
	},
	"foreign": func(t *testing.T, _ *rand.Rand, a backup, n int) backup {
		dir := t.TempDir()
		run(t, dir, "touch", fmt.Sprint("file", n))
		data, err := exec.Command("tar", "-C", dir, "-c", []string{"-z", "--zstd", "-j", "--no-auto-compress"}[n%4], ".").Output()
		require.NoError(t, err)
		if n%2 == 0 {
			return newBackup(data, a.Bytes)
		}
		return backup{data, a.SnapshotArchive}
	},
	"too large": func(_ *testing.T, r *rand.Rand, a backup, n int) backup {
		more := backup{append(bytes.Clone(a.data), a.data[:1+r.IntN(len(a.data)-1)]...), a.SnapshotArchive}
		if n%2 == 0 {
			return newBackup(more.data, a.Bytes)
		}
		return more
	},
}

// TestRestoreDamaged: 10 archives with each kind of damage leave the volume as it is.
func TestRestoreDamaged(t *testing.T) {
	b := newBox(t, options())
	plant(t, b.dir, 50)
	a, _ := takeBackup(t, b)
	spoil(t, b)
	want := fingerprint(t, b.dir)
	r := rand.New(rand.NewPCG(3, 4))
	for kind, damage := range damages {
		for n := range 10 {
			mode := []string{v1.RestoreReplace, v1.RestoreMerge}[n/2%2]
			err := damage(t, r, a, n).restore(t.Context(), b, mode)
			require.ErrorIs(t, err, &v1.Error{Code: v1.InvalidArchive}, kind)
			require.NotContains(t, err.Error(), filepath.Dir(b.dir), "no path of the host")
			require.Equal(t, want, fingerprint(t, b.dir), kind)
			noRemains(t, b)
		}
	}
	require.NoError(t, a.restore(t.Context(), b, v1.RestoreReplace))
}
