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
	key         = "ended"     // the only key: one reconcile examines all tokens
	chunk       = 500         // tokens removed in one update
	minInterval = time.Second // between two reconciles
	maxInterval = time.Minute
	minRetry    = time.Second
)

// Settings provides the current configuration.
type Settings interface {
	Current() v1.Config
	// Changed returns a channel that is closed when Current has changed.
	Changed() <-chan struct{}
}

// New returns the controller that removes the invalid tokens of s: at the start,
// after each change of the configuration, when the next token expires, and at least
// once a minute.
func New(s *store.Store, settings Settings, log *slog.Logger, m *controller.Metrics) *controller.Loop {
	r := &reconciler{store: s, settings: settings, log: log}
	return &controller.Loop{
		Name:       "token",
		Reconciler: r,
		Signals:    []controller.Source{controller.Once(key), r.settingsChanged},
		Workers:    1,
		BackOff:    controller.BackOff{Initial: minRetry, Max: maxInterval},
		Log:        log,
		Metrics:    m,
	}
}

type reconciler struct {
	store    *store.Store
	settings Settings
	log      *slog.Logger
}

// settingsChanged is a source that names the key at each change of the configuration.
func (r *reconciler) settingsChanged(ctx context.Context, notify func(string)) error {
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

// Reconcile removes invalid tokens in chunks. It repeats until none is left, because
// removing a token invalidates the tokens that it minted.
func (r *reconciler) Reconcile(context.Context, string) (controller.Result, error) {
	for {
		now := r.store.AgeTime() // a token that has expired because the clock jumped is refused, but stays
		invalid, next, err := r.findInvalid(now)
		if err != nil || len(invalid) == 0 {
			return controller.Result{RequeueAfter: next}, err
		}
		for ids := range slices.Chunk(invalid, chunk) {
			err := r.store.Update(func(tx *store.Tx) error { return r.purge(tx, ids, now) })
			if err != nil {
				return controller.Result{}, err
			}
		}
		r.log.Debug("removed expired or revoked tokens", "count", len(invalid))
	}
}

// findInvalid returns the ids of the tokens to remove, and the time until the next
// token expires.
func (r *reconciler) findInvalid(now time.Time) (invalid []string, next time.Duration, err error) {
	next = maxInterval
	issuer := r.issuer()
	tx := r.store.Read()
	for _, t := range store.Tokens.List(tx) {
		remove, err := isInvalid(tx, t, now, issuer)
		if err != nil {
			return invalid, max(next, minInterval), err
		}
		if remove {
			invalid = append(invalid, t.Meta.ID)
			continue
		}
		next = min(next, t.Spec.ExpiresAt.Sub(now))
	}
	return invalid, max(next, minInterval), nil
}

func (r *reconciler) issuer() string {
	return r.settings.Current().Authorization.Token.Fingerprint()
}

// purge removes the tokens with these ids that are still invalid.
func (r *reconciler) purge(tx *store.Tx, ids []string, now time.Time) error {
	issuer := r.issuer()
	for _, id := range ids {
		t, err := store.Tokens.Get(tx, id)
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		remove := false
		if err == nil {
			remove, err = isInvalid(tx, t, now, issuer)
		}
		if err == nil && remove {
			err = store.Tokens.Purge(tx, id)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// isInvalid reports whether a token was revoked, has expired, descends from a configured
// token that is no longer configured, or was minted by a token that no longer exists.
func isInvalid(tx *store.Tx, t v1.Token, now time.Time, issuer string) (bool, error) {
	if t.Meta.Deleted || !now.Before(t.Spec.ExpiresAt) || t.Spec.Issuer != issuer {
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
