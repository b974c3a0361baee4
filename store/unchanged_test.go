package store

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
)

func TestUnchanged(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir, Options{})
	require.NoError(t, err)
	for _, change := range []func(tx *Tx) error{
		func(tx *Tx) error { return Volumes.Create(tx, "v", v1.VolumeSpec{}) },
		func(tx *Tx) error { return Volumes.SetStatus(tx, "v", func(s *v1.VolumeStatus) { s.Size++ }) },
		func(tx *Tx) error { return BeginRestore(tx, "r", v1.RestoreSpec{VolumeID: "v"}) },
		func(tx *Tx) error { return EndRestore(tx, "r", "v") },
		func(tx *Tx) error { return Volumes.Purge(tx, "v") },
	} {
		since := s.Revision()
		require.True(t, Unchanged(Volumes, s, "v", since))
		require.NoError(t, s.Update(change))
		require.False(t, Unchanged(Volumes, s, "v", since))
		require.True(t, Unchanged(Volumes, s, "v", s.Revision()))
		require.True(t, Unchanged(Volumes, s, "w", since), "another one")
		require.True(t, Unchanged(Containers, s, "v", since), "another kind")
	}
	rev := s.Revision()
	require.NoError(t, s.Close())
	s, err = Open(dir, Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	require.False(t, Unchanged(Volumes, s, "w", rev-1), "what changed before the store was opened is unknown")
	require.True(t, Unchanged(Volumes, s, "w", s.Revision()))
}

func TestLatestIsBounded(t *testing.T) {
	var s Store
	for rev := range uint64(2*maxLatest + 2) {
		s.latest.record([]Change{{Revision: rev + 1, Kind: "volume", ID: fmt.Sprint(rev + 1)}})
		require.LessOrEqual(t, len(s.latest.of), maxLatest)
	}
	require.False(t, Unchanged(Volumes, &s, "1", 1), "it is no longer known")
	newest := uint64(2*maxLatest + 2)
	require.True(t, Unchanged(Volumes, &s, "1", newest))
	require.True(t, Unchanged(Volumes, &s, fmt.Sprint(newest), newest))
	require.False(t, Unchanged(Volumes, &s, fmt.Sprint(newest), newest-1))
}
