package auth

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
)

// limitedTo returns a principal that may access one container.
func limitedTo(id string) Principal {
	return Principal{TokenID: "t", Bound: []v1.ContainerRef{{ID: id, UID: "u"}}, present: []string{id}}
}

func TestStartLimiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewStartLimiter()
		for range startBurst {
			require.NoError(t, l.Take(limitedTo("mc"), "mc"))
		}
		var refused *v1.RetryError
		for range 3 { // a refusal does not put off the next start
			require.ErrorAs(t, l.Take(limitedTo("mc"), "mc"), &refused)
			require.Equal(t, startGap, refused.After)
		}
		require.ErrorIs(t, refused, &v1.Error{Code: v1.TooManyStarts})
		other := limitedTo("mc")
		other.TokenID = "another one"
		require.Error(t, l.Take(other, "mc"), "the tokens of a container are counted together")

		require.NoError(t, l.Take(limitedTo("lobby"), "lobby"), "another container")
		require.NoError(t, l.Take(limitedTo("lobby"), "mc"), "it is refused as not found")
		require.NoError(t, l.Take(administrator(true, ""), "mc"))
		require.NoError(t, l.Take(Principal{TokenID: "t"}, "mc"), "a token for all containers")

		time.Sleep(startGap)
		require.NoError(t, l.Take(limitedTo("mc"), "mc"))
		require.Error(t, l.Take(limitedTo("mc"), "mc"))
	})
}

func TestStartLimiterIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewStartLimiter()
		take := func(id string) error { return l.Take(limitedTo(id), id) }
		for i := range startKeys {
			require.NoError(t, take(fmt.Sprint("c", i)))
		}
		failures := 0
		for i := range startBurst + 1 {
			if errors.Is(take(fmt.Sprint("d", i)), &v1.Error{Code: v1.TooManyStarts}) {
				failures++
			}
		}
		require.Equal(t, 1, failures, "containers above the bound are counted as one")
		require.Len(t, l.by, startKeys+1)
		time.Sleep(startGap)
		require.NoError(t, take("d0"))
		require.LessOrEqual(t, len(l.by), 2, "those that count nothing are forgotten")
	})
}
