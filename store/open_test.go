package store

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// sample returns the directory of a killed store: a table, and a log with more.
func sample(t *testing.T) string {
	dir, left := t.TempDir(), t.TempDir()
	s, err := Open(dir, Options{})
	require.NoError(t, err)
	require.NoError(t, createBig(s, "table", noise()))
	require.NoError(t, s.Close())
	s, err = Open(dir, Options{})
	require.NoError(t, err)
	require.NoError(t, create(s, "log-1"))
	require.NoError(t, create(s, "log-2"))
	require.NoError(t, os.CopyFS(left, os.DirFS(dir)))
	require.NoError(t, s.Close())
	return left
}

// one returns the last file that matches.
func one(t *testing.T, dir, pattern string) string {
	names, err := filepath.Glob(filepath.Join(dir, pattern))
	require.NoError(t, err)
	require.NotEmpty(t, names)
	return names[len(names)-1]
}

func flip(t *testing.T, name string, at int) {
	b, err := os.ReadFile(name)
	require.NoError(t, err)
	b[at] ^= 0x55
	require.NoError(t, os.WriteFile(name, b, 0o600))
}

func TestDamageIsRefusedWithInstructions(t *testing.T) {
	whole := sample(t)
	cases := map[string]func(t *testing.T, dir string){
		"table deleted":      func(t *testing.T, dir string) { require.NoError(t, os.Remove(one(t, dir, "*.sst"))) },
		"table truncated":    func(t *testing.T, dir string) { require.NoError(t, os.Truncate(one(t, dir, "*.sst"), 50_000)) },
		"table flipped":      func(t *testing.T, dir string) { flip(t, one(t, dir, "*.sst"), 100_000) },
		"log deleted":        func(t *testing.T, dir string) { require.NoError(t, os.Remove(one(t, dir, "*.mem"))) },
		"log flipped":        func(t *testing.T, dir string) { flip(t, one(t, dir, "*.mem"), 100) },
		"log emptied":        func(t *testing.T, dir string) { require.NoError(t, os.Truncate(one(t, dir, "*.mem"), 0)) },
		"manifest deleted":   func(t *testing.T, dir string) { require.NoError(t, os.Remove(one(t, dir, "MANIFEST"))) },
		"manifest truncated": func(t *testing.T, dir string) { require.NoError(t, os.Truncate(one(t, dir, "MANIFEST"), 20)) },
		"manifest flipped":   func(t *testing.T, dir string) { flip(t, one(t, dir, "MANIFEST"), 20) },
		"all but the checkpoint deleted": func(t *testing.T, dir string) {
			checkpoint, err := os.ReadFile(one(t, dir, "MARK"))
			require.NoError(t, err)
			require.NoError(t, os.RemoveAll(dir))
			require.NoError(t, os.Mkdir(dir, 0o700))
			require.NoError(t, os.WriteFile(filepath.Join(dir, "MARK"), checkpoint, 0o600))
		},
	}
	for name, damage := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			require.NoError(t, os.CopyFS(dir, os.DirFS(whole)))
			table := one(t, dir, "*.sst")
			damage(t, dir)
			_, err := Open(dir, Options{})
			require.ErrorIs(t, err, ErrDamaged)
			require.ErrorContains(t, err, "restore a backup")
			if name == "manifest deleted" {
				require.FileExists(t, table, "Badger has not removed the tables")
			}
		})
	}
}

// TestLossOfOneUpdateIsDamage: the checkpoint is as new as the store.
func TestLossOfOneUpdateIsDamage(t *testing.T) {
	dir, older := t.TempDir(), t.TempDir()
	s := openIn(t, dir)
	require.NoError(t, create(s, "kept"))
	require.NoError(t, os.CopyFS(older, os.DirFS(dir)))
	require.NoError(t, create(s, "lost"))
	checkpoint, err := os.ReadFile(one(t, dir, "MARK"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(older, "MARK"), checkpoint, 0o600))
	_, err = Open(older, Options{})
	require.ErrorIs(t, err, ErrDamaged)
	require.ErrorContains(t, err, "is at revision 1, but was at 2")
}

// TestDamagedFileWithoutData: the error names the file, and without it the store has everything.
func TestDamagedFileWithoutData(t *testing.T) {
	whole := sample(t)
	cases := map[string]func(t *testing.T, name string){
		"KEYREGISTRY":        func(t *testing.T, name string) { flip(t, name, 20) },
		"KEYREGISTR[Y]":      func(t *testing.T, name string) { require.NoError(t, os.Truncate(name, 20)) },
		"KEYREGIST[R][Y]":    func(t *testing.T, name string) { require.NoError(t, os.Truncate(name, 0)) },
		"*.vlog":             func(t *testing.T, name string) { flip(t, name, 3) },
		"[0-9]*[13579].vlog": func(t *testing.T, name string) { flip(t, name, 0) },
	}
	for pattern, damage := range cases {
		t.Run(pattern, func(t *testing.T) {
			dir := t.TempDir()
			require.NoError(t, os.CopyFS(dir, os.DirFS(whole)))
			name := one(t, dir, pattern)
			damage(t, name)
			_, err := Open(dir, Options{})
			require.ErrorIs(t, err, ErrDamaged)
			require.ErrorContains(t, err, name+": ")
			require.ErrorContains(t, err, "nothing is lost without it")
			require.NotContains(t, err.Error(), "backup")
			require.NoError(t, os.Remove(name))
			s := openIn(t, dir)
			require.EqualValues(t, 3, s.Revision())
		})
	}
}

