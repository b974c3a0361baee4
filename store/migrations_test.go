package store

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
)

func version(t *testing.T, s *Store) (v uint64) {
	require.NoError(t, s.View(func(tx *Tx) (err error) {
		v, err = tx.number(schemaKey)
		return err
	}))
	return v
}

func TestMigrationsRunInOrderAndOnce(t *testing.T) {
	dir := t.TempDir()
	s, err := open(dir, Options{}, nil)
	require.NoError(t, err)
	require.EqualValues(t, 1, version(t, s))
	require.NoError(t, create(s, "a"))
	id := s.ID()
	require.NoError(t, s.Close())

	var ran []string
	cut := errors.New("interrupted")
	step := func(name string, result error) migration {
		return func(s *Store) error {
			ran = append(ran, name)
			return errors.Join(s.Update(func(tx *Tx) error {
				return Containers.SetSpec(tx, "a", func(c *v1.ContainerSpec) error { c.Image += name; return nil })
			}), result)
		}
	}
	_, err = open(dir, Options{}, []migration{step("2", nil), step("3", cut), step("4", nil)})
	require.ErrorIs(t, err, cut)
	require.ErrorContains(t, err, "migrate from version 2")
	s, err = open(dir, Options{}, []migration{step("2", nil), step("3", nil), step("4", nil), step("5", nil)})
	require.NoError(t, err)
	require.EqualValues(t, 5, version(t, s))
	require.Equal(t, id, s.ID())
	require.Equal(t, []string{"2", "3", "3", "4", "5"}, ran, "the interrupted one runs again")
	require.NoError(t, s.View(func(tx *Tx) error {
		o, err := Containers.Get(tx, "a")
		require.Equal(t, "image:a23345", o.Spec.Image)
		return err
	}))
	require.NoError(t, s.Close())

	_, err = Open(dir, Options{})
	require.ErrorIs(t, err, ErrNewer)
	require.ErrorContains(t, err, "start the newer one")
}

func TestNewStoreNeedsNoMigration(t *testing.T) {
	s, err := open(t.TempDir(), Options{}, []migration{func(*Store) error { return errors.New("must not run") }})
	require.NoError(t, err)
	require.EqualValues(t, 2, version(t, s))
	require.NoError(t, s.Close())
}

// oldPoolSpec is a pool spec as version 1 stored it.
const oldPoolSpec = `{"id":"tcp-10.0.0.1","generation":7,"revision":3,"created_at":"2026-01-02T03:04:05Z","updated_at":"2026-01-02T03:04:05Z"}
{"ip":"10.0.0.1","protocol":"tcp","ports":%s,"flagged":%s,"claims":{%s}}`

const oldContainerSpec = `{"id":%q,"generation":1,"revision":2,"created_at":"2026-01-02T03:04:05Z","updated_at":"2026-01-02T03:04:05Z"}
{"image":"busybox:1","volume_id":"v-%d","ports":[{"ip":"10.0.0.1","port":%d,"protocol":"tcp"}],"install":1,"power":"stopped"}`

const oldClaims = 2500

// versionOne returns the directory of a store of version 1: a pool with oldClaims claims, all but
// every fifth of them flagged, a port that is flagged and not claimed, and a
// container for every tenth claim, two to a volume.
func versionOne(t *testing.T) string {
	dir := t.TempDir()
	s, err := open(dir, Options{}, nil)
	require.NoError(t, err)
	var ports, flagged v1.PortSet
	claims := ""
	for i := range oldClaims {
		ports.Add(1 + i)
		if i%5 != 0 {
			flagged.Add(1 + i)
		}
		claims += fmt.Sprintf(`,"%d":"c-%d"`, 1+i, i)
	}
	ports.Add(60000)
	flagged.Add(60000)
	portBits, _ := ports.MarshalJSON()
	flagBits, _ := flagged.MarshalJSON()
	require.NoError(t, s.Update(func(tx *Tx) error {
		tx.recordChange(Change{Kind: "pool", ID: "tcp-10.0.0.1"})
		return tx.set("pool/tcp-10.0.0.1/spec", fmt.Appendf(nil, oldPoolSpec, portBits, flagBits, claims[1:]))
	}))
	require.NoError(t, s.Update(func(tx *Tx) error {
		for i := 0; i < oldClaims; i += 10 {
			id := fmt.Sprintf("c-%d", i)
			tx.recordChange(Change{Kind: "container", ID: id})
			if err := tx.set("container/"+id+"/spec", fmt.Appendf(nil, oldContainerSpec, id, i/20, 1+i)); err != nil {
				return err
			}
		}
		return nil
	}))
	require.NoError(t, s.Close())
	return dir
}

