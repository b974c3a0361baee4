package server

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

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
