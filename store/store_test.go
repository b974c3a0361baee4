package store

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
)

func openIn(t testing.TB, dir string) *Store {
	t.Helper()
	s, err := Open(dir, Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func create(s *Store, id string) error {
	return s.Update(func(tx *Tx) error {
		return Containers.Create(tx, id, v1.ContainerSpec{Image: "image:" + id})
	})
}

func TestGroupCommitUnderManyWriters(t *testing.T) {
	s := openIn(t, t.TempDir())
	const writers, each = 64, 4
	broken := errors.New("broken")
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				id := fmt.Sprintf("w%d-%d", w, i)
				if err := create(s, id); err != nil {
					t.Error(err)
				}
				err := s.Update(func(tx *Tx) error {
					if err := Containers.Create(tx, "lost-"+id, v1.ContainerSpec{}); err != nil {
						return err
					}
					return broken
				})
				if !errors.Is(err, broken) {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	require.EqualValues(t, writers*each, s.Revision())
	tx := s.Read()
	list := Containers.List(tx)
	require.Len(t, list, writers*each)
	require.Equal(t, s.Revision(), tx.Revision())
	seen := map[uint64]bool{}
	for _, o := range list {
		require.Equal(t, "image:"+o.Meta.ID, o.Spec.Image)
		seen[o.Meta.Revision] = true
	}
	require.Len(t, seen, writers*each)
}

func TestReopen(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir, Options{})
	require.NoError(t, err)
	for i := range 10 {
		require.NoError(t, create(s, strconv.Itoa(i)))
	}
	id := s.ID()
	require.Len(t, id, 32)
	require.NoError(t, s.Close())
	require.ErrorIs(t, create(s, "late"), ErrClosed)
	require.Len(t, Containers.IDs(s.Read()), 10, "the last state")
	_, err = FindOutcome(s.Read(), Outcome{})
	require.ErrorIs(t, err, ErrClosed, "it is only on the disk")
	require.ErrorIs(t, s.Writable(), ErrClosed)

	s = openIn(t, dir)
	require.Equal(t, id, s.ID())
	require.EqualValues(t, 10, s.Revision())
	require.NoError(t, create(s, "more"))
	require.EqualValues(t, 11, s.Revision())
}

// TestViewOutlivesClose: a view that has begun reads on.
func TestViewOutlivesClose(t *testing.T) {
	s, err := Open("", Options{})
	require.NoError(t, err)
	require.NoError(t, create(s, "a"))
	tx := s.Read()
	require.NoError(t, s.Close())
	_, err = ReadEvents(tx, 0, 1)
	require.NoError(t, err, "there are none")
	_, err = Containers.Get(tx, "a")
	require.NoError(t, err)
	require.NoError(t, s.Close())
}

// TestViewIsConsistent: a view sees all changes of an update or none, also after later ones.
func TestViewIsConsistent(t *testing.T) {
	s := openIn(t, "")
	var all sync.WaitGroup
	all.Go(func() {
		for i := range 300 {
			id := strconv.Itoa(i)
			err := s.Update(func(tx *Tx) error {
				if i > 0 {
					if err := Volumes.Purge(tx, strconv.Itoa(i-1)); err != nil {
						return err
					}
				}
				return errors.Join(Containers.Create(tx, id, v1.ContainerSpec{VolumeID: id}), Volumes.Create(tx, id, v1.VolumeSpec{}))
			})
			if err != nil {
				t.Error(err)
			}
		}
	})
	for s.Revision() < 300 {
		tx := s.Read()
		for range 2 {
			require.EqualValues(t, tx.Revision(), len(Containers.IDs(tx)))
			require.Len(t, Volumes.IDs(tx), min(1, int(tx.Revision())))
			for _, id := range Volumes.IDs(tx) {
				require.Equal(t, []string{id}, Containers.IDsBy(tx, id))
			}
		}
	}
	all.Wait()
}

func TestKilledProcessLosesNoUpdate(t *testing.T) {
	dir := t.TempDir()
	acknowledged := map[string]bool{}
	rounds := 4
	if os.Getenv("BERTH_LONG") != "" {
		rounds = 200
	}
	for round := range rounds {
		cmd := child(t, "write", dir)
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		lines := bufio.NewReader(out)
		for range 50 + 170*(round%4) {
			id, err := lines.ReadString('\n')
			require.NoError(t, err)
			acknowledged[strings.TrimSpace(id)] = true
		}
		require.NoError(t, cmd.Process.Kill())
		rest, _ := io.ReadAll(lines)
		whole := rest[:strings.LastIndexByte(string(rest), '\n')+1]
		for id := range strings.FieldsSeq(string(whole)) {
			acknowledged[id] = true
		}
		_ = cmd.Wait() // "signal: killed"
		requireComplete(t, dir, acknowledged)
	}
	t.Log(len(acknowledged), "acknowledged updates,", rounds, "kills")
}

// requireComplete opens the store and checks that everything acknowledged is there,
// without gaps.
func requireComplete(t *testing.T, dir string, acknowledged map[string]bool) {
	s, err := Open(dir, Options{})
	require.NoError(t, err)
	{
		tx := s.Read()
		list := Containers.List(tx)
		require.Len(t, list, int(s.Revision()), "a revision for each create")
		seen := map[uint64]bool{}
		for _, o := range list {
			seen[o.Meta.Revision] = true
			delete(acknowledged, o.Meta.ID)
		}
		require.Len(t, seen, len(list))
		require.Empty(t, acknowledged, "acknowledged, but lost")
		for _, o := range list {
			acknowledged[o.Meta.ID] = true
		}
		oldest, newest := tx.EventBounds()
		require.EqualValues(t, 1, oldest)
		require.EqualValues(t, len(list), newest)
		events, err := ReadEvents(tx, 0, len(list)+1)
		require.Len(t, events, len(list))
		require.NoError(t, err)
	}
	require.NoError(t, s.Close())
}
