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
	key        = "ended"     // the one key: tokens are looked at together
	chunk      = 500         // tokens removed in one update
	longest    = time.Minute // between two looks
	shortest   = time.Second
	retryFirst = time.Second
)

// Settings is the configuration in force.
type Settings interface {
	Current() v1.Config
	// Changed returns a channel that is closed when Current has changed.
	Changed() <-chan struct{}
}

// New returns the controller that removes the tokens of s that are no longer
// valid: at the start, when the configuration has changed, when the next one
// expires, and each minute at the latest.
func New(s *store.Store, settings Settings, log *slog.Logger, m *controller.Metrics) *controller.Loop {
	r := &reconciler{store: s, settings: settings, log: log}
	return &controller.Loop{
		Name:       "token",
		Reconciler: r,
		Watch:      []controller.Source{controller.Once(key), r.watchSettings},
		Workers:    1,
		BackOff:    controller.BackOff(retryFirst, longest),
		Log:        log,
		Metrics:    m,
	}
}

type reconciler struct {
	store    *store.Store
	settings Settings
	log      *slog.Logger
}

// watchSettings is a source that asks for a look at each change of the configuration.
func (r *reconciler) watchSettings(ctx context.Context, notify func(string)) error {
	for {
		changed := r.settings.Changed()
		notify(key)
		select {
		case <-changed:
		case <-ctx.Done():
			return nil
		}
	}
}

// Reconcile removes what is no longer valid, a chunk at a time, until nothing is
// left that was minted with what has just gone.
func (r *reconciler) Reconcile(context.Context, string) (controller.Result, error) {
	for {
		ended, next, err := r.look()
		if err != nil || len(ended) == 0 {
			return controller.Result{RequeueAfter: next}, err
		}
		for ids := range slices.Chunk(ended, chunk) {
			err := r.store.Update(func(tx *store.Tx) error { return r.purge(tx, ids) })
			if err != nil {
				return controller.Result{}, err
			}
		}
		r.log.Debug("tokens that are no longer valid were removed", "count", len(ended))
	}
}

// look finds the tokens to remove, and how long it is until the next one expires.
func (r *reconciler) look() (ended []string, next time.Duration, err error) {
	next = longest
	issuer := r.issuer()
	err = r.store.View(func(tx *store.Tx) error {
		tokens, err := store.Tokens.List(tx)
		for _, t := range tokens {
			over, err := gone(tx, t, issuer)
			if err != nil {
				return err
			}
			if over {
				ended = append(ended, t.Meta.ID)
				continue
			}
			next = min(next, t.Spec.ExpiresAt.Sub(tx.Now()))
		}
		return err
	})
	return ended, max(next, shortest), err
}

func (r *reconciler) issuer() string {
	return r.settings.Current().Authorization.Token.Fingerprint()
}

// purge removes those of ids that are still not valid.
func (r *reconciler) purge(tx *store.Tx, ids []string) error {
	issuer := r.issuer()
	for _, id := range ids {
		t, err := store.Tokens.Get(tx, id)
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		over := false
		if err == nil {
			over, err = gone(tx, t, issuer)
		}
		if err == nil && over {
			err = store.Tokens.Purge(tx, id)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// gone reports whether a token has expired, descends from a configured token
// that is not in force, or was minted with a token that is not there any more.
func gone(tx *store.Tx, t v1.Token, issuer string) (bool, error) {
	if t.Meta.Deleted || !tx.Now().Before(t.Spec.ExpiresAt) || t.Spec.Issuer != issuer {
		return true, nil
	}
	if t.Spec.Parent == "" {
		return false, nil
	}
	_, err := store.Tokens.Get(tx, t.Spec.Parent)
	if errors.Is(err, store.ErrNotFound) {
		return true, nil
	}
	return false, err
}
