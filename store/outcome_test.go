package store

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
)

// TestOutcomesVanish: outcomes go with v1.OutcomeRetention.
func TestOutcomesVanish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := openIn(t, "")
		finish := func(key string, final *Outcome) {
			r := NewRequest(s, alice(), v1.Audit{Action: "volume.create"})
			r.Outcome = &Outcome{TokenID: "t", Quota: "q", Key: key, Status: 500}
			require.NoError(t, r.Update(func(*Tx) error { return nil }))
			require.NoError(t, r.Finish(200, final))
		}
		kept := Outcome{TokenID: "t", Quota: "q", Key: "k0", Status: 201, Body: []byte("{}")}
		finish("k0", &kept)
		finish("dropped", nil)
		find := func(key string) (Outcome, error) {
			return FindOutcome(s.Read(), Outcome{TokenID: "t", Quota: "q", Key: key})
		}
		o, err := find("k0")
		require.NoError(t, err)
		require.Equal(t, kept.of(v1.Audit{Action: "volume.create"}), o)
		_, err = find("dropped")
		require.ErrorIs(t, err, ErrNotFound)
		time.Sleep(v1.OutcomeRetention)
		_, err = find("k0")
		require.ErrorIs(t, err, ErrNotFound)
	})
}

// TestOutcomeNamesItsObject: the entry of a repetition names what the first request did.
func TestOutcomeNamesItsObject(t *testing.T) {
	s := openIn(t, "")
	r := NewRequest(s, alice(), v1.Audit{Action: "volume.create"})
	r.Outcome = &Outcome{TokenID: "t", Quota: "t", Key: "k", Status: 409}
	require.NoError(t, r.Update(func(tx *Tx) error { return Volumes.Create(tx, "v", v1.VolumeSpec{}) }))
	final := *r.Outcome
	final.Status = 201
	require.NoError(t, r.Finish(201, &final))
	{
		o, err := FindOutcome(s.Read(), Outcome{TokenID: "t", Quota: "t", Key: "k"})
		a := v1.Audit{Action: "volume.create", Path: "x"}
		o.Describe(&a)
		require.Equal(t, v1.Audit{Action: "volume.create", Object: "v", Volume: "v"}, a)
		require.NoError(t, err)
	}
	a := v1.Audit{Object: "mc", Container: "mc"}
	Outcome{}.Describe(&a)
	require.Equal(t, v1.Audit{Object: "mc", Container: "mc"}, a, "an outcome of an older berth names none")
}
