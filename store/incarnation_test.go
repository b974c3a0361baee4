package store

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
)

// idAndEpoch opens the store in dir and returns its id and epoch.
func idAndEpoch(t *testing.T, dir string) (id, epoch string) {
	t.Helper()
	s, err := Open(dir, Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	return s.ID(), s.Incarnations.Epoch()
}

func TestEpochSurvivesRestartsAndKills(t *testing.T) {
	dir := sample(t) // left by a kill, and copied
	id, epoch := idAndEpoch(t, dir)
	require.Contains(t, epoch, id)
	_, after := idAndEpoch(t, dir)
	require.Equal(t, epoch, after)

	cmd := child(t, "write", dir)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	_, err = out.Read(make([]byte, 1))
	require.NoError(t, err)
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait() // "signal: killed"
	_, after = idAndEpoch(t, dir)
	require.Equal(t, epoch, after)
}

func TestEpochChangesAfterARestore(t *testing.T) {
	dir, backup := filepath.Join(t.TempDir(), "store"), t.TempDir()
	id, epoch := idAndEpoch(t, dir)
	require.NoError(t, os.CopyFS(backup, os.DirFS(dir)))
	seen := map[string]bool{epoch: true}
	for range 2 { // the same backup twice
		s, err := Open(dir, Options{})
		require.NoError(t, err)
		require.NoError(t, create(s, "lost"))
		require.NoError(t, s.Close())
		require.NoError(t, os.RemoveAll(dir))
		require.NoError(t, os.CopyFS(dir, os.DirFS(backup)))
		require.NoError(t, os.Remove(filepath.Join(dir, "MARK")), "as upgrade.md says")
		same, restored := idAndEpoch(t, dir)
		require.Equal(t, id, same, "containers still belong to the store")
		require.False(t, seen[restored])
		seen[restored] = true
		_, after := idAndEpoch(t, dir)
		require.Equal(t, restored, after)
	}
}

func TestStoreRemembersItsIncarnations(t *testing.T) {
	s := openIn(t, t.TempDir())
	require.NoError(t, create(s, "a"))
	require.NoError(t, create(s, "b"))
	first := s.Incarnations.Incarnation()
	require.True(t, s.Incarnations.Remembers(first, 2))
	require.True(t, s.Incarnations.Remembers("", 2), "without the label: made by an older berth")
	require.False(t, s.Incarnations.Remembers("another", 1))
	epoch := s.Incarnations.Epoch()
	known, err := s.Incarnations.Witness(first, 2)
	require.NoError(t, err)
	require.True(t, known)
	require.Equal(t, epoch, s.Incarnations.Epoch())

	known, err = s.Incarnations.Witness(first, 5)
	require.NoError(t, err)
	require.False(t, known, "a store that was never there is an older copy")
	require.NotEqual(t, epoch, s.Incarnations.Epoch())
	epoch = s.Incarnations.Epoch()
	for _, id := range []string{"c", "d", "e", "f"} {
		require.NoError(t, create(s, id))
	}
	known, err = s.Incarnations.Witness(first, 5)
	require.NoError(t, err)
	require.False(t, known, "also after the store has reached that revision")
	require.Equal(t, epoch, s.Incarnations.Epoch(), "it begins no other incarnation")
	require.True(t, s.Incarnations.Remembers(s.Incarnations.Incarnation(), 5))
}

// TestWitnessesAtOnce: two resources that an older copy does not know begin one incarnation.
func TestWitnessesAtOnce(t *testing.T) {
	dir := t.TempDir()
	s := openIn(t, dir)
	first, before := s.Incarnations.Incarnation(), len(s.Incarnations.all())
	var calls sync.WaitGroup
	for range 8 {
		calls.Go(func() {
			_, err := s.Incarnations.Witness(first, 5)
			assert.NoError(t, err)
		})
	}
	calls.Wait()
	epoch := s.Incarnations.Epoch()
	require.Len(t, s.Incarnations.all(), before+1)
	require.NoError(t, s.Close())
	_, after := idAndEpoch(t, dir)
	require.Equal(t, epoch, after, "memory and disk have the same")
}

func TestTransitionsCarryTheEpoch(t *testing.T) {
	s := openIn(t, t.TempDir())
	require.NoError(t, s.Update(func(tx *Tx) error {
		require.Equal(t, s.Incarnations.Epoch(), tx.Emit(v1.Event{Container: "mc"}).Epoch)
		return Containers.Create(tx, "mc", v1.ContainerSpec{})
	}))
	list, err := ReadEvents(s.Read(), 0, 10)
	require.Equal(t, s.Incarnations.Epoch(), list[0].Epoch)
	require.NoError(t, err)
	for e, err := range s.Events(t.Context(), 0) {
		require.NoError(t, err)
		require.Equal(t, s.Incarnations.Epoch(), e.Epoch)
		break
	}
}
