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
	o, err := intent.FindVolume(s.Read(), text)
	return o.Meta.ID, err
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
	claims := map[string]v1.VolumeClaim{"fast": {Claim: "c", SizeLimit: v1.GiB}, "slow": {Claim: "d"}}
	for text, spec := range map[string]v1.VolumeSpec{
		"storage: must be left out, or a key of kubernetes.claims in the configuration of the node": {Storage: "none"},
		"size_limit: must be at most 1073741824: kubernetes.claims.fast.size_limit":                 {Storage: "fast", SizeLimit: 1<<30 + 1},
		"size_limit: must not be negative":                                                          {SizeLimit: -1},
		"name: must be at most 128 printable characters":                                            {Name: strings.Repeat("ä", 129)},
		"labels.io.berth.store: must not begin with io.berth.":                                      {Labels: map[string]string{"io.berth.store": "x"}},
		"labels: must have names that are not empty and hold no NUL":                                {Labels: map[string]string{"": "x"}},
		"labels: must have at most 65536 bytes in all":                                              {Labels: map[string]string{"a": strings.Repeat("x", 40_000), "b": strings.Repeat("x", 25_535)}},
	} {
		var f v1.FieldErrors
		intent.CheckVolume(&f, &spec, claims)
		require.EqualError(t, f.Err(), text)
	}
	for _, name := range []string{"a\nb", "\x1b[31m", "\xff", "\u202e"} {
		var f v1.FieldErrors
		intent.CheckVolume(&f, &v1.VolumeSpec{Name: name}, nil)
		require.Error(t, f.Err(), "%q", name)
	}
	var none v1.FieldErrors
	intent.CheckVolume(&none, &v1.VolumeSpec{Name: strings.Repeat("ä", 128), Labels: map[string]string{"k": ""}}, nil)
	require.NoError(t, none.Err())
	for storage, limit := range map[string]int64{"fast": 1 << 30, "slow": 0} {
		spec := v1.VolumeSpec{Storage: storage}
		intent.CheckVolume(&none, &spec, claims)
		require.NoError(t, none.Err())
		require.Equal(t, limit, spec.SizeLimit, "that of its claim")
	}
}
