package cli

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAge(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for ago, want := range map[time.Duration]string{
		-time.Second: "0s", 0: "0s", 59 * time.Second: "59s", time.Minute: "1m00s", 61 * time.Minute: "1h01m",
		47*time.Hour + 59*time.Minute: "47h59m", 48 * time.Hour: "2d", 80 * time.Hour: "3d",
	} {
		require.Equal(t, want, age(now.Add(-ago), now))
	}
	require.Empty(t, age(time.Time{}, now))
}
