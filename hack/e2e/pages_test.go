package e2e_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/hack/test/berthtest"
)

// TestPagesOverKills: a list that is read page by page continues after berth was
// killed, and has the volumes that were there all the time.
func TestPagesOverKills(t *testing.T) {
	t.Parallel()
	b := berthtest.Start(t, berthtest.Options{})
	var ids []string
	for range 5 {
		v, err := b.API.Volumes().Create(t.Context(), v1.VolumeSpec{Name: "world", Labels: map[string]string{"game": "chess"}})
		require.NoError(t, err)
		ids = append(ids, v.VolumeID)
	}
	slices.Sort(ids)
	b.Volume(t) // without the label
	var seen []string
	for next := ""; ; {
		var page struct {
			Volumes  []v1.VolumeView
			Continue string
		}
		b.Get(t, "/volumes?label=game=chess&limit=2"+next, &page)
		for _, v := range page.Volumes {
			require.Equal(t, "world", v.Name)
			seen = append(seen, v.VolumeID)
		}
		if page.Continue == "" {
			break
		}
		next = "&continue=" + page.Continue
		b.Kill9(t)
		b.Run(t)
		b.Ready(t)
	}
	require.Equal(t, ids, seen)
	name := "creative"
	v, err := b.API.Volumes().Change(t.Context(), ids[0], v1.VolumeChange{Name: &name})
	require.NoError(t, err)
	require.Equal(t, "creative", v.Name)
	require.Equal(t, map[string]string{"game": "chess"}, v.Labels)
}
