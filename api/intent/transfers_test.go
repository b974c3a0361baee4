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

// TestTransferRefused: a container cannot be moved while it is not installed, its volume is being restored or is another container's
// too, or it is being moved.
func TestTransferRefused(t *testing.T) {
	w := newWorld(t)
	w.create("mc")
	start := func() error { return intent.CreateTransfer(w.store, intent.NewID(), "mc", v1.TransferRequest{}) }
	refused := func(want error) {
		t.Helper()
		w.unchanged(func() { require.ErrorIs(t, start(), want) })
	}
	refused(&v1.Error{Code: v1.StillInstalling})
	w.installed("mc")
	require.NoError(t, w.store.Update(func(tx *store.Tx) error { return store.Reserve(tx, "a", w.volume) }))
	refused(v1.ErrVolumeRestoring)
	require.NoError(t, w.store.Update(func(tx *store.Tx) error { return store.EndRestore(tx, "a", w.volume) }))
	w.create("other")
	refused(&v1.Error{Code: v1.VolumeInUse})
	require.NoError(t, w.store.Update(func(tx *store.Tx) error { return store.Containers.Purge(tx, "other") }))
	require.NoError(t, start())
	refused(v1.ErrTransferring)
}

// TestIncoming: no more arrivals than transfers.incoming have not ended, and each of those is announced again.
func TestIncoming(t *testing.T) {
	w := newWorld(t)
	announce := func(arrival string) error {
		spec := w.spec()
		spec.InternalID, spec.VolumeID = "mc-"+arrival, arrival
		return intent.PutArrival(w.store, intent.ArrivalPolicy{Incoming: 1}, v1.ArrivalRequest{ArrivalID: arrival, Container: spec})
	}
	first, second := intent.NewID(), intent.NewID()
	require.NoError(t, announce(first))
	w.unchanged(func() { require.ErrorIs(t, announce(second), &v1.Error{Code: v1.TooManyArrivals}) })
	require.NoError(t, announce(first))
	require.NoError(t, intent.CancelArrival(w.store, first))
	require.NoError(t, announce(second))
}
