package server

import (
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"berth/api/intent"
	"berth/api/stream"
	v1 "berth/api/v1"
	"berth/store"
)

func TestBackupList(t *testing.T) {
	h, _ := newShelved(t)
	volume, other := h.volume(), h.volume()
	var ids []string
	for range 5 {
		ids = append(ids, backup(h, volume, nil))
	}
	newest := append([]string(nil), ids...)
	slices.Reverse(newest)
	last := backup(h, other, nil)
	listed := func(path string) (list []string, next string) {
		body := h.must("GET", path, nil).json
		for _, b := range body["backups"].([]any) {
			list = append(list, b.(object)["backup_id"].(string))
		}
		next, _ = body["continue"].(string)
		return list, next
	}
	all, _ := listed("/backups")
	require.Equal(t, append([]string{last}, newest...), all)
	of, _ := listed("/backups?volume=" + volume[:8])
	require.Equal(t, newest, of)
	of, _ = listed("/volumes/" + volume + "/backups")
	require.Equal(t, newest, of)
	page, next := listed("/backups?limit=2")
	require.Equal(t, []string{last, newest[0]}, page)
	page, next = listed("/backups?limit=3&continue=" + next)
	require.Equal(t, newest[1:4], page)
	page, next = listed("/backups?limit=3&continue=" + next)
	require.Equal(t, newest[4:], page)
	require.Empty(t, next)
	h.must("DELETE", "/volumes/"+volume, nil)
	require.NoError(t, h.store.Update(func(tx *store.Tx) error { return store.Volumes.Purge(tx, volume) }))
	of, _ = listed("/backups?volume=" + volume)
	require.Equal(t, newest, of, "they stay")
	h.refuse(404, "Volume not found", "GET", "/backups?volume="+noID, nil)
	h.refuse(404, "Volume not found", "GET", "/volumes/"+volume+"/backups", nil)
}

// TestBackupListShowsFewSkipped: a list has the first skipped entries, a backup all of them;
// both have its restores, the newest first.
func TestBackupListShowsFewSkipped(t *testing.T) {
	h, _ := newShelved(t)
	volume := h.volume()
	id := backup(h, volume, nil)
	require.NoError(t, h.store.Update(func(tx *store.Tx) error {
		first := skippedEntries(v1.ListedSkipped, 20)
		err := store.Backups.SetStatus(tx, id, func(s *v1.BackupStatus) { s.Skipped, s.SkippedTotal = first, 400 })
		require.NoError(t, err)
		return store.SetSkipped(tx, id, skippedEntries(400, 20))
	}))
	var restores []string
	for range 3 {
		r := h.must("POST", "/backups/"+id+"/restore", nil).json["restore_id"].(string)
		end(h, r, volume)
		restores = append([]string{r}, restores...)
	}
	one := h.must("GET", "/backups/"+id, nil).json
	require.Len(t, one["skipped"], 400)
	listed := h.must("GET", "/backups", nil).json["backups"].([]any)[0].(object)
	require.Len(t, listed["skipped"], v1.ListedSkipped)
	for i, r := range one["restores"].([]any) {
		require.Equal(t, restores[i], r.(object)["restore_id"])
	}
	delete(one, "skipped")
	delete(listed, "skipped")
	require.Equal(t, one, listed)
	end(h, h.must("POST", "/backups/"+id+"/restore", nil).json["restore_id"].(string), volume)
	require.Len(t, h.must("GET", "/backups", nil).json["backups"].([]any)[0].(object)["restores"], 4, "it is read anew")
}

// skippedEntries returns n entries with paths of size bytes.
func skippedEntries(n, size int) (list []v1.Skipped) {
	for i := range n {
		list = append(list, v1.Skipped{Path: fmt.Sprintf("%0*d", size, i), Reason: v1.SkippedSpecial})
	}
	return list
}

