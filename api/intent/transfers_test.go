package intent_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"berth/api/intent"
	v1 "berth/api/v1"
	"berth/store"
)

// TestAnnouncementIsBounded: of very many backups the newest are announced, as many as the destination accepts in one request. Once
// the container is stopped, all that have arrived are: they are deleted here.
func TestAnnouncementIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var all []string
		require.NoError(t, w.store.Update(func(tx *store.Tx) error {
			return store.Containers.Create(tx, "mc", v1.ContainerSpec{VolumeID: w.volume})
		}))
		for i := range 100 {
			id := intent.NewID()
			all = append(all, id)
			require.NoError(t, w.store.Update(func(tx *store.Tx) error {
				return store.Backups.Create(tx, id, v1.BackupSpec{VolumeID: w.volume, BackupRequest: v1.BackupRequest{
					Target: v1.TargetLocal, Ignore: []string{fmt.Sprint(i), strings.Repeat("x", 15<<10)}}})
			}))
			require.NoError(t, w.store.Update(func(tx *store.Tx) error {
				return store.Backups.SetStatus(tx, id, func(st *v1.BackupStatus) { st.State = v1.JobCompleted })
			}))
			time.Sleep(time.Second)
		}
		tx := w.store.Read()
		c, err := store.Containers.Get(tx, "mc")
		require.NoError(t, err)
		moved := v1.Transfer{Meta: v1.Meta{ID: intent.NewID()}, Spec: v1.TransferSpec{Container: "mc", UID: c.Meta.UID, VolumeID: w.volume,
			TransferRequest: v1.TransferRequest{Backups: true}}}
		announced := func(state v1.TransferState) (ids []string, size int) {
			moved.Status.State = state
			r, err := intent.AnnounceTransfer(tx, moved)
			require.NoError(t, err)
			for _, b := range r.Backups {
				ids = append(ids, b.BackupID)
			}
			text, err := json.Marshal(r)
			require.NoError(t, err)
			return ids, len(text)
		}
		ids, size := announced(v1.TransferCopying)
		require.LessOrEqual(t, size, int(v1.Defaults().Server.BodyLimit))
		require.Greater(t, size, int(v1.Defaults().Server.BodyLimit)*9/10)
		slices.Reverse(ids)
		require.Equal(t, all[len(all)-len(ids):], ids)

		moved.Status.Backups = all
		ids, _ = announced(v1.TransferFinishing)
		require.ElementsMatch(t, all, ids)
	})
}
