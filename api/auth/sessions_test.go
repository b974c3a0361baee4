package auth_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"berth/api/auth"
	v1 "berth/api/v1"
	"berth/store"
)

// fixed is a configuration that never changes.
type fixed struct{ v1.Config }

func (f fixed) Current() v1.Config { return f.Config }

func (f fixed) Changed() <-chan struct{} { return nil }

// TestExpiredSessionEnds: a session that begins while none was open, and Run sleeps, ends within
// a second of its token's expiry, even if others begin all the time.
func TestExpiredSessionEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := store.Open("", store.Options{})
		require.NoError(t, err)
		all := auth.NewSessions(s, fixed{v1.Config{Authorization: inForce(configured)}})
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { all.Run(ctx) })
		p := as(t, s, mint(t, s, auth.Grant{TTL: time.Hour + time.Minute}))
		time.Sleep(time.Hour)
		began, ended := time.Now(), make(chan error, 1)
		done, err := all.Begin(&auth.Session{Principal: p, End: func(reason error) { ended <- reason }})
		require.NoError(t, err)
		other := as(t, s, configured)
		for len(ended) == 0 && time.Since(began) < 5*time.Minute {
			time.Sleep(50 * time.Millisecond)
			end, err := all.Begin(&auth.Session{Principal: other, End: func(error) {}})
			require.NoError(t, err)
			end()
		}
		require.Len(t, ended, 1, "the session goes on")
		require.Equal(t, auth.ErrExpired, <-ended)
		require.InDelta(t, time.Minute, time.Since(began), float64(time.Second))
		done()
		cancel()
		running.Wait()
		require.NoError(t, s.Close())
	})
}
