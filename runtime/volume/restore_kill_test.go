package volume_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/runtime/volume"
)

// The environment of a process that restores until it is killed.
const (
	envBase  = "BERTH_TEST_RESTORE_BASE" // directory of the volumes
	envMode  = "BERTH_TEST_RESTORE_MODE"
	envStep  = "BERTH_TEST_RESTORE_RENAMES" // not empty: the file system cannot exchange directories
	envFixed = "BERTH_TEST_RESTORE_FIXED"   // not empty: the directory of the volume is that of a claim
	envPath  = "BERTH_TEST_RESTORE_PATH"    // not empty: only this one is restored
)

// TestRestoringProcess is the process of the tests below. Alone it does nothing.
func TestRestoringProcess(t *testing.T) {
	base := os.Getenv(envBase)
	if base == "" {
		return
	}
	m, err := volume.New(base, restoreOptions())
	require.NoError(t, err)
	if os.Getenv(envStep) != "" {
		m.WithoutExchange()
	}
	b := box{Manager: m, dir: m.Path(id)}
	var archives []backup
	for _, name := range []string{"one", "two"} {
		data, err := os.ReadFile(filepath.Join(filepath.Dir(base), name))
		require.NoError(t, err)
		var size int64
		_, err = fmt.Sscan(readFile(t, filepath.Join(filepath.Dir(base), name+".bytes")), &size)
		require.NoError(t, err)
		archives = append(archives, newBackup(data, size))
	}
	fmt.Println("begun")
	for i := 0; ; i++ {
		a := archives[i%2]
		restore := func() error { return a.restore(context.Background(), b, os.Getenv(envMode)) }
		if p := os.Getenv(envPath); p != "" {
			restore = func() error { return a.only(b, p) }
		}
		if err := restore(); err != nil {
			fmt.Println(err)
			return
		}
	}
}

func readFile(t testing.TB, p string) string {
	t.Helper()
	data, err := os.ReadFile(p)
	require.NoError(t, err)
	return string(data)
}

// saveBackup writes a backup of the volume for the process.
func saveBackup(t *testing.T, b box, name string) backup {
	t.Helper()
	a, _ := takeBackup(t, b)
	top := filepath.Dir(filepath.Dir(b.dir))
	require.NoError(t, os.WriteFile(filepath.Join(top, name), a.data, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(top, name+".bytes"), fmt.Append(nil, a.Bytes), 0o600))
	return a
}

// killRestore starts a process that restores, and kills it at a random moment.
func killRestore(t *testing.T, b box, mode string, after time.Duration) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run", "^TestRestoringProcess$")
	cmd.Env = append(os.Environ(), envBase+"="+filepath.Dir(b.dir), envMode+"="+mode)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	defer func() { _ = cmd.Wait() }()
	begun := make([]byte, 6)
	_, err = out.Read(begun)
	require.NoError(t, err)
	require.Equal(t, "begun\n", string(begun))
	time.Sleep(after) // the moment of the kill, which no condition selects
	require.NoError(t, cmd.Process.Kill())
	var rest bytes.Buffer
	_, err = rest.ReadFrom(out)
	require.NoError(t, err)
	require.Empty(t, rest.String(), "no restore failed")
}

// kills is how many processes are killed.
func kills() int {
	if os.Getenv("BERTH_LONG") != "" {
		return 200
	}
	return 15
}

// TestRestoreKilled: after a kill at any moment the volume is one of two trees, and the
// first scan removes what is beside it.
func TestRestoreKilled(t *testing.T) { restoreKilled(t) }

// TestRestoreKilledBetweenRenames: also where the file system (NFS, FUSE) cannot exchange directories.
func TestRestoreKilledBetweenRenames(t *testing.T) {
	t.Setenv(envStep, "1")
	restoreKilled(t)
}

// TestRestoreInAClaimKilled: also in a directory that must stay.
func TestRestoreInAClaimKilled(t *testing.T) {
	t.Setenv(envFixed, "1")
	restoreKilled(t)
}

// restoreOptions are those of the tests and of their process.
func restoreOptions() volume.Options {
	if os.Getenv(envFixed) != "" {
		return fixed()
	}
	return options()
}

