package image

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/runtime"
	"berth/store"
)

// host has images by reference. Pull moves the tag to the next id.
type host struct {
	ids     map[string]string
	next    string
	used    map[string]bool // by id: a container exists
	removed []string
}

func (h *host) ImageID(_ context.Context, ref string) (string, error) { return h.ids[ref], nil }

func (h *host) Pull(_ context.Context, ref string, _ runtime.Auth, _ func(runtime.Progress)) error {
	h.ids[ref] = h.next
	return nil
}

// RemoveImage removes a tag, and the image with its last one, as Docker does.
func (h *host) RemoveImage(_ context.Context, id, ref string) error {
	if h.used[id] {
		return runtime.ErrImageInUse
	}
	tags := h.ids
	if tags[ref] == id {
		delete(tags, ref)
	}
	for _, other := range tags {
		if other == id {
			return nil
		}
	}
	h.removed = append(h.removed, id)
	return nil
}

// TestImages requires that images are removed that were pulled and are not named for the
// retention, the oldest first, and no others.
func TestImages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := store.Open("", store.Options{})
		require.NoError(t, err)
		defer s.Close()
		h := &host{ids: map[string]string{"others": "0"}, used: map[string]bool{}}
		var full error
		p := &Puller{Engine: h, Store: s, Space: func() error { return full }}
		pull := func(ref, id string) {
			h.next = id
			require.NoError(t, p.Pull(t.Context(), ref, runtime.Auth{}, nil))
		}
		keep := 24 * time.Hour
		r := &reconciler{s, h, func() time.Duration { return keep }, slog.New(slog.DiscardHandler)}
		reconcile := func(removed ...string) {
			t.Helper()
			h.removed = nil
			_, err := r.Reconcile(t.Context(), key)
			require.NoError(t, err)
			require.Equal(t, removed, h.removed)
		}
		name := func(id string, spec v1.ContainerSpec) {
			require.NoError(t, s.Update(func(tx *store.Tx) error { return store.Containers.Create(tx, id, spec) }))
		}
		pull("game", "1")
		pull("installer", "2")
		pull("others", "0") // it was there
		name("mc", v1.ContainerSpec{Image: "game", InstallImage: "installer", VolumeID: "v"})
		reconcile()
		time.Sleep(48 * time.Hour)
		reconcile()
		pull("game", "3") // its tag was moved
		reconcile()
		time.Sleep(time.Hour)
		require.NoError(t, s.Update(func(tx *store.Tx) error {
			return errors.Join(store.Containers.Delete(tx, "mc"), store.Containers.Purge(tx, "mc"))
		}))
		reconcile()
		time.Sleep(23 * time.Hour)
		h.used["1"] = true
		reconcile()
		h.used["1"] = false
		reconcile("1")
		name("other", v1.ContainerSpec{Image: "game", VolumeID: "v"})
		time.Sleep(time.Hour)
		reconcile("2")
		pull("first", "9")
		reconcile()
		time.Sleep(time.Hour)
		pull("second", "8")
		reconcile()
		time.Sleep(48 * time.Hour)
		reconcile("9", "8")
		pull("one", "7")
		pull("two", "7") // another name of it
		pull("two", "7")
		name("names-two", v1.ContainerSpec{Image: "two", VolumeID: "v"})
		reconcile()
		time.Sleep(48 * time.Hour)
		reconcile()
		require.NoError(t, s.Update(func(tx *store.Tx) error {
			return errors.Join(store.Containers.Delete(tx, "names-two"), store.Containers.Purge(tx, "names-two"))
		}))
		reconcile()
		time.Sleep(24 * time.Hour)
		reconcile("7")
		keep = 0
		time.Sleep(48 * time.Hour)
		reconcile()

		full = runtime.ErrNoSpace
		require.ErrorIs(t, p.Pull(t.Context(), "big", runtime.Auth{}, nil), runtime.ErrNoSpace)
		require.Empty(t, h.ids["big"])
	})
}
