package store

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	v1 "berth/api/v1"
)

// smallDisk mounts a file system of its own.
func smallDisk(t *testing.T, size string) string {
	dir := t.TempDir()
	require.NoError(t, unix.Mount("tmpfs", dir, "tmpfs", 0, "size="+size))
	// Detached: a test that fails may have left a store open in it.
	t.Cleanup(func() { require.NoError(t, unix.Unmount(dir, unix.MNT_DETACH)) })
	return dir
}

// fill takes all the room that is left.
func fill(t *testing.T, dir string) (filler string) {
	filler = filepath.Join(dir, "filler")
	f, err := os.Create(filler)
	require.NoError(t, err)
	defer f.Close()
	block := make([]byte, 64<<10)
	for err == nil {
		_, err = f.Write(block)
	}
	require.ErrorIs(t, err, unix.ENOSPC)
	return filler
}

// requireQuiet waits until Badger has written the tables of the last updates,
// and lets nothing be merged from then on.
func requireQuiet(t *testing.T, s *Store) {
	require.Eventually(t, func() bool {
		logs, err := filepath.Glob(filepath.Join(s.disk.dir, "*.mem"))
		waiting := newTables(s) >= compactAt && s.disk.freeSpace(mergeRoom(s)) == nil
		return err == nil && len(logs) == 1 && !waiting
	}, time.Minute, 10*time.Millisecond)
	s.compactor.close()
	s.compactor = nil
}

func createBig(s *Store, id, script string) error {
	return s.Update(func(tx *Tx) error {
		return Containers.Create(tx, id, v1.ContainerSpec{InstallScript: script})
	})
}

// noise is text that cannot be compressed.
func noise() string {
	b := make([]byte, 200<<10)
	rand.Read(b)
	return base64.StdEncoding.EncodeToString(b)
}

func TestFullDiskRefusesUpdatesUntilThereIsRoom(t *testing.T) {
	disk := smallDisk(t, "112m")
	dir := filepath.Join(disk, "store")
	s, err := Open(dir, Options{MinFree: 16 << 20})
	require.NoError(t, err)
	require.NoError(t, createBig(s, "before", noise()))
	rev := s.Revision()

	filler := fill(t, disk)
	err = createBig(s, "during", noise())
	require.ErrorIs(t, err, ErrFailed)
	require.ErrorIs(t, err, ErrDiskFull)
	require.ErrorContains(t, err, "disk is full")
	require.ErrorIs(t, s.Writable(), ErrDiskFull)
	require.Equal(t, rev, s.Revision())
	require.NoError(t, s.View(func(tx *Tx) error {
		_, err := Containers.Get(tx, "before")
		require.Equal(t, []string{"before"}, Containers.IDs(tx))
		return err
	}))

	require.NoError(t, os.Remove(filler))
	require.NoError(t, s.Writable())
	require.NoError(t, createBig(s, "after", noise()))
	require.Equal(t, rev+1, s.Revision())
	require.NoError(t, s.Close())
}

func TestFullDiskUnderLoadKillsNothing(t *testing.T) {
	disk := smallDisk(t, "96m")
	dir := filepath.Join(disk, "store")
	s, err := Open(dir, Options{MinFree: 32 << 20})
	require.NoError(t, err)
	kept := 0
	script := noise()
	for err == nil { // until the store itself has filled the disk
		script = script[1000:] + script[:1000]
		if err = createBig(s, strconv.Itoa(kept), script); err == nil {
			kept++
		}
	}
	require.ErrorIs(t, err, ErrDiskFull)
	require.Greater(t, kept*len(script), memTableSize, "a log was used up, and is a table")
	requireQuiet(t, s)
	fill(t, disk)
	require.NoError(t, s.Close(), "the reserve has room for the last table")

	fill(t, disk)
	_, err = Open(dir, Options{MinFree: 32 << 20})
	require.ErrorIs(t, err, ErrDiskFull, "a start without any room is refused, not killed")
	require.NoError(t, os.Remove(filepath.Join(disk, "filler")))
	s, err = Open(dir, Options{MinFree: 1 << 20})
	require.NoError(t, err)
	require.EqualValues(t, kept, s.Revision())
	require.NoError(t, s.View(func(tx *Tx) error {
		require.Len(t, Containers.IDs(tx), kept)
		return nil
	}))
	require.NoError(t, s.Close())
}

