package intent_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"berth/api/intent"
	v1 "berth/api/v1"
	"berth/store"
)

func find(t testing.TB, s *store.Store, text string) (id string, err error) {
	t.Helper()
	err = s.View(func(tx *store.Tx) error {
		o, err := intent.FindVolume(tx, text)
		id = o.Meta.ID
		return err
	})
	return id, err
}

func TestFindVolume(t *testing.T) {
	w := newWorld(t)
	for _, n := range []int{1, 2} {
		id := fmt.Sprintf("abcdef01-0000-4000-8000-00000000000%d", n)
		require.NoError(t, w.store.Update(func(tx *store.Tx) error {
			return store.Volumes.Create(tx, id, v1.VolumeSpec{})
		}))
		got, err := find(t, w.store, id)
		require.NoError(t, err)
		require.Equal(t, id, got)
	}
	_, err := find(t, w.store, "abcdef01")
	require.Equal(t, v1.ErrAmbiguousVolume, err)
	got, err := find(t, w.store, w.volume[:8])
	require.NoError(t, err)
	require.Equal(t, w.volume, got)
	for _, text := range []string{"", w.volume[:7], w.volume[:9], "zzzzzzzz", "../../..", "00000000-0000-0000-0000-000000000000"} {
		_, err := find(t, w.store, text)
		require.Equal(t, v1.ErrVolumeNotFound, err, text)
	}
	require.NoError(t, intent.DeleteVolume(w.store, "abcdef01-0000-4000-8000-000000000001"))
	got, err = find(t, w.store, "ABCDEF01")
	require.NoError(t, err, "the other one is on its way out")
	require.Equal(t, "abcdef01-0000-4000-8000-000000000002", got)
	_, err = find(t, w.store, "abcdef01-0000-4000-8000-000000000001")
	require.Equal(t, v1.ErrVolumeNotFound, err)
	require.Equal(t, v1.ErrVolumeNotFound, intent.DeleteVolume(w.store, "abcdef01-0000-4000-8000-000000000001"))
}

// BenchmarkFindVolume finds one of few and one of many volumes by the beginning of its id.
func BenchmarkFindVolume(b *testing.B) {
	for _, count := range []int{10, 5000} {
		b.Run(fmt.Sprint(count), func(b *testing.B) {
			w := newWorld(b)
			for range count - 1 {
				_, err := intent.CreateVolume(w.store, v1.VolumeSpec{})
				require.NoError(b, err)
			}
			b.ReportAllocs()
			for b.Loop() {
				got, err := find(b, w.store, w.volume[:8])
				require.NoError(b, err)
				require.Equal(b, w.volume, got)
			}
		})
	}
}

func TestCreateVolume(t *testing.T) {
	w := newWorld(t)
	require.Regexp(t, `^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`, w.volume)
	for text, spec := range map[string]v1.VolumeSpec{
		"size_limit: must not be negative":                           {SizeLimit: -1},
		"name: must be at most 128 printable characters":             {Name: strings.Repeat("ä", 129)},
		"labels.io.berth.store: must not begin with io.berth.":       {Labels: map[string]string{"io.berth.store": "x"}},
		"labels: must have names that are not empty and hold no NUL": {Labels: map[string]string{"": "x"}},
	} {
		var f v1.FieldErrors
		intent.CheckVolume(&f, &spec)
		require.EqualError(t, f.Err(), text)
	}
	for _, name := range []string{"a\nb", "\x1b[31m", "\xff", "\u202e"} {
		var f v1.FieldErrors
		intent.CheckVolume(&f, &v1.VolumeSpec{Name: name})
		require.Error(t, f.Err(), "%q", name)
	}
	var none v1.FieldErrors
	intent.CheckVolume(&none, &v1.VolumeSpec{Name: strings.Repeat("ä", 128), Labels: map[string]string{"k": ""}})
	require.NoError(t, none.Err())
}
