package store

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	v1 "berth/api/v1"
)

// together runs the updates in one batch, in their order.
func together(t *testing.T, s *Store, fns ...func(*Tx) error) []error {
	t.Helper()
	return batched(t, s, false, fns...)
}

// batched is together, with a commit that fails if fails is true.
func batched(t *testing.T, s *Store, fails bool, fns ...func(*Tx) error) []error {
	t.Helper()
	hold, held := make(chan struct{}), make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		_ = s.Update(func(*Tx) error { close(held); <-hold; return nil })
	})
	<-held
	// The writer is held, so the batch is this goroutine's.
	b := batch{s: s}
	ops := make([]*op, len(fns))
	for i, fn := range fns {
		ops[i] = newOp(fn)
		b.add(ops[i])
	}
	if fails {
		b.kv.Discard() // it cannot be committed any more
	}
	_ = b.commit()
	errs := make([]error, len(fns))
	for i, o := range ops {
		errs[i] = <-o.done
	}
	close(hold)
	all.Wait()
	return errs
}

func createOp(id string, size int) func(*Tx) error {
	return func(tx *Tx) error {
		return Containers.Create(tx, id, v1.ContainerSpec{InstallScript: new(strings.Repeat("x", size))})
	}
}

func ids(t *testing.T, s *Store) (ids []string) {
	t.Helper()
	ids = Containers.IDs(s.Read())
	return ids
}

func TestFailedUpdateDoesNotAffectItsBatch(t *testing.T) {
	s := openIn(t, t.TempDir())
	broken := errors.New("broken")
	errs := together(t, s,
		createOp("a", 10),
		func(tx *Tx) error { return errors.Join(createOp("b", 10)(tx), broken) },
		func(tx *Tx) error { _ = createOp("c", 10)(tx); panic("at the disco") },
		createOp("a", 10),
		func(tx *Tx) error {
			require.Equal(t, []string{"a"}, Containers.IDs(tx), "it sees the updates before it in the batch")
			return createOp("d", 10)(tx)
		},
	)
	require.NoError(t, errs[0])
	require.ErrorIs(t, errs[1], broken)
	require.ErrorContains(t, errs[2], "at the disco")
	require.ErrorIs(t, errs[3], ErrExists)
	require.NoError(t, errs[4])
	require.Equal(t, []string{"a", "d"}, ids(t, s))
	require.EqualValues(t, 2, s.Revision())
}

func TestBatchThatIsTooBigIsSplit(t *testing.T) {
	for name, dir := range map[string]string{"disk": t.TempDir(), "memory": ""} {
		t.Run(name, func(t *testing.T) {
			s := openIn(t, dir)
			var fns []func(*Tx) error
			for i := range 8 {
				fns = append(fns, createOp(fmt.Sprint(i), 400<<10))
			}
			fns[3] = createOp("big", 2<<20)
			fns[5] = func(tx *Tx) error {
				return errors.Join(createOp("big-a", 900<<10)(tx), createOp("big-b", 900<<10)(tx))
			}
			for i, err := range together(t, s, fns...) {
				if i == 3 || i == 5 {
					require.ErrorIs(t, err, ErrTooBig)
				} else {
					require.NoError(t, err)
				}
			}
			require.Equal(t, []string{"0", "1", "2", "4", "6", "7"}, ids(t, s))
			require.EqualValues(t, 6, s.Revision())
			require.NoError(t, create(s, "next"))
			require.EqualValues(t, 7, s.Revision())
		})
	}
}

// TestBatchIsBounded: an update waits for at most maxBatch others, however many there are.
func TestBatchIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := prometheus.NewRegistry()
		s, err := Open("", Options{Registerer: r})
		require.NoError(t, err)
		before, hold := commits(t, r), make(chan struct{})
		go func() { _ = s.Update(func(*Tx) error { <-hold; return nil }) }()
		synctest.Wait()
		for i := range uint64(2 * maxBatch) {
			go func() { _ = s.Update(func(tx *Tx) error { return SetCursor(tx, "reader", i+1) }) }()
		}
		synctest.Wait()
		close(hold)
		synctest.Wait()
		require.Equal(t, before+3, commits(t, r), "the first one begins with the update that held the writer")
		require.NoError(t, s.Close())
	})
}

// TestUpdateAfterAFailedSplit: an update may have read what the updates before it in its batch have changed. If
// these cannot be stored, it is not, although it fits into a batch of its own.
func TestUpdateAfterAFailedSplit(t *testing.T) {
	s := openIn(t, "")
	errs := together(t, s,
		func(tx *Tx) error {
			require.NoError(t, tx.write("!badger!", []byte("no key that Badger takes")))
			return createOp("a", 900<<10)(tx)
		},
		func(tx *Tx) error {
			require.Equal(t, []string{"a"}, Containers.IDs(tx))
			return createOp("b", 900<<10)(tx)
		})
	for _, err := range errs {
		require.ErrorIs(t, err, ErrFailed)
	}
	require.Empty(t, ids(t, s))
	require.NoError(t, create(s, "next"))
	require.EqualValues(t, 1, s.Revision())
}

func TestUpdateWithTooManyKeysLeavesNothing(t *testing.T) {
	s := openIn(t, "")
	err := s.Update(func(tx *Tx) error {
		for i := range 20_000 {
			if err := Tokens.Create(tx, fmt.Sprint(i), v1.TokenSpec{}); err != nil {
				return err
			}
		}
		return nil
	})
	require.ErrorIs(t, err, ErrTooBig)
	require.Empty(t, Tokens.IDs(s.Read()))
}

