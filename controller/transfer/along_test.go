package transfer

import (
	"testing"

	"github.com/stretchr/testify/require"

	"berth/api/intent"
	v1 "berth/api/v1"
	"berth/store"
)

// TestSchedulesAndPolicyGoAlong: the destination has the schedules of the container and the backup policy of its volume as they were
// when the container was stopped, and none of them before; the source has no schedules afterwards.
func TestSchedulesAndPolicyGoAlong(t *testing.T) {
	live(t, func(w *world) {
		put := func(name, cron string) error {
			spec := v1.ScheduleSpec{Cron: cron, Timezone: "Europe/Berlin", Steps: []v1.ScheduleStep{{Power: "restart"}}}
			var f v1.FieldErrors
			intent.CheckSchedule(&f, intent.SchedulePolicy{Backups: v1.Defaults().Backups}, "mc", name, &spec)
			require.NoError(t, f.Err())
			return intent.PutSchedule(w.here, spec)
		}
		require.NoError(t, put("nightly", "0 4 * * *"))
		require.NoError(t, put("gone", "0 5 * * *"))
		require.NoError(t, intent.PutPolicy(w.here, w.volume, v1.PolicySpec{Cron: "0 3 * * *", Keep: 7}))
		w.there.set("send", errCut)
		w.move(nil)
		w.await(v1.TransferCopying)
		require.NoError(t, put("nightly", "30 4 * * *"))
		require.NoError(t, intent.DeleteSchedule(w.here, "mc", "gone"))
		w.there.set("send", nil)
		w.await(v1.TransferStopping)
		require.ErrorIs(t, put("nightly", "45 4 * * *"), v1.ErrTransferring)
		there := w.there.store
		require.Empty(t, store.Schedules.IDs(there.Read()))
		w.exited()
		w.await(v1.TransferCompleted)
		require.Equal(t, []string{v1.ScheduleID("mc", "nightly")}, store.Schedules.IDs(there.Read()))
		s, err := store.Schedules.Get(there.Read(), v1.ScheduleID("mc", "nightly"))
		require.NoError(t, err)
		was, err := store.Schedules.Get(w.here.Read(), v1.ScheduleID("mc", "nightly"))
		if err == nil {
			require.True(t, was.Meta.Deleted, "it does not run here any more")
		}
		require.Equal(t, []string{"mc", "nightly", "30 4 * * *", "Europe/Berlin"}, []string{s.Spec.Container, s.Spec.Name, s.Spec.Cron, s.Spec.Timezone})
		require.Equal(t, []v1.ScheduleStep{{Power: "restart"}}, s.Spec.Steps)
		p, err := intent.FindPolicy(there.Read(), w.volume)
		require.NoError(t, err)
		p.Spec.RequestedBy = v1.Actor{}
		require.Equal(t, v1.PolicySpec{Cron: "0 3 * * *", Keep: 7}, p.Spec)
		_, err = store.Policies.Get(w.here.Read(), w.volume)
		require.Error(t, err, "nothing changes in a volume that has moved")
	})
}
