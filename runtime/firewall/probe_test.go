package firewall

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestProbe(t *testing.T) {
	version, err := Probe(t.Context())
	require.NoError(t, err)
	require.Regexp(t, `^iptables v[0-9.]+ \((nf_tables|legacy)\)$`, version)

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = Probe(ended)
	require.ErrorIs(t, err, context.Canceled)
}
