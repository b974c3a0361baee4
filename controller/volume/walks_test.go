package volume

import (
	"testing"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
)

func TestWalksForgetRemovedVolumes(t *testing.T) {
	w := newWalks()
	for _, id := range []string{"a", "b", "c"} {
		w.record(id, v1.Usage{})
		w.record(id, v1.Usage{Bytes: 1})
	}
	w.keep([]string{"a", "c", "new"})
	require.Len(t, w.used, 3, "not more than there are volumes")
	w.keep([]string{"c", "new"})
	require.Equal(t, map[string]v1.Usage{"c": {Bytes: 1}}, w.used)
	require.Equal(t, map[string]bool{"c": true}, w.changed)
}
