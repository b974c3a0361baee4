package volume

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"berth/runtime"
)

func TestConfigTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := &configTurns{}
		first, second := all.of("a"), all.of("b")
		require.NoError(t, first.begin(smallConfig+1))
		require.NoError(t, first.begin(smallConfig+1), "a turn is for all files of a start")
		require.NoError(t, second.begin(smallConfig), "a small file does not wait")
		require.ErrorIs(t, second.begin(smallConfig+1), runtime.ErrConfigBusy)
		second.end()
		require.ErrorIs(t, second.begin(smallConfig+1), runtime.ErrConfigBusy, "only its holder ends a turn")
		first.end()
		require.ErrorIs(t, all.of("a").begin(smallConfig+1), runtime.ErrConfigBusy, "b waits")
		require.NoError(t, second.begin(smallConfig+1))
		second.end()
		require.NoError(t, all.of("a").begin(smallConfig+1))
	})
}

// TestConfigTurnsAreFair: fifteen volumes start over and over, each as soon as its turn has
// ended, and ask more often than another one, whose start takes its turn after one of each.
func TestConfigTurnsAreFair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := &configTurns{}
		others := func(from int, n *int) *turn {
			for i := range 15 {
				if one := all.of(fmt.Sprint((from + i) % 15)); one.begin(smallConfig+1) == nil {
					*n++
					return one
				}
			}
			return nil
		}
		before := 0
		running := others(0, &before)
		others(0, &before)
		own, before := all.of("own"), 0
		for round := 0; own.begin(smallConfig+1) != nil; round++ {
			require.Less(t, round, 16)
			time.Sleep(time.Second)
			running.end()
			running = others(round, &before)
		}
		require.LessOrEqual(t, before, 15)
	})
}

// TestConfigTurnOfAbsentVolume: a volume that asks no more delays the others for
// placeAhead, and its place stays for a minute.
func TestConfigTurnOfAbsentVolume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := &configTurns{}
		running, absent, next := all.of("a"), all.of("b"), all.of("c")
		require.NoError(t, running.begin(smallConfig+1))
		require.Error(t, absent.begin(smallConfig+1))
		running.end()
		require.Error(t, next.begin(smallConfig+1))
		time.Sleep(placeAhead)
		require.NoError(t, next.begin(smallConfig+1))
		require.Error(t, absent.begin(smallConfig+1))
		require.Error(t, all.of("d").begin(smallConfig+1))
		next.end()
		require.Error(t, all.of("d").begin(smallConfig+1))
		require.NoError(t, absent.begin(smallConfig+1))
		absent.end()
		time.Sleep(placeKept + 1)
		require.NoError(t, all.of("e").begin(smallConfig+1))
		require.Empty(t, all.places)
	})
}