func TestUpdateThatCallsGoexitFails(t *testing.T) {
	s := openIn(t, "")
	for range 3 {
		require.ErrorIs(t, s.Update(func(*Tx) error { runtime.Goexit(); return nil }), errGoexit)
	}
	require.NoError(t, create(s, "a"), "others go on")
	require.EqualValues(t, 1, s.Revision())
}

func TestTxIsInvalidAfterItsFunction(t *testing.T) {
	s := openIn(t, "")
	var kept *Tx
	require.NoError(t, s.Update(func(tx *Tx) error { kept = tx; return SetCursor(tx, "x", 1) }))
	require.ErrorIs(t, SetCursor(kept, "x", 2), errReadOnly)
	require.Error(t, Containers.Create(kept, "a", v1.ContainerSpec{}))
	tx := s.Read()
	require.EqualValues(t, 1, Cursor(tx, "x"))
	require.Empty(t, Containers.IDs(tx))
}

func TestFailedCommitFailsAllUpdates(t *testing.T) {
	s := openIn(t, "")
	errs := batched(t, s, true,
		func(*Tx) error { return nil },
		func(*Tx) error { return errors.New("error of the update") },
		createOp("a", 10),
		func(*Tx) error { return nil },
		createOp("a", 10),
	)
	for _, err := range errs {
		require.ErrorIs(t, err, ErrFailed)
	}
	require.Empty(t, ids(t, s))
	require.Zero(t, s.Revision())
}

func TestCommitsAreMeasured(t *testing.T) {
	r := prometheus.NewRegistry()
	s, err := Open("", Options{Registerer: r})
	require.NoError(t, err)
	before := commits(t, r)
	require.NoError(t, create(s, "a"))
	families, err := r.Gather()
	require.NoError(t, err)
	require.Len(t, families, 1)
	require.Equal(t, "berth_store_commit_duration_seconds", families[0].GetName())
	require.Equal(t, before+1, commits(t, r))
	require.NoError(t, s.Close())
}

func TestUpdatesNeedFileDescriptors(t *testing.T) {
	out, err := child(t, "files", t.TempDir()).Output()
	require.NoError(t, err)
	require.Equal(t, "opened\ntrue <nil>\n<nil> 1 <nil>\n", string(out))
}

// smallDisk mounts a file system of its own.
func smallDisk(t *testing.T, size string) string {
	dir := t.TempDir()
	require.NoError(t, unix.Mount("tmpfs", dir, "tmpfs", 0, "size="+size))
	// Detached: a test that fails may have left a store open in it.
	t.Cleanup(func() { require.NoError(t, unix.Unmount(dir, unix.MNT_DETACH)) })
	return dir
}

// fill takes all the space that is left.
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

// noise returns text that cannot be compressed.
func noise() string {
	b := make([]byte, 200<<10)
	rand.Read(b)
	return base64.StdEncoding.EncodeToString(b)
}

func createBig(s *Store, id, script string) error {
	return s.Update(func(tx *Tx) error {
		return Containers.Create(tx, id, v1.ContainerSpec{InstallScript: new(script)})
	})
}

func TestFullDiskRefusesUpdates(t *testing.T) {
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
	{
		tx := s.Read()
		_, err := Containers.Get(tx, "before")
		require.Equal(t, []string{"before"}, Containers.IDs(tx))
		require.NoError(t, err)
	}

	require.NoError(t, os.Remove(filler))
	require.NoError(t, s.Writable())
	require.NoError(t, createBig(s, "after", noise()))
	require.Equal(t, rev+1, s.Revision())
	require.NoError(t, s.Close())
}

// endRun writes what the container controller writes at the end of a run.
func endRun(i int) func(*Tx) error {
	return func(tx *Tx) error {
		tx.Emit(v1.Event{Container: "mc", Event: v1.EventState, Data: string(v1.Exit)})
		return Containers.SetStatus(tx, "mc", func(st *v1.ContainerStatus) { st.Message = strconv.Itoa(i) })
	}
}

func TestFullDiskAllowsMustUpdate(t *testing.T) {
	disk := smallDisk(t, "112m")
	dir := filepath.Join(disk, "store")
	s, err := Open(dir, Options{MinFree: 16 << 20})
	require.NoError(t, err)
	require.NoError(t, createBig(s, "mc", "x"))
	filler := fill(t, disk)

	kept := 0
	for err == nil {
		require.ErrorIs(t, s.Update(endRun(0)), ErrDiskFull)
		if err = s.MustUpdate(endRun(kept + 1)); err == nil {
			kept++
		}
	}
	require.ErrorIs(t, err, ErrDiskFull, "the log is used up, and the kernel kills nobody")
	require.Greater(t, kept, 3000)

	require.NoError(t, os.Remove(filler))
	require.NoError(t, s.Update(endRun(kept+1)))
	require.NoError(t, s.Close())
	s, err = Open(dir, Options{})
	require.NoError(t, err)
	{
		tx := s.Read()
		_, newest := tx.EventBounds()
		require.EqualValues(t, kept+1, newest)
		c, err := Containers.Get(tx, "mc")
		require.Equal(t, strconv.Itoa(kept+1), c.Status.Message)
		require.NoError(t, err)
	}
	require.NoError(t, s.Close())
}

func TestMissingDirectoryRefusesUpdates(t *testing.T) {
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

// TestAnsweredUpdateIsSeen: whoever has the answer to an update reads what it has stored.
func TestAnsweredUpdateIsSeen(t *testing.T) {
	s, err := Open("", Options{})
	require.NoError(t, err)
	defer s.Close()
	for i := range uint64(5000) {
		require.NoError(t, s.Update(func(tx *Tx) error { return SetCursor(tx, "reader", i+1) }))
		require.Equal(t, i+1, Cursor(s.Read(), "reader"))
	}
}