// requireMigrated checks that everything of versionOne is there.
func requireMigrated(t *testing.T, s *Store) {
	require.EqualValues(t, len(migrations())+1, version(t, s))
	require.NoError(t, s.View(func(tx *Tx) error {
		claims := maps.Collect(Claims(tx, "tcp-10.0.0.1", 0))
		require.Len(t, claims, oldClaims)
		for i := range oldClaims {
			require.Equal(t, v1.Claim{Container: fmt.Sprintf("c-%d", i), InUse: i%5 != 0}, claims[1+i])
		}
		pool, err := Pools.Get(tx, "tcp-10.0.0.1")
		require.NoError(t, err)
		require.Equal(t, oldClaims+1, pool.Spec.Ports.Len())
		require.Equal(t, []int{60000}, slices.Collect(pool.Spec.Flagged.All()))
		require.NoError(t, tx.read("pool/tcp-10.0.0.1/spec", func(b []byte) error {
			require.NotContains(t, string(b), "claims")
			return nil
		}))
		require.Equal(t, []string{"c-20", "c-30"}, Containers.IDsBy(tx, "v-1"))
		require.Len(t, Containers.IDs(tx), oldClaims/10)
		return nil
	}))
}

func TestClaimMigrationSurvivesKills(t *testing.T) {
	migrateWithKills(t, versionOne(t), 1, 4, requireMigrated)
}

// migrateWithKills migrates copies of a store from a version, each killed after one commit
// more, until one survives; it must take more than least commits. A kill leaves the updates
// that were committed before. check examines each after it was opened again.
func migrateWithKills(t *testing.T, fixture string, from uint64, least int, check func(*testing.T, *Store)) {
	t.Helper()
	errKilled := errors.New("killed")
	for survived := 0; ; survived++ {
		dir := t.TempDir()
		require.NoError(t, os.CopyFS(dir, os.DirFS(fixture)))
		s, err := open(dir, Options{}, migrations()[:from-1])
		require.NoError(t, err)
		commits := 0
		require.NoError(t, s.Update(func(*Tx) error {
			s.commit = func(commit func() error) error {
				if commits++; commits > survived {
					return errKilled
				}
				return commit()
			}
			return nil
		}))
		err = s.migrate(from, migrations())
		require.NoError(t, s.Close())
		if err == nil {
			require.Greater(t, survived, least, "it takes that many commits")
			return
		}
		require.ErrorIs(t, err, errKilled)
		s, err = Open(dir, Options{})
		require.NoError(t, err)
		check(t, s)
		rev := s.Revision()
		require.NoError(t, s.Close())
		s = openIn(t, dir)
		require.Equal(t, rev, s.Revision(), "it runs once")
	}
}

func TestStoreWithoutSchemaVersionIsRefused(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir, Options{})
	require.NoError(t, err)
	require.NoError(t, create(s, "a"))
	require.NoError(t, s.Update(func(tx *Tx) error { return tx.remove(schemaKey) }))
	require.NoError(t, s.Close())
	_, err = Open(dir, Options{})
	require.ErrorIs(t, err, ErrDamaged)
	require.ErrorContains(t, err, "move its directory away")
}
