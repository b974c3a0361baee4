package volume_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/runtime/volume"
)

// fixed are the options of a volume whose directory is that of a claim.
func fixed() volume.Options {
	opt := options()
	opt.Fixed = func(string) bool { return true }
	return opt
}

// TestRestoreInAClaim: a restore leaves the directory, and makes what is in it and its attributes those of the backup.
func TestRestoreInAClaim(t *testing.T) {
	b := newBox(t, fixed())
	plant(t, b.dir, 20)
	want := fingerprint(t, b.dir)
	a, _ := takeBackup(t, b)
	before, err := os.Stat(b.dir)
	require.NoError(t, err)
	spoil(t, b)
	require.NoError(t, os.Chmod(b.dir, 0o711))
	require.NoError(t, a.restore(t.Context(), b, v1.RestoreReplace))
	require.Equal(t, want, fingerprint(t, b.dir))
	after, err := os.Stat(b.dir)
	require.NoError(t, err)
	require.True(t, os.SameFile(before, after))
	require.Equal(t, before.Mode(), after.Mode())
	noRemains(t, b)
}

// TestRestoreInAClaimContinues has the states of the disk between the steps: after each, the next start completes the restore.
func TestRestoreInAClaimContinues(t *testing.T) {
	b := newBox(t, fixed())
	temps := filepath.Join(filepath.Dir(b.dir), ".tmp", id)
	for what, state := range map[string]struct {
		tree       string
		there, new []string
	}{
		"no entry has left":        {"restored", []string{"old", "both"}, []string{"new", "both"}},
		"an entry has left":        {"restored", []string{"both"}, []string{"new", "both"}},
		"all have left":            {"restored", nil, []string{"new", "both"}},
		"no entry has entered":     {"entering", nil, []string{"new", "both"}},
		"an entry has entered":     {"entering", []string{"both"}, []string{"new"}},
		"all entries have entered": {"entering", []string{"both", "new"}, nil},
	} {
		require.NoError(t, os.RemoveAll(b.dir))
		require.NoError(t, os.Mkdir(b.dir, 0o700))
		require.NoError(t, os.MkdirAll(filepath.Join(temps, state.tree), 0o750))
		for _, name := range state.there {
			b.put(t, name+"/file", "old")
			if state.tree == "entering" {
				b.put(t, name+"/file", "new")
			}
		}
		for _, name := range state.new {
			require.NoError(t, os.Mkdir(filepath.Join(temps, state.tree, name), 0o755))
			require.NoError(t, os.WriteFile(filepath.Join(temps, state.tree, name, "file"), []byte("new"), 0o600))
		}
		before, err := os.Stat(b.dir)
		require.NoError(t, err)
		_, err = b.Scan(t.Context(), id)
		require.NoError(t, err)
		require.DirExists(t, filepath.Join(temps, state.tree), "a scan leaves it to the restore")
		again := reopen(t, b, fixed())
		entries, err := os.ReadDir(b.dir)
		require.NoError(t, err)
		require.Len(t, entries, 2, what)
		require.Equal(t, "newnew", b.get(t, "both/file")+b.get(t, "new/file"), what)
		after, err := os.Stat(b.dir)
		require.NoError(t, err)
		require.True(t, os.SameFile(before, after), what)
		_, err = again.Scan(t.Context(), id)
		require.NoError(t, err)
		noRemains(t, b)
	}
}

// TestRestoreThatCannotBeCompleted keeps its volume from use, and no other, until it can be completed.
func TestRestoreThatCannotBeCompleted(t *testing.T) {
	b := newBox(t, fixed())
	require.NoError(t, b.Ensure("other"))
	tree := filepath.Join(filepath.Dir(b.dir), ".tmp", id, "restored")
	require.NoError(t, os.MkdirAll(tree, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(tree, "file"), []byte("new"), 0o600))
	require.NoError(t, os.Remove(b.dir))
	require.NoError(t, os.WriteFile(b.dir, nil, 0o600)) // no entry can enter it
	again := reopen(t, b, fixed())
	require.NoError(t, again.Check("other"))
	require.ErrorContains(t, again.Check(id), "complete its restore")
	require.FileExists(t, filepath.Join(tree, "file"))
	require.NoError(t, os.Remove(b.dir))
	require.NoError(t, os.Mkdir(b.dir, 0o700))
	require.NoError(t, again.Check(id))
	require.Equal(t, "new", b.get(t, "file"))
}

// TestRestoreInAClaimIsUndone: after an entry that cannot be moved, the volume is as it was.
func TestRestoreInAClaimIsUndone(t *testing.T) {
	if os.Getuid() != 0 {
		t.Fatal("a mount needs root")
	}
	b := newBox(t, fixed())
	plant(t, b.dir, 20)
	a, _ := takeBackup(t, b)
	spoil(t, b)
	require.NoError(t, os.Mkdir(filepath.Join(b.dir, "mounted"), 0o755))
	require.NoError(t, syscall.Mount("none", filepath.Join(b.dir, "mounted"), "tmpfs", 0, ""))
	t.Cleanup(func() { _ = syscall.Unmount(filepath.Join(b.dir, "mounted"), syscall.MNT_DETACH) })
	before := fingerprint(t, b.dir)
	require.Error(t, a.restore(t.Context(), b, v1.RestoreReplace))
	require.Equal(t, before, fingerprint(t, b.dir))
	noRemains(t, b)
}

// TestRemoveInAClaim: the directory is left to the class that has made it.
func TestRemoveInAClaim(t *testing.T) {
	b := newBox(t, fixed())
	plant(t, b.dir, 20)
	for range 2 {
		require.NoError(t, b.Remove(t.Context(), id))
		entries, err := os.ReadDir(b.dir)
		require.NoError(t, err)
		require.Empty(t, entries)
	}
	noRemains(t, b)
	require.NoError(t, os.Remove(b.dir))
	require.NoError(t, b.Remove(t.Context(), id))
}
