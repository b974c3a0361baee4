//go:build cluster

package console_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"berth/hack/bench/table"
	"berth/hack/test/berthtest"
	"berth/hack/test/kubetest"
)

// BenchmarkClusterIdle measures the memory of BenchmarkIdle on the cluster of hack/kube. A node has room for 110 pods.
func BenchmarkClusterIdle(b *testing.B) {
	require.True(b, kubetest.Running(), "needs a cluster")
	const count = 100
	d := berthtest.Start(b, berthtest.Options{})
	for i := range count {
		d.Create(b, fmt.Sprint("idle", i), berthtest.Spec{"power": "running"})
	}
	for i := range count {
		d.State(b, fmt.Sprint("idle", i), "running")
	}
	b.ReportMetric(rss(b, d.Pid()), "MiB-after-starts")
	wait(2 * resync) // then no run is new
	b.ReportMetric(0, "ns/op")
	table.Add(b, table.Row{Measure: "cluster: idle with 100 running, memory", Unit: "MiB", Berth: []float64{rss(b, d.Pid())}, Goal: table.AtMost(80)})
}