func TestHarmlessDifferencesAreOpened(t *testing.T) {
	whole := sample(t)
	cases := map[string]func(t *testing.T, dir string){
		"nothing":            func(*testing.T, string) {},
		"checkpoint flipped": func(t *testing.T, dir string) { flip(t, one(t, dir, "MARK"), 40) },
		"checkpoint emptied": func(t *testing.T, dir string) { require.NoError(t, os.Truncate(one(t, dir, "MARK"), 0)) },
		"reserve deleted":    func(t *testing.T, dir string) { require.NoError(t, os.Remove(one(t, dir, "RESERVE"))) },
		"empty log of a kill while it was made": func(t *testing.T, dir string) {
			require.NoError(t, os.WriteFile(filepath.Join(dir, "00009.mem"), nil, 0o600))
		},
		"table of a kill while it was written": func(t *testing.T, dir string) {
			require.NoError(t, os.WriteFile(filepath.Join(dir, "000009.sst"), make([]byte, 5000), 0o600))
		},
	}
	for name, change := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			require.NoError(t, os.CopyFS(dir, os.DirFS(whole)))
			change(t, dir)
			s := openIn(t, dir)
			require.EqualValues(t, 3, s.Revision())
			require.NoError(t, create(s, "more"))
		})
	}
}

// With a new id, every container would belong to another store and be created twice.
func TestStoreWithoutCheckpointKeepsItsID(t *testing.T) {
	dir, whole := sample(t), t.TempDir()
	require.NoError(t, os.CopyFS(whole, os.DirFS(dir)))
	was, old := idAndEpoch(t, whole)
	flip(t, one(t, dir, "*.mem"), 100)
	_, err := Open(dir, Options{})
	require.ErrorContains(t, err, "remove the file MARK")
	require.NoError(t, os.Remove(one(t, dir, "MARK")))
	id, epoch := idAndEpoch(t, dir)
	require.Equal(t, was, id)
	require.NotEqual(t, old, epoch)
	s := openIn(t, dir)
	require.Equal(t, id, s.ID())
	require.Equal(t, epoch, s.Incarnations.Epoch(), "the new epoch stays")
	require.EqualValues(t, 1, s.Revision())
	require.True(t, s.Incarnations.Remembers("", 1))
	require.False(t, s.Incarnations.Remembers("", 2), "revisions that were lost are never remembered")
}

func child(t *testing.T, name, dir string) *exec.Cmd {
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), "STORE_CHILD="+name, "STORE_DIR="+dir,
		"GORACE=atexit_sleep_ms=0") // else a race build sleeps for a second
	return cmd
}

func TestSecondProcessIsRefused(t *testing.T) {
	dir := t.TempDir()
	s := openIn(t, dir)
	out, err := child(t, "open", dir).Output()
	require.NoError(t, err)
	require.Contains(t, string(out), "locked\n")
	require.Contains(t, string(out), "another berth holds the store")
	require.Contains(t, string(out), "stop it first")
	require.FileExists(t, filepath.Join(dir, "RESERVE"), "the other process has removed nothing")
	require.NoError(t, create(s, "still-works"))
	_, err = Open(dir, Options{})
	require.ErrorIs(t, err, ErrLocked)
}

// TestOpenWaitsForALock opens a store while the process that holds its lock ends.
func TestOpenWaitsForALock(t *testing.T) {
	dir := t.TempDir()
	holder := child(t, "open", dir)
	in, err := holder.StdinPipe()
	require.NoError(t, err)
	out, err := holder.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, holder.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "opened\n", line)
	require.NoError(t, in.Close()) // it ends now
	s, err := Open(dir, Options{})
	require.NoError(t, err)
	require.NoError(t, s.Close())
	_ = holder.Wait()
}

func TestStoreOpensAfterAKillOnAFullDisk(t *testing.T) {
	disk := smallDisk(t, "112m")
	dir := filepath.Join(disk, "store")
	cmd := child(t, "write", dir)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	_, err = out.Read(make([]byte, 1))
	require.NoError(t, err)
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait() // "signal: killed"
	fill(t, disk)

	s, err := Open(dir, Options{MinFree: 16 << 20})
	require.NoError(t, err)
	require.NotZero(t, s.Revision())
	require.ErrorIs(t, create(s, "none"), ErrDiskFull)
	require.NoError(t, s.Close())
}

func TestStoreOfAnotherSchemaIsRefused(t *testing.T) {
	for _, version := range []string{"2", "\x00\x00\x00\x00\x00\x00\x00\x04"} {
		dir := t.TempDir()
		s, err := Open(dir, Options{})
		require.NoError(t, err)
		damage(t, s, map[string]string{string(schemaKey): version})
		_, err = Open(dir, Options{})
		require.ErrorIs(t, err, ErrSchema)
		require.ErrorContains(t, err, "start the version that wrote it")
		require.ErrorContains(t, err, "move its directory away")
	}
}

func TestStoreWithoutSchemaVersionIsRefused(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir, Options{})
	require.NoError(t, err)
	require.NoError(t, create(s, "a"))
	require.NoError(t, s.Update(func(tx *Tx) error { return schemaKey.remove(tx) }))
	require.NoError(t, s.Close())
	_, err = Open(dir, Options{})
	require.ErrorIs(t, err, ErrDamaged)
	require.ErrorContains(t, err, "move its directory away")
}
