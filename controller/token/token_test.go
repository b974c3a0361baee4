package token

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	v1 "berth/api/v1"
	"berth/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// mint stores a token that lives for ttl.
func mint(t *testing.T, s *store.Store, id string, ttl time.Duration) {
	t.Helper()
	require.NoError(t, s.Update(func(tx *store.Tx) error {
		return store.Tokens.Create(tx, id, v1.TokenSpec{Hash: id, ExpiresAt: tx.Now().Add(ttl)})
	}))
}

func ids(t *testing.T, s *store.Store) (list []string) {
	t.Helper()
	require.NoError(t, s.View(func(tx *store.Tx) error {
		list = store.Tokens.IDs(tx)
		return nil
	}))
	return list
}

// life runs the controller in a bubble of synctest.
func life(t *testing.T, during func(s *store.Store)) {
	synctest.Test(t, func(t *testing.T) {
		s, err := store.Open("", store.Options{})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); New(s, slog.New(slog.DiscardHandler), nil).Run(ctx) }()
		during(s)
		cancel()
		<-done
		require.NoError(t, s.Close())
	})
}

// pass lets time pass in the bubble.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func TestTokensGoWhenTheyExpire(t *testing.T) {
	life(t, func(s *store.Store) {
		mint(t, s, "a", 10*time.Second)
		mint(t, s, "b", 30*time.Second)
		mint(t, s, "c", time.Hour)
		pass(65 * time.Second)
		require.Equal(t, []string{"c"}, ids(t, s))
		pass(58 * time.Minute)
		require.Equal(t, []string{"c"}, ids(t, s))
		pass(time.Minute)
		require.Empty(t, ids(t, s))
	})
}

func TestTheNextLookIsAtTheNextExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := store.Open("", store.Options{})
		require.NoError(t, err)
		defer s.Close()
		r := &reconciler{store: s, log: slog.New(slog.DiscardHandler)}
		for _, row := range []struct{ ttl, after time.Duration }{
			{0, time.Minute}, {time.Hour, time.Minute}, {10 * time.Second, 10 * time.Second}, {time.Millisecond, time.Second},
		} {
			mint(t, s, fmt.Sprint(row.ttl), row.ttl)
			got, err := r.Reconcile(t.Context(), key)
			require.NoError(t, err)
			require.Equal(t, row.after, got.After)
		}
	})
}

func TestThousandsGoInChunks(t *testing.T) {
	life(t, func(s *store.Store) {
		for n := range 5 {
			require.NoError(t, s.Update(func(tx *store.Tx) error {
				for i := range 300 {
					spec := v1.TokenSpec{ExpiresAt: tx.Now().Add(time.Second)}
					if err := store.Tokens.Create(tx, fmt.Sprint(n, "-", i), spec); err != nil {
						return err
					}
				}
				return nil
			}))
		}
		mint(t, s, "stays", time.Hour)
		pass(2 * time.Minute)
		require.Equal(t, []string{"stays"}, ids(t, s))
	})
}

func TestATokenIsLookedAtAgainBeforeItGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := store.Open("", store.Options{})
		require.NoError(t, err)
		defer s.Close()
		mint(t, s, "renewed", time.Hour)
		require.NoError(t, s.Update(func(tx *store.Tx) error {
			n, err := purge(tx, []string{"renewed", "used up meanwhile"})
			require.Zero(t, n)
			return err
		}))
		require.Equal(t, []string{"renewed"}, ids(t, s))
	})
}
