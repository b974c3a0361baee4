package v1

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSize(t *testing.T) {
	for text, want := range map[string]Size{
		"0": 0, "17": 17, "17B": 17, "1KiB": 1024, "1MiB": MiB, "1.5GiB": 3 * GiB / 2, "2 TiB": 2 * TiB,
		"1kB": 1000, "1MB": 1e6, "10GB": 1e10, "512k": 512 * KiB, "3M": 3 * MiB,
	} {
		got, err := ParseSize(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
		again, err := ParseSize(got.String())
		require.NoError(t, err)
		require.Equal(t, got, again)
	}
	for _, text := range []string{"", "MiB", "-1", "1e3", "0x10", "NaN", "Inf", "1XB", "9999999TiB", "1 2", "1MiBs"} {
		_, err := ParseSize(text)
		require.Error(t, err, text)
	}
}

func TestSizeInJSON(t *testing.T) {
	var got []Size
	require.NoError(t, json.Unmarshal([]byte(`["1MiB", 2048, "7"]`), &got))
	require.Equal(t, []Size{MiB, 2 * KiB, 7}, got)
	b, err := json.Marshal(got)
	require.NoError(t, err)
	require.JSONEq(t, `["1MiB","2KiB","7"]`, string(b))
	require.Error(t, json.Unmarshal([]byte(`[true]`), &got))
}
