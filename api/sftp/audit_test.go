package sftp

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"berth/api/auth"
	"berth/api/limit"
	v1 "berth/api/v1"
	"berth/store"
)

func TestAuditOfFiles(t *testing.T) {
	h := newHarness(t)
	h.container("survival", h.volume)
	c := h.login("survival", h.mint(auth.Grant{Name: "alice", Containers: []string{"survival"}}))
	f, err := c.Create("a")
	require.NoError(t, err)
	for range 100 {
		_, err := f.Write([]byte("text"))
		require.NoError(t, err)
	}
	require.NoError(t, f.Chmod(0o600))
	require.NoError(t, f.Close())
	require.NoError(t, c.Chmod("a", 0o640))
	require.NoError(t, c.Chmod("a", 0o640), "no change")
	require.NoError(t, c.Chtimes("a", time.Now(), time.Now()))
	require.NoError(t, c.Truncate("a", 1))
	require.NoError(t, c.Mkdir("d"))
	require.NoError(t, c.Rename("a", "d/a"))
	require.NoError(t, c.PosixRename("d/a", "b"))
	require.NoError(t, c.Symlink("b", "berth_0123"))
	require.NoError(t, c.Remove("b"))
	require.NoError(t, c.RemoveDirectory("d"))
	require.Error(t, c.Mkdir("none/x"))
	require.Error(t, c.Chmod("none", 0o600))
	f, err = c.OpenFile("unchanged", os.O_CREATE|os.O_WRONLY)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	f, err = c.OpenFile("unchanged", os.O_WRONLY)
	require.NoError(t, err)
	require.NoError(t, f.Close(), "nothing was written")

	var got []string
	for _, e := range h.audit() {
		got = append(got, strings.TrimSpace(fmt.Sprint(e.Action, " ", strings.TrimPrefix(strings.TrimPrefix(e.Object, h.volume), "/"), " ", e.Status)))
		require.Equal(t, "alice", e.Actor.Name)
		require.Equal(t, v1.ViaSFTP, e.Actor.Via)
		require.Equal(t, h.audit()[0].RequestID, e.RequestID)
	}
	require.Equal(t, []string{"session.open  101", "file.write a 200", "file.chmod a 200", "file.touch a 200", "file.truncate a 200",
		"folder.create d 200", "file.rename a -> d/a 200", "file.rename d/a -> b 200", "link.create *** 200", "file.delete b 200",
		"folder.delete d 200", "file.write unchanged 200"}, got)
}

func TestAuditOfRefusedWrites(t *testing.T) {
	h := limited(t, 1<<20)
	c := h.open()
	f, err := c.Create("big")
	require.NoError(t, err)
	_, err = f.ReadFrom(bytes.NewReader(make([]byte, 2<<20)))
	require.Error(t, err)
	require.NoError(t, f.Close())
	last := h.audit()[len(h.audit())-1]
	require.Equal(t, "file.write", last.Action)
	require.Equal(t, 413, last.Status)
}

func TestUnrecordedChange(t *testing.T) {
	h := newHarness(t)
	c := h.open()
	f, err := c.Create("file")
	require.NoError(t, err)
	_ = f
	require.NoError(t, h.server.audit.flush())
	require.NoError(t, h.store.Close())
	require.ErrorContains(t, c.Mkdir("folder"), "could not be recorded")
	_, err = c.Create("other")
	require.ErrorContains(t, err, "could not be recorded")
}

// TestPaceOfChanges requires that a token which has made too many changes waits, and
// that another one does not.
func TestPaceOfChanges(t *testing.T) {
	h := newHarnessWith(t, func(s *Server) {
		s.limits.changes = limit.NewRate(limit.Pace{Every: 10 * time.Millisecond, Burst: 5, Keys: 10})
	})
	c := h.open()
	began := time.Now()
	for i := range 30 {
		require.NoError(t, c.Mkdir(fmt.Sprint(i)))
	}
	require.GreaterOrEqual(t, time.Since(began), 200*time.Millisecond, "30 changes, 5 ahead of one in 10 ms")
	require.Zero(t, h.server.limits.changes.Left("", 1))
}

