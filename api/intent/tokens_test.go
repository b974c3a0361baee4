package intent_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"berth/api/intent"
	v1 "berth/api/v1"
)

func TestTTL(t *testing.T) {
	for ttl, want := range map[string]time.Duration{
		"1s": time.Second, "90s": 90 * time.Second, "1h30m": 90 * time.Minute, "7d": 168 * time.Hour, "1d12h": 36 * time.Hour, "1w": 168 * time.Hour,
		"": 0, "0": 0, "0s": 0, "-1h": 0, "1": 0, "h": 0, "31d": 0, "1y": 0, "999999999999999999w": 0, "1ns": 0,
	} {
		var f v1.FieldErrors
		got := intent.CheckToken(&f, v1.TokenRequest{TTL: &ttl}, 720*time.Hour)
		require.Equal(t, want == 0, f.Any(), ttl)
		if want != 0 {
			require.Equal(t, want, got, ttl)
		}
	}
	var f v1.FieldErrors
	require.Equal(t, time.Hour, intent.CheckToken(&f, v1.TokenRequest{}, 720*time.Hour), "an hour when absent")
}

func TestScopesAndContainersOfAToken(t *testing.T) {
	var f v1.FieldErrors
	intent.CheckToken(&f, v1.TokenRequest{Scopes: []v1.Scope{}, Containers: []string{"", "-"}}, time.Hour)
	require.EqualError(t, f.Err(), "scopes: must name at least one scope; containers[0]: is required; "+
		"containers[1]: must be 1 to 63 letters, digits, _, . or -, and begin with a letter or digit")
}

// TestReservedNames: a tenant's token does not look like the administrator in the log.
func TestReservedNames(t *testing.T) {
	for name, free := range map[string]bool{"administrator": false, "Administrator": false, "controller": false, "administrators": true, "": true} {
		var f v1.FieldErrors
		intent.CheckToken(&f, v1.TokenRequest{Name: name}, time.Hour)
		require.Equal(t, free, !f.Any(), name)
	}
}
