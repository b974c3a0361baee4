package edge

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMeasure(t *testing.T) {
	for raw, want := range map[string][2]int{
		`5`: {1, 0}, `[]`: {1, 1}, ` [ ] `: {1, 1}, `[1]`: {2, 1}, `{"a":1,"b":[1,{}]}`: {5, 3}, `["[{,",1]`: {3, 1}, `["\",[",1]`: {3, 1}, `[[[`: {3, 3}, `"`: {1, 0}, ``: {1, 0},
	} {
		values, depth := measure([]byte(raw))
		require.Equal(t, want, [2]int{values, depth}, raw)
	}
}
