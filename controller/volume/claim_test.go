package volume_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/store"
)

// claims is Claims in memory.
type claims struct {
	mu      sync.Mutex
	sizes   map[string]int64 // by the volume's id
	classes map[string]string
	waits   string // why none is ready
	err     error  // of each call
	asked   int
}

func (c *claims) EnsureClaim(_ context.Context, id, class string, bytes int64) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked++
	if _, has := c.sizes[id]; !has && c.err == nil {
		c.sizes[id], c.classes[id] = bytes, class
	}
	return c.waits, c.err
}

func (c *claims) ResizeClaim(_ context.Context, id string, bytes int64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked++
	if c.err == nil {
		c.sizes[id] = max(c.sizes[id], bytes)
	}
	return c.err
}

func (c *claims) RemoveClaim(_ context.Context, id string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		delete(c.sizes, id)
	}
	return c.err
}

func (c *claims) set(change func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change()
}

func (c *claims) size() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sizes["v"]
}

// classed runs a test with a class for new volumes, whose claims wait.
func classed(t *testing.T, test func(w *world, c *claims)) {
	t.Helper()
	c := &claims{sizes: map[string]int64{}, classes: map[string]string{}, waits: "it is not bound"}
	liveWith(t, c, func(w *world) {
		w.disk.set(func() { w.disk.state["v"] = v1.ErrDirectoryMissing })
		test(w, c)
	})
}

// message returns the message of the volume after some time.
func (w *world) message() string {
	w.t.Helper()
	time.Sleep(2 * time.Minute)
	v, err := w.get()
	require.NoError(w.t, err)
	return v.Status.Message()
}

// TestVolumeWaitsForItsClaim: until it is bound and its class has made the directory, which berth never makes.
func TestVolumeWaitsForItsClaim(t *testing.T) {
	classed(t, func(w *world, c *claims) {
		w.create(0)
		require.Contains(t, w.message(), "it is not bound")
		require.Equal(t, v1.ReasonClaimPending, w.reason())
		c.set(func() {
			require.Equal(t, map[string]string{"v": "fast"}, c.classes)
			require.Equal(t, map[string]int64{"v": 10 << 30}, c.sizes, "that of a volume without a limit")
			require.Less(t, c.asked, 30, "a claim that waits for long is not asked for often")
			c.waits = ""
		})
		require.Contains(t, w.message(), "has not made the directory v")
		require.Zero(t, w.disk.made)
		w.disk.set(func() { w.disk.state["v"] = nil })
		require.Empty(t, w.message())
		require.Equal(t, "Ready", w.reason())

		// Later it is the directory alone that counts: another claim would be empty.
		c.set(func() { delete(c.sizes, "v"); c.asked = 0 })
		w.disk.set(func() { w.disk.state["v"] = v1.ErrDirectoryMissing })
		require.NotEmpty(t, w.message())
		require.Equal(t, v1.ReasonDirectoryMissing, w.reason())
		c.set(func() { require.Zero(t, c.asked) })
	})
}

// TestClaimIsRefused: each refusal is a message, and is tried again.
func TestClaimIsRefused(t *testing.T) {
	classed(t, func(w *world, c *claims) {
		w.disk.set(func() { delete(w.disk.state, "v") })
		c.set(func() { c.waits, c.err = "", errors.New("webhook is away") })
		w.create(1 << 30)
		require.Contains(t, w.message(), "webhook is away")
		c.set(func() { c.err = nil })
		require.Empty(t, w.message())
		require.EqualValues(t, 1<<30, c.size())

		limit := func(bytes int64) {
			w.update(func(tx *store.Tx) error {
				return store.Volumes.SetSpec(tx, "v", func(s *v1.VolumeSpec) error { s.SizeLimit = bytes; return nil })
			})
		}
		c.set(func() { c.err = errors.New("the class cannot expand") })
		limit(2 << 30)
		require.Contains(t, w.message(), "the class cannot expand")
		require.Equal(t, "Ready", w.reason(), "its files can be used")
		require.EqualValues(t, 2<<30, w.disk.Limit("v"), "berth's own limit holds")
		c.set(func() { c.err = nil })
		time.Sleep(5 * time.Minute)
		require.Empty(t, w.message())
		require.EqualValues(t, 2<<30, c.size())
		limit(1 << 20)
		require.Empty(t, w.message())
		require.EqualValues(t, 2<<30, c.size(), "no claim shrinks")
		require.EqualValues(t, 1<<20, w.disk.Limit("v"))
	})
}

// TestClaimIsRemovedWithItsVolume: also if berth ends, or the cluster is away, between the two.
func TestClaimIsRemovedWithItsVolume(t *testing.T) {
	classed(t, func(w *world, c *claims) {
		w.disk.set(func() { delete(w.disk.state, "v") })
		c.set(func() { c.waits = "" })
		w.create(1 << 30)
		require.Empty(t, w.message())
		c.set(func() { c.err = errors.New("away") })
		w.update(func(tx *store.Tx) error { return store.Volumes.Delete(tx, "v") })
		time.Sleep(time.Minute)
		require.NotEmpty(t, w.disk.removed())
		_, err := w.get()
		require.NoError(t, err, "the record leads to the claim")
		c.set(func() { c.err = nil })
		time.Sleep(5 * time.Minute)
		_, err = w.get()
		require.ErrorIs(t, err, store.ErrNotFound)
		require.Empty(t, c.sizes)
	})
}

// TestOldVolumesHaveNoClaim: nor those that name a storage.
func TestOldVolumesHaveNoClaim(t *testing.T) {
	c := &claims{sizes: map[string]int64{}, classes: map[string]string{}}
	liveWith(t, c, func(w *world) {
		w.update(func(tx *store.Tx) error {
			return errors.Join(store.Volumes.Create(tx, "v", v1.VolumeSpec{}),
				store.Volumes.SetStatus(tx, "v", func(s *v1.VolumeStatus) { s.Created = true }))
		})
		w.update(func(tx *store.Tx) error { return store.Volumes.Create(tx, "named", v1.VolumeSpec{Storage: "slow"}) })
		time.Sleep(2 * time.Minute)
		require.Empty(t, c.sizes)
		w.update(func(tx *store.Tx) error { return store.Volumes.Delete(tx, "v") })
		time.Sleep(time.Minute)
		require.NotEmpty(t, w.disk.removed())
	})
}