// TestRestoreByRenames has the states of the disk between the two renames.
func TestRestoreByRenames(t *testing.T) {
	b := newBox(t, options())
	b.WithoutExchange()
	b.put(t, "file", "old")
	a, _ := takeBackup(t, b)
	b.put(t, "file", "new")
	require.NoError(t, a.restore(t.Context(), b, v1.RestoreReplace))
	require.Equal(t, "old", b.get(t, "file"))
	noRemains(t, b)

	temps := filepath.Join(filepath.Dir(b.dir), ".tmp", id)
	complete := func() {
		require.NoError(t, os.MkdirAll(filepath.Join(temps, "restored"), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(temps, "restored", "file"), []byte("restored"), 0o600))
	}
	complete()
	_, err := b.Scan(t.Context(), id)
	require.NoError(t, err)
	require.DirExists(t, filepath.Join(temps, "restored"), "a scan leaves it to the restore")
	again := reopen(t, b, options())
	require.Equal(t, "old", b.get(t, "file"), "killed before the first rename")
	_, err = again.Scan(t.Context(), id)
	require.NoError(t, err)
	noRemains(t, b)

	complete()
	require.NoError(t, os.Rename(b.dir, filepath.Join(temps, "an earlier run")))
	again = reopen(t, b, options())
	require.Equal(t, "restored", b.get(t, "file"), "killed between them")
	_, err = again.Scan(t.Context(), id)
	require.NoError(t, err)
	noRemains(t, b)
}

// fingerprintOf is fingerprint. A kill costs a directory that must stay the time of its own last change.
func fingerprintOf(t *testing.T, b box) string {
	t.Helper()
	if os.Getenv(envFixed) != "" {
		require.NoError(t, os.Chtimes(b.dir, time.Time{}, time.Unix(1, 0)))
	}
	return fingerprint(t, b.dir)
}

func restoreKilled(t *testing.T) {
	b := newBox(t, restoreOptions())
	plant(t, b.dir, 120)
	states := map[string]int{fingerprintOf(t, b): 0}
	saveBackup(t, b, "one")
	spoil(t, b)
	states[fingerprintOf(t, b)] = 0
	saveBackup(t, b, "two")
	r := rand.New(rand.NewPCG(5, 6))
	for range kills() {
		killRestore(t, b, v1.RestoreReplace, time.Duration(r.IntN(400))*time.Millisecond)
		again := reopen(t, b, restoreOptions())
		now := fingerprintOf(t, b)
		require.Contains(t, states, now)
		states[now]++
		_, err := again.Scan(t.Context(), id)
		require.NoError(t, err)
		noRemains(t, b)
		require.Equal(t, now, fingerprintOf(t, b))
	}
	t.Log(states)
}

// TestMergeKilled: after a kill at any moment of a merge the volume is one of its three
// trees: that before, and those after each archive.
func TestMergeKilled(t *testing.T) {
	mergeKilled(t, func(b box, a backup) error { return a.restore(t.Context(), b, v1.RestoreMerge) })
}

// TestRestorePathsKilled: a restore of some paths as well.
func TestRestorePathsKilled(t *testing.T) {
	t.Setenv(envPath, "hard")
	mergeKilled(t, func(b box, a backup) error { return a.only(b, "hard") })
}

func mergeKilled(t *testing.T, restore func(box, backup) error) {
	b := newBox(t, options())
	plant(t, b.dir, 120)
	saveBackup(t, b, "one")
	spoil(t, b)
	saveBackup(t, b, "two")
	b.put(t, "kept/by the merge", "kept")
	old := newMergeStates(t, b, restore)
	r := rand.New(rand.NewPCG(7, 8))
	for range kills() {
		killRestore(t, b, v1.RestoreMerge, time.Duration(r.IntN(400))*time.Millisecond)
		require.Contains(t, old, fingerprint(t, b.dir))
		_, err := reopen(t, b, options()).Scan(t.Context(), id)
		require.NoError(t, err)
		noRemains(t, b)
	}
}

// newMergeStates returns the trees of the volume while the two backups are merged into it
// in turn, and leaves it in the first.
func newMergeStates(t *testing.T, b box, restore func(box, backup) error) map[string]bool {
	t.Helper()
	top := filepath.Dir(filepath.Dir(b.dir))
	states := map[string]bool{fingerprint(t, b.dir): true}
	for range 2 {
		for _, name := range []string{"one", "two"} {
			var size int64
			_, err := fmt.Sscan(readFile(t, filepath.Join(top, name+".bytes")), &size)
			require.NoError(t, err)
			a := newBackup([]byte(readFile(t, filepath.Join(top, name))), size)
			require.NoError(t, restore(b, a))
			states[fingerprint(t, b.dir)] = true
		}
	}
	return states
}
