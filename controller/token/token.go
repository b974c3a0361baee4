package token

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	v1 "berth/api/v1"
	"berth/controller"
	"berth/store"
)

const (
	key        = "expired"   // the one key: tokens are looked at together
	chunk      = 500         // tokens removed in one update
	longest    = time.Minute // between two looks
	shortest   = time.Second
	retryFirst = time.Second
)

// New is the controller that removes the expired tokens of s: when the next one
// expires, and each minute at the latest.
func New(s *store.Store, log *slog.Logger, m *controller.Metrics) *controller.Loop {
	return &controller.Loop{
		Name:       "token",
		Reconciler: &reconciler{store: s, log: log},
		Watch:      []controller.Source{controller.Once(key)},
		Workers:    1,
		BackOff:    controller.BackOff(retryFirst, longest),
		Log:        log,
		Metrics:    m,
	}
}

type reconciler struct {
	store *store.Store
	log   *slog.Logger
}

// Reconcile removes what has expired, a chunk at a time.
func (r *reconciler) Reconcile(context.Context, string) (controller.Result, error) {
	expired, next, err := r.look()
	if err != nil {
		return controller.Result{}, err
	}
	removed := 0
	for ids := range slices.Chunk(expired, chunk) {
		n := 0
		err := r.store.Update(func(tx *store.Tx) (err error) {
			n, err = purge(tx, ids)
			return err
		})
		if err != nil {
			return controller.Result{}, err
		}
		removed += n
	}
	if removed > 0 {
		r.log.Debug("expired tokens were removed", "count", removed)
	}
	return controller.Result{After: next}, nil
}

// look finds the expired tokens, and how long it is until the next one expires.
func (r *reconciler) look() (expired []string, next time.Duration, err error) {
	next = longest
	err = r.store.View(func(tx *store.Tx) error {
		tokens, err := store.Tokens.List(tx)
		for _, t := range tokens {
			if gone(t, tx.Now()) {
				expired = append(expired, t.Meta.ID)
				continue
			}
			next = min(next, t.Spec.ExpiresAt.Sub(tx.Now()))
		}
		return err
	})
	return expired, max(next, shortest), err
}

// purge removes those of ids that are still there and still expired.
func purge(tx *store.Tx, ids []string) (n int, err error) {
	for _, id := range ids {
		t, err := store.Tokens.Get(tx, id)
		if errors.Is(err, store.ErrNotFound) || err == nil && !gone(t, tx.Now()) {
			continue
		}
		if err != nil {
			return n, err
		}
		if err := store.Tokens.Purge(tx, id); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

func gone(t v1.Token, now time.Time) bool { return t.Meta.Deleted || !now.Before(t.Spec.ExpiresAt) }
