package transfer

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/controller"
	"berth/store"
)

// images answers for every arrival.
type images struct {
	present      bool
	refused, err error
	asked        int
	forgotten    []string
}

func (i *images) Pull(context.Context, string, v1.ContainerSpec) (present bool, refused, err error) {
	i.asked++
	return i.present, i.refused, i.err
}

func (i *images) Forget(arrival string) { i.forgotten = append(i.forgotten, arrival) }

func (i *images) Source(ctx context.Context, _ func(string)) error {
	<-ctx.Done()
	return nil
}

// TestImageOfArrival: an image is asked for until it is there or can never be, and not after the arrival has ended,
// whose record goes later: not when the clock jumps, as the source may ask for its answer.
func TestImageOfArrival(t *testing.T) {
	synctest.Test(t, testImageOfArrival)
}

func testImageOfArrival(t *testing.T) {
	ahead := time.Duration(0)
	s, err := store.Open("", store.Options{Now: func() time.Time { return time.Now().Add(ahead) }})
	require.NoError(t, err)
	defer s.Close()
	asked := &images{}
	r := &arrivals{Options{Store: s, Images: asked}}
	reconcile := func() (controller.Result, error) { return r.Reconcile(t.Context(), "a") }
	status := func() v1.ArrivalStatus {
		a, err := store.Arrivals.Get(s.Read(), "a")
		require.NoError(t, err)
		return a.Status
	}
	anew := func(spec v1.ArrivalSpec) {
		require.NoError(t, s.Update(func(tx *store.Tx) error {
			_ = store.Arrivals.Purge(tx, "a")
			return store.Arrivals.Create(tx, "a", spec)
		}))
	}
	anew(v1.ArrivalSpec{})
	result, err := reconcile()
	require.NoError(t, err)
	require.True(t, result.Waiting)
	asked.err = errors.New("the registry is away")
	_, err = reconcile()
	require.ErrorIs(t, err, asked.err)
	require.Zero(t, status())
	asked.err, asked.present = nil, true
	for range 2 {
		_, err = reconcile()
		require.NoError(t, err)
	}
	require.True(t, status().ImagePresent)
	require.Equal(t, 3, asked.asked)

	anew(v1.ArrivalSpec{})
	asked.present, asked.refused = false, errors.New("no such image")
	_, err = reconcile()
	require.NoError(t, err)
	require.Equal(t, v1.ArrivalStatus{Refused: "the image is not to be had: no such image"}, status())

	anew(v1.ArrivalSpec{Ended: v1.ArrivalCancelled, EndedAt: time.Now()})
	result, err = reconcile()
	require.NoError(t, err)
	require.Equal(t, controller.Result{RequeueAfter: v1.ArrivalRetention}, result)
	ahead = 2 * v1.ArrivalRetention
	result, err = reconcile()
	require.NoError(t, err)
	require.Equal(t, controller.Result{RequeueAfter: v1.ArrivalRetention}, result)
	ahead = 0
	time.Sleep(v1.ArrivalRetention)
	_, err = reconcile()
	require.NoError(t, err)
	_, err = store.Arrivals.Get(s.Read(), "a")
	require.ErrorIs(t, err, store.ErrNotFound)
	require.Equal(t, []string{"a", "a", "a"}, asked.forgotten)
	require.Equal(t, 4, asked.asked)
}
