package fieldtest

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
)

type inner struct {
	X int    `json:"x,omitempty"`
	Y string `json:"y"`
}

type outer struct {
	A    string `json:"a"`
	B    inner  `json:"b"`
	C    []inner
	D    map[string]string
	E, F bool
}

func TestPaths(t *testing.T) {
	require.Equal(t, []string{"a", "b.x", "b.y", "C.x", "C.y", "D", "E", "F"}, Paths(reflect.TypeFor[outer]()))
}

func TestFullHasPointers(t *testing.T) {
	full := Full[struct {
		A *bool
		B *int
	}]()
	require.False(t, *full.A)
	require.NotZero(t, *full.B)
}

func TestChange(t *testing.T) {
	full := Full[outer]()
	for _, path := range Paths(reflect.TypeFor[outer]()) {
		changed := Full[outer]()
		Change(&changed, path)
		require.NotEqual(t, full, changed, path)
		require.Len(t, changed.D, 1)
	}
}

func TestUnused(t *testing.T) {
	use := func(o outer) any { return []any{o.A, o.B.Y, o.C[0].X, len(o.D), o.F} }
	require.Equal(t, []string{"C.y", "E", "b.x"}, Unused(use))
}