// recordChange is what the container controller writes at the end of a run.
func note(i int) func(*Tx) error {
	return func(tx *Tx) error {
		Emit(tx, v1.Event{Container: "mc", Event: v1.EventState, Data: string(v1.Exit)})
		return Containers.SetStatus(tx, "mc", func(st *v1.ContainerStatus) { st.Message = strconv.Itoa(i) })
	}
}

// The disk may fill up however much of the log is used.
func TestFullDiskLetsThroughWhatMustAtAnyTime(t *testing.T) {
	for _, written := range []int{1, 12, 19, 20, 24, 28, 29, 30, 45} { // some 270 KB each
		t.Run(strconv.Itoa(written), func(t *testing.T) {
			disk := smallDisk(t, "128m")
			s, err := Open(filepath.Join(disk, "store"), Options{MinFree: 16 << 20})
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, s.Close()) })
			require.NoError(t, createBig(s, "mc", "x"))
			script := noise()
			for i := range written {
				script = script[1000:] + script[:1000]
				require.NoError(t, createBig(s, strconv.Itoa(i), script))
			}
			require.NoError(t, s.Update(func(*Tx) error { return nil })) // the writer has done what it does behind an update
			requireQuiet(t, s)
			fill(t, disk)
			kept := 0
			for ; err == nil && kept <= 3000; kept++ {
				err = s.MustUpdate(note(kept))
			}
			require.NoError(t, err, "after %d", kept)
		})
	}
}

// usedOf is how much of the log that Badger writes to is used: the rest is zeros.
func usedOf(dir string) (int, error) {
	logs, err := filepath.Glob(filepath.Join(dir, "*.mem"))
	if err != nil || len(logs) == 0 {
		return 0, errors.Join(err, os.ErrNotExist)
	}
	text, err := os.ReadFile(slices.Max(logs))
	return len(bytes.TrimRight(text, "\x00")), err
}

func TestLogIsNeverFullerThanItIsTakenFor(t *testing.T) {
	dir := t.TempDir()
	s := openIn(t, dir)
	require.NoError(t, createBig(s, "mc", "x"))
	script := noise()
	for i := range 1200 {
		id := strconv.Itoa(i)
		require.NoError(t, s.Update(note(i)))
		require.NoError(t, createBig(s, id, script[:(i%7)*(i%11)*200]))
		require.NoError(t, s.Update(func(tx *Tx) error { return Containers.Purge(tx, id) }))
		if i%40 != 0 {
			continue
		}
		var taken, used int
		require.NoError(t, s.Update(func(*Tx) (err error) { // on the writer's goroutine
			taken = int(s.disk.logged)
			used, err = usedOf(dir)
			return err
		}))
		require.LessOrEqual(t, used, taken)
		require.Less(t, taken, memTableSize)
	}
}

func TestFullDiskLetsThroughWhatMust(t *testing.T) {
	disk := smallDisk(t, "112m")
	dir := filepath.Join(disk, "store")
	s, err := Open(dir, Options{MinFree: 16 << 20})
	require.NoError(t, err)
	require.NoError(t, createBig(s, "mc", "x"))
	filler := fill(t, disk)

	kept := 0
	for err == nil {
		require.ErrorIs(t, s.Update(note(0)), ErrDiskFull)
		if err = s.MustUpdate(note(kept + 1)); err == nil {
			kept++
		}
	}
	require.ErrorIs(t, err, ErrDiskFull, "what is there is used up, and nobody is killed")
	require.Greater(t, kept, 3000)

	require.NoError(t, os.Remove(filler))
	require.NoError(t, s.Update(note(kept+1)))
	require.NoError(t, s.Close())
	s, err = Open(dir, Options{})
	require.NoError(t, err)
	require.NoError(t, s.View(func(tx *Tx) error {
		require.EqualValues(t, kept+1, LastEvent(tx))
		c, err := Containers.Get(tx, "mc")
		require.Equal(t, strconv.Itoa(kept+1), c.Status.Message)
		return err
	}))
	require.NoError(t, s.Close())
}

func TestStartAfterAKillOnAFullDisk(t *testing.T) {
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

func TestDirectoryThatIsGoneRefusesUpdates(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	s, err := Open(dir, Options{})
	require.NoError(t, err)
	require.NoError(t, create(s, "a"))
	moved := dir + "-moved"
	require.NoError(t, os.Rename(dir, moved))
	require.ErrorIs(t, create(s, "b"), ErrFailed)
	require.True(t, errors.Is(s.Writable(), ErrFailed))
	require.NoError(t, os.Rename(moved, dir))
	require.NoError(t, create(s, "c"))
	require.NoError(t, s.Close())
}
