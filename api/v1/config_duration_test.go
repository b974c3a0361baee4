package v1_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
)

func TestDuration(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"90s": 90 * time.Second, "1h30m": 90 * time.Minute, "7d": 168 * time.Hour, "1w2d": 216 * time.Hour,
		"1d12h": 36 * time.Hour, "1.5d": 36 * time.Hour, "0s": 0, "250ms": 250 * time.Millisecond,
	} {
		got, err := v1.ParseDuration(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"", "d", "7", "7 d", "1y", "soon", "1d1"} {
		_, err := v1.ParseDuration(text)
		require.EqualError(t, err, fmt.Sprintf("%q is not a duration such as 90s, 1h30m or 7d", text))
	}
}

func TestDurationInJSON(t *testing.T) {
	var read struct{ Text, Seconds, Part v1.Duration }
	require.NoError(t, json.Unmarshal([]byte(`{"text":"2d","seconds":90,"part":0.5}`), &read))
	require.Equal(t, []v1.Duration{v1.Duration(48 * time.Hour), v1.Duration(90 * time.Second), v1.Duration(500 * time.Millisecond)},
		[]v1.Duration{read.Text, read.Seconds, read.Part})
	for _, bad := range []string{`{"text":"soon"}`, `{"text":true}`, `{"text":[1]}`} {
		require.Error(t, json.Unmarshal([]byte(bad), &read), bad)
	}
	text, err := json.Marshal(v1.Duration(90 * time.Minute))
	require.NoError(t, err)
	require.Equal(t, `"1h30m0s"`, string(text))
}
