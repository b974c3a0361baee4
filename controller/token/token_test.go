package token

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	v1 "berth/api/v1"
	"berth/controller"
	"berth/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const first, second = v1.Secret("berth_1"), v1.Secret("berth_2")

// settings is a configuration whose token a test can replace.
type settings struct {
	token v1.Secret
	next  chan struct{}
	ahead atomic.Int64 // by which the host's clock is ahead, a time.Duration
}

func newSettings() *settings { return &settings{token: first, next: make(chan struct{})} }

func (s *settings) now() time.Time { return time.Now().Add(time.Duration(s.ahead.Load())) }

func (s *settings) Current() v1.Config {
	return v1.Config{Authorization: v1.AuthorizationConfig{Token: s.token}}
}

func (s *settings) Changed() <-chan struct{} { return s.next }

// rotate replaces the token while the controller waits.
func (s *settings) rotate(token v1.Secret) {
	synctest.Wait()
	last := s.next
	s.token, s.next = token, make(chan struct{})
	close(last)
	synctest.Wait()
}

// mint stores a token that lives for ttl.
func mint(t *testing.T, s *store.Store, id string, ttl time.Duration) {
	t.Helper()
	require.NoError(t, s.Update(func(tx *store.Tx) error {
		return store.Tokens.Create(tx, id, v1.TokenSpec{Hash: id, Issuer: first.Fingerprint(), ExpiresAt: tx.Now().Add(ttl)})
	}))
}

func ids(t *testing.T, s *store.Store) (list []string) {
	t.Helper()
	list = store.Tokens.IDs(s.Read())
	return list
}

// life runs the controller in a bubble of synctest.
func life(t *testing.T, during func(s *store.Store, inForce *settings)) {
	synctest.Test(t, func(t *testing.T) {
		inForce := newSettings()
		s, err := store.Open("", store.Options{Now: inForce.now})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			New(s, inForce, slog.New(slog.DiscardHandler), controller.NewMetrics(prometheus.NewRegistry())).Run(ctx)
		}()
		during(s, inForce)
		cancel()
		<-done
		require.NoError(t, s.Close())
	})
}

// pass sleeps in the bubble.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func TestExpiredTokensAreRemoved(t *testing.T) {
	life(t, func(s *store.Store, _ *settings) {
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

// TestTokensOutliveAJumpOfTheClock: they are valid again when the clock is corrected.
func TestTokensOutliveAJumpOfTheClock(t *testing.T) {
	life(t, func(s *store.Store, host *settings) {
		mint(t, s, "a", 48*time.Hour)
		pass(time.Minute)
		host.ahead.Store(int64(365 * 24 * time.Hour))
		pass(3 * time.Hour)
		require.Equal(t, []string{"a"}, ids(t, s))
		host.ahead.Store(0)
		pass(3 * time.Hour)
		require.Equal(t, []string{"a"}, ids(t, s))
		pass(43 * time.Hour)
		require.Empty(t, ids(t, s))
	})
}

func TestNextReconcileIsAtNextExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := store.Open("", store.Options{})
		require.NoError(t, err)
		defer s.Close()
		r := &reconciler{store: s, settings: newSettings(), log: slog.New(slog.DiscardHandler)}
		for _, row := range []struct{ ttl, after time.Duration }{
			{0, time.Minute}, {time.Hour, time.Minute}, {10 * time.Second, 10 * time.Second}, {time.Millisecond, time.Second},
		} {
			mint(t, s, fmt.Sprint(row.ttl), row.ttl)
			got, err := r.Reconcile(t.Context(), key)
			require.NoError(t, err)
			require.Equal(t, row.after, got.RequeueAfter)
		}
	})
}

func TestTokensAreRemovedInChunks(t *testing.T) {
	life(t, func(s *store.Store, _ *settings) {
		for n := range 5 {
			require.NoError(t, s.Update(func(tx *store.Tx) error {
				for i := range 300 {
					spec := v1.TokenSpec{Issuer: first.Fingerprint(), ExpiresAt: tx.Now().Add(time.Second)}
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

func TestRenewedTokenIsNotRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := store.Open("", store.Options{})
		require.NoError(t, err)
		defer s.Close()
		mint(t, s, "renewed", time.Hour)
		require.NoError(t, s.Update(func(tx *store.Tx) error {
			r := &reconciler{settings: newSettings()}
			return r.purge(tx, []string{"renewed", "removed meanwhile"}, tx.Now())
		}))
		require.Equal(t, []string{"renewed"}, ids(t, s))
	})
}

func TestReplacedTokenRemovesDescendants(t *testing.T) {
	life(t, func(s *store.Store, inForce *settings) {
		mint(t, s, "old", time.Hour)
		inForce.rotate(second)
		require.Empty(t, ids(t, s))
		inForce.rotate(first)
		require.Empty(t, ids(t, s))
	})
}

func TestRevokedTokenRemovesChildren(t *testing.T) {
	life(t, func(s *store.Store, _ *settings) {
		require.NoError(t, s.Update(func(tx *store.Tx) error {
			for _, of := range [][2]string{{"root", ""}, {"z", "root"}, {"a", "z"}, {"b", "a"}, {"other", ""}} {
				spec := v1.TokenSpec{Issuer: first.Fingerprint(), Parent: of[1], ExpiresAt: tx.Now().Add(time.Hour)}
				if err := store.Tokens.Create(tx, of[0], spec); err != nil {
					return err
				}
			}
			return nil
		}))
		pass(time.Minute)
		require.Len(t, ids(t, s), 5)
		require.NoError(t, s.Update(func(tx *store.Tx) error { return store.Tokens.Purge(tx, "root") }))
		pass(time.Minute)
		require.Equal(t, []string{"other"}, ids(t, s))
	})
}