// newAuditor returns an auditor, and a function that returns the audit log.
func newAuditor(t *testing.T, dir string) (*auditor, func() []v1.AuditEntry) {
	t.Helper()
	db, err := store.Open(dir, store.Options{MinFree: 16 << 20})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return &auditor{store: db, log: slog.New(slog.DiscardHandler)}, func() (list []v1.AuditEntry) {
		t.Helper()
		list, err = store.ReadAudit(db.Read(), 0, 100_000, v1.AuditFilter{})
		require.NoError(t, err)
		return list
	}
}

func newEntry(path string) *entry {
	return &entry{audit: v1.Audit{Action: "file.write", Object: "v", Path: path}}
}

// TestEntriesAreStoredTogether: entries wait until recordDelay after the first one, and a status that
// changes meanwhile is that of the entry.
func TestEntriesAreStoredTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, list := newAuditor(t, "")
		first, last := newEntry("first"), newEntry("last")
		require.NoError(t, a.add(first, 200, false))
		time.Sleep(recordDelay - 1)
		for i := range 2 * atOnce {
			require.NoError(t, a.add(newEntry(strconv.Itoa(i)), 200, false))
		}
		require.NoError(t, a.add(last, 200, false))
		require.NoError(t, a.add(first, 413, true))
		require.Empty(t, list())
		time.Sleep(2 * time.Nanosecond)
		synctest.Wait()
		got := list()
		require.Len(t, got, 2*atOnce+2)
		for i, e := range got {
			require.EqualValues(t, i+1, e.Seq)
		}
		require.Equal(t, 413, got[0].Status)

		require.NoError(t, a.add(last, 507, true))
		time.Sleep(recordDelay)
		synctest.Wait()
		got = list()
		require.Len(t, got, 2*atOnce+2)
		require.Equal(t, 507, got[2*atOnce+1].Status)

		require.NoError(t, a.add(newEntry("at the end"), 200, false))
		require.NoError(t, a.flush())
		require.Len(t, list(), 2*atOnce+3)
		require.NoError(t, a.flush())
	})
}

// TestEntriesOnFullDisk: a change that takes space is refused, one that frees space is recorded,
// and so are those that waited when the disk became full.
func TestEntriesOnFullDisk(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, unix.Mount("tmpfs", dir, "tmpfs", 0, "size=112m"))
	t.Cleanup(func() { require.NoError(t, unix.Unmount(dir, unix.MNT_DETACH)) })
	a, list := newAuditor(t, filepath.Join(dir, "store"))
	require.NoError(t, a.add(newEntry("before"), 200, false))
	filler, err := os.Create(filepath.Join(dir, "filler"))
	require.NoError(t, err)
	for err == nil {
		_, err = filler.Write(make([]byte, 1<<20))
	}
	require.NoError(t, filler.Close())
	require.ErrorIs(t, a.add(newEntry("refused"), 200, false), store.ErrDiskFull)
	require.NoError(t, a.add(newEntry("freed"), 200, true))
	require.NoError(t, a.flush())
	require.Len(t, list(), 2)
}

// TestEntriesAreBounded: what waits is bounded while nothing can be stored, and is kept.
func TestEntriesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, list := newAuditor(t, "")
		for i := range maxWaiting {
			require.NoError(t, a.add(newEntry(strconv.Itoa(i)), 200, false))
		}
		require.ErrorIs(t, a.add(newEntry("refused"), 200, false), store.ErrFailed)
		time.Sleep(recordDelay)
		synctest.Wait()
		require.Len(t, list(), maxWaiting)
		require.NoError(t, a.add(newEntry("more"), 200, false))
		require.NoError(t, a.store.Close())
		require.ErrorIs(t, a.flush(), store.ErrClosed)
		require.Len(t, a.waiting, 1)
	})
}

// TestAuditOfUser: the sessions and the changes of a token that acts for a user have its name and address.
func TestAuditOfUser(t *testing.T) {
	h := newHarness(t)
	h.container("survival", h.volume)
	c := h.login("survival", h.mint(auth.Grant{Containers: []string{"survival"}, OnBehalfOf: "alice", Address: "192.0.2.7"}))
	require.NoError(t, c.Mkdir("d"))
	entries := h.audit()
	require.NotEmpty(t, entries)
	for _, e := range entries {
		require.Equal(t, []string{"alice", "192.0.2.7"}, []string{e.Actor.OnBehalfOf, e.Actor.Address}, e.Action)
	}
}
