package cli

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestTimesAreLocalWithTheirZone: people read local times, and berth logs --since reads what
// a table prints. JSON has what the daemon sent.
func TestTimesAreLocalWithTheirZone(t *testing.T) {
	at := time.Date(2026, 11, 22, 23, 30, 0, 0, time.UTC)
	text := dateOf(at.Format(time.RFC3339))
	require.Equal(t, at.In(time.Local).Format("2006-01-02 15:04:05 -0700"), text)
	require.Equal(t, "soon", dateOf("soon"))
	for _, printed := range []string{text, at.In(time.Local).Format(timeFormat)} {
		read, err := parseTime(printed, time.Time{})
		require.NoError(t, err)
		require.True(t, at.Equal(read), printed)
	}

	f := newFakeAPI(t, map[string]string{"GET /auth/tokens": `200 {"tokens":[{"id":"k","scopes":["read"],"expires_at":"2026-11-22T23:30:00Z"}]}`})
	out, _, err := command(t, f.env(), "token", "list")
	require.NoError(t, err)
	require.Contains(t, out, "  "+text+"\n")
	out, _, err = command(t, f.env(), "token", "list", "-o", "json")
	require.NoError(t, err)
	require.Contains(t, out, "2026-11-22T23:30:00Z")
}

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