// storeBackups stores n completed backups of a volume, with as many skipped entries as fit.
func storeBackups(tb testing.TB, s *store.Store, n int) {
	tb.Helper()
	all := skippedEntries(v1.MaxSkipped, 250)
	for range n {
		require.NoError(tb, s.Update(func(tx *store.Tx) error {
			id, now := intent.NewID(), tx.Now()
			err := store.Backups.Create(tx, id, v1.BackupSpec{VolumeID: "v", Target: v1.TargetLocal})
			require.NoError(tb, err)
			err = store.Backups.SetStatus(tx, id, func(st *v1.BackupStatus) {
				*st = v1.BackupStatus{State: v1.JobCompleted, StartedAt: &now, FinishedAt: &now, Size: 7, Checksum: "sha256:abc",
					Skipped: v1.FirstSkipped(all, v1.ListedSkipped, v1.ListedSkippedBytes), SkippedTotal: v1.MaxSkipped}
			})
			require.NoError(tb, err)
			return store.SetSkipped(tx, id, all)
		}))
	}
}

func (l *backupLists) whole(tb testing.TB) []byte {
	tb.Helper()
	list, err := l.after("", func(string) bool { return true })
	require.NoError(tb, err)
	restores, err := l.restoresOf(list)
	require.NoError(tb, err)
	return joinBackups(list, restores, "")
}

// TestBackupListWork: a list encodes the backups that have changed, and no others.
func TestBackupListWork(t *testing.T) {
	s, err := store.Open(t.TempDir(), store.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	storeBackups(t, s, 20)
	encoded := 0
	lists := newBackupLists(s)
	lists.backups = store.NewProjection(s, store.Backups, func(b v1.Backup) *listedBackup { encoded++; return encodeBackup(b) })
	var list struct{ Backups []backupView }
	require.NoError(t, json.Unmarshal(lists.whole(t), &list))
	require.Len(t, list.Backups, 20)
	require.Equal(t, 20, encoded)
	lists.whole(t)
	require.Equal(t, 20, encoded)
	require.NoError(t, s.Update(func(tx *store.Tx) error { return store.Backups.Delete(tx, list.Backups[7].BackupID) }))
	require.Contains(t, string(lists.whole(t)), `"state":"deleting"`)
	require.Equal(t, 21, encoded)
}

// TestListenPreparesBackupLists: before the first request.
func TestListenPreparesBackupLists(t *testing.T) {
	var encoded atomic.Int64
	h := newHarness(t)
	storeBackups(t, h.store, 3)
	config := h.settings.config
	hub := stream.New(t.TempDir(), stream.Options{})
	defer hub.Close()
	s := New(Deps{Store: h.store, Settings: &settings{config: config}, Hub: hub})
	s.handlers.backups.lists.backups = store.NewProjection(h.store, store.Backups, func(b v1.Backup) *listedBackup {
		encoded.Add(1)
		return encodeBackup(b)
	})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() { ended <- s.Listen(ln) }()
	require.Eventually(t, func() bool { return encoded.Load() == 3 }, time.Minute, time.Millisecond)
	require.NoError(t, s.Shutdown(t.Context()))
	require.NoError(t, <-ended)
}

// BenchmarkBackupList is the list of 1,000 backups, each with as many skipped entries as fit:
// the first one of a daemon, and then again.
func BenchmarkBackupList(b *testing.B) {
	dir := b.TempDir()
	s, err := store.Open(dir, store.Options{})
	require.NoError(b, err)
	storeBackups(b, s, 1000)
	lists := newBackupLists(s)
	b.Run("again", func(b *testing.B) {
		for b.Loop() {
			reportCPU(b, func() { lists.whole(b) })
		}
	})
	b.Run("first", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			require.NoError(b, s.Close())
			s, err = store.Open(dir, store.Options{})
			require.NoError(b, err)
			lists := newBackupLists(s)
			lists.prepare()
			b.StartTimer()
			reportCPU(b, func() { lists.whole(b) })
		}
	})
	require.NoError(b, s.Close())
}

// reportCPU reports the processor time of the process during the last call of do: on a busy
// host it is far less than the time that passes.
func reportCPU(b *testing.B, do func()) {
	b.Helper()
	var before, after unix.Rusage
	require.NoError(b, unix.Getrusage(unix.RUSAGE_SELF, &before))
	do()
	require.NoError(b, unix.Getrusage(unix.RUSAGE_SELF, &after))
	spent := func(u unix.Rusage) int64 { return u.Utime.Nano() + u.Stime.Nano() }
	b.ReportMetric(float64(spent(after)-spent(before))/1e6, "cpu-ms/last")
}
