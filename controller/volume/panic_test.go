package volume_test

import (
	"bytes"
	"context"
	"log/slog"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/controller/volume"
	"berth/store"
)

// broken panics in the walk of the volume a.
type broken struct{ *usages }

func (b broken) Scan(ctx context.Context, id string) (v1.Usage, error) {
	used, err := b.usages.Scan(ctx, id)
	if id == "a" {
		panic("broken tree")
	}
	return used, err
}

// TestScanPanics: a walk that panics keeps no other volume from being measured.
func TestScanPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := store.Open("", store.Options{})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		for _, id := range []string{"a", "b"} {
			require.NoError(t, s.Update(func(tx *store.Tx) error { return store.Volumes.Create(tx, id, v1.VolumeSpec{}) }))
			require.NoError(t, s.Update(func(tx *store.Tx) error {
				return store.Volumes.SetStatus(tx, id, func(s *v1.VolumeStatus) { s.Created = true })
			}))
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var log bytes.Buffer
		u := &usages{disk: &disk{}}
		scanner := &volume.Scanner{Store: s, Directories: broken{u}, Log: slog.New(slog.NewTextHandler(&log, nil))}
		require.NoError(t, scanner.Source()(ctx, func(id string) {
			if id == "b" {
				cancel()
			}
		}))
		require.Equal(t, []string{"a", "b"}, u.walked())
		require.Contains(t, log.String(), "panic_test.go", "the stack")
	})
}
