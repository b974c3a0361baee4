package stats_test

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"berth/controller/stats"
)

func TestCollectorSeries(t *testing.T) {
	f := newFleet("a")
	c := stats.NewCollector(f, f, slog.New(slog.DiscardHandler))
	require.NoError(t, testutil.CollectAndCompare(c, strings.NewReader(`
# HELP berth_container_memory_bytes Memory used, without cache.
# TYPE berth_container_memory_bytes gauge
berth_container_memory_bytes{container="a"} 1
# HELP berth_container_network_transmit_bytes_total Bytes sent by the run.
# TYPE berth_container_network_transmit_bytes_total counter
berth_container_network_transmit_bytes_total{container="a"} 4
`), "berth_container_memory_bytes", "berth_container_network_transmit_bytes_total"))
	require.Equal(t, 7, testutil.CollectAndCount(c))
	problems, err := testutil.CollectAndLint(c)
	require.NoError(t, err)
	require.Empty(t, problems)
	f.stop("a")
	require.Zero(t, testutil.CollectAndCount(c))
	require.NoError(t, prometheus.NewRegistry().Register(c))
}
