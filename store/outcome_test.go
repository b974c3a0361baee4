package store

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
)

// TestOutcomesVanish: outcomes are counted by quota, and go with v1.OutcomeRetention.
func TestOutcomesVanish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := openIn(t, "")
		count := func(quota string) (n int) {
			require.NoError(t, s.View(func(tx *Tx) (err error) { n, err = Outcomes(tx, quota, 3); return err }))
			return n
		}
		finish := func(key string, final *Outcome) {
			r := NewRequest(s, alice(), v1.Audit{Action: "volume.create"})
			r.Outcome = &Outcome{Owner: "t", Quota: "q", Key: key, Status: 500}
			require.NoError(t, r.Update(func(*Tx) error { return nil }))
			require.NoError(t, r.Finish(200, final, false))
		}
		require.Zero(t, count("q"))
		kept := Outcome{Owner: "t", Quota: "q", Key: "k0", Status: 201, Body: []byte("{}")}
		finish("k0", &kept)
		finish("k1", &Outcome{Owner: "t", Quota: "q", Key: "k1", Status: 201})
		finish("dropped", nil)
		require.Equal(t, 2, count("q"))
		finish("k2", &Outcome{Owner: "t", Quota: "q", Key: "k2", Status: 201})
		finish("k3", &Outcome{Owner: "t", Quota: "q", Key: "k3", Status: 201})
		require.Equal(t, 3, count("q"), "at most")
		require.Zero(t, count("t"))
		find := func(key string) (o Outcome, err error) {
			err = s.View(func(tx *Tx) error { o, err = FindOutcome(tx, Outcome{Owner: "t", Quota: "q", Key: key}); return err })
			return o, err
		}
		o, err := find("k0")
		require.NoError(t, err)
		require.Equal(t, kept.of(v1.Audit{Action: "volume.create"}), o)
		_, err = find("dropped")
		require.ErrorIs(t, err, ErrNotFound)
		time.Sleep(v1.OutcomeRetention)
		_, err = find("k0")
		require.ErrorIs(t, err, ErrNotFound)
		require.Zero(t, count("q"))
	})
}

// TestOutcomeNamesItsObject: the entry of a repetition names what the first request did.
func TestOutcomeNamesItsObject(t *testing.T) {
	s := openIn(t, "")
	r := NewRequest(s, alice(), v1.Audit{Action: "volume.create"})
	r.Outcome = &Outcome{Owner: "t", Quota: "t", Key: "k", Status: 409}
	require.NoError(t, r.Update(func(tx *Tx) error { return Volumes.Create(tx, "v", v1.VolumeSpec{}) }))
	final := *r.Outcome
	final.Status = 201
	require.NoError(t, r.Finish(201, &final, false))
	require.NoError(t, s.View(func(tx *Tx) error {
		o, err := FindOutcome(tx, Outcome{Owner: "t", Quota: "t", Key: "k"})
		a := v1.Audit{Action: "volume.create", Path: "x"}
		o.Describe(&a)
		require.Equal(t, v1.Audit{Action: "volume.create", Object: "v", Volume: "v"}, a)
		return err
	}))
	a := v1.Audit{Object: "mc", Container: "mc"}
	Outcome{}.Describe(&a)
	require.Equal(t, v1.Audit{Object: "mc", Container: "mc"}, a, "an outcome of an older berth names none")
}
