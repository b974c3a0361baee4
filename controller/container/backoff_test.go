package container_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/runtime"
	"berth/store"
)

// allowedTries is how often the backoff of world.run lets one key fail within d:
// 500 ms doubling, 20 % of jitter in the key's favour.
func allowedTries(d time.Duration) (tries int) {
	wait := 400 * time.Millisecond
	for at := time.Duration(0); at < d; at += wait << (tries - 1) {
		tries++
	}
	return tries
}

// TestWaitingForAPermitKeepsTheBackoff: a container that finds no free permit has
// neither failed nor succeeded.
func TestWaitingForAPermitKeepsTheBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const containers, d = 50, 55 * time.Second // less than a resync
		w := newWorld(t)
		w.engine.Fail(func(op string, _ runtime.Name) error {
			if op != "create" {
				return nil
			}
			time.Sleep(200 * time.Millisecond)
			return runtime.ErrUnavailable
		})
		defer w.run()()
		require.NoError(t, w.store.Update(func(tx *store.Tx) error {
			for i := range containers {
				spec := v1.ContainerSpec{Image: "i", VolumeID: fmt.Sprint("v", i), InstallScript: "true", InstallGeneration: 1, Power: v1.PowerOff}
				if err := store.Containers.Create(tx, fmt.Sprint("c", i), spec); err != nil {
					return err
				}
			}
			return nil
		}))
		time.Sleep(d)
		most := 0
		for i := range containers {
			n := w.count("create", runtime.Name{ID: fmt.Sprint("c", i), Role: runtime.Install})
			require.GreaterOrEqual(t, n, 4, "container %d waits in vain", i)
			most = max(most, n)
		}
		require.LessOrEqual(t, most, allowedTries(d), "creates of one container in %s", d)
	})
}

// TestAPulledImageThatIsMissingIsAFailure: the engine says that it has pulled
// the image, and then that it has none. Three creates at most belong to one pull.
func TestAPulledImageThatIsMissingIsAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const d = 55 * time.Second
		w := newWorld(t)
		w.refuse("create", installer, runtime.ErrImageNotFound)
		defer w.run()()
		w.create(nil)
		time.Sleep(d)
		require.LessOrEqual(t, w.count("create", installer), 3*allowedTries(d))
		require.Contains(t, w.want(v1.Installing).Status.Message, "tried again at")
	})
}
