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
