//go:build cluster

package life

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	core1 "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth/hack/bench/table"
	"berth/hack/test/berthtest"
	"berth/hack/test/enginetest"
	"berth/hack/test/kubetest"
)

const (
	atOnce = 30
	lines  = 500
)

// BenchmarkCluster measures berth on the cluster of hack/kube, whose kubelet looks for exits once
// a second and for volumes three times.
func BenchmarkCluster(b *testing.B) {
	require.True(b, kubetest.Running(), "needs a cluster")
	d := berthtest.Start(b, berthtest.Options{})
	s := d.Listen(b, "/ws")
	d.Made(b, "mc", nil)
	verb(b, d, s, "start", "running") // the node pulls the image
	verb(b, d, s, "kill", "exit")
	var starts, kills []float64
	for range turns {
		starts = append(starts, verb(b, d, s, "start", "running")/1000)
		kills = append(kills, verb(b, d, s, "kill", "exit")/1000)
	}
	table.Add(b, table.Row{Measure: "cluster: start until its event", Unit: "s", Berth: starts, Goal: table.AtMost(0.8)})
	table.Add(b, table.Row{Measure: "cluster: kill until its event", Unit: "s", Berth: kills, Goal: table.AtMost(1.2)})
	var mines, bares []float64
	for range fifties {
		took, pod := together(b, d, s)
		mines = append(mines, took.Seconds())
		bares = append(bares, bareTogether(b, d.Cluster, pod).Seconds())
	}
	table.Add(b, table.Row{Measure: "cluster: 30 created and started at once", Unit: "/s", Berth: []float64{atOnce / median(mines)}, Goal: table.AtLeast(3)})
	table.Add(b, table.Row{Measure: "cluster: the same beside bare pods", Unit: "s", Berth: mines, Floor: bares, Goal: table.AtMost(1.3)})
	mine, bare := lineTimes(b, d)
	table.Add(b, table.Row{Measure: "cluster: p99 from a line to a socket", Unit: "ms", Berth: []float64{mine}, Goal: table.AtMost(50)})
	b.ReportMetric(bare, "kubelet-line-ms")
	b.ReportMetric(0, "ns/op")
}

// together returns how long it takes until containers that are created at once run, and one of their pods. It
// deletes them.
func together(b *testing.B, d *berthtest.Berth, s *berthtest.Socket) (time.Duration, core1.Pod) {
	b.Helper()
	received := len(s.Messages())
	began := time.Now()
	var wg sync.WaitGroup
	for i := range atOnce {
		wg.Go(func() { d.Create(b, fmt.Sprint("m", i), berthtest.Spec{"power": "running"}) })
	}
	s.Await(b, "all run", func(all []berthtest.Message) bool {
		run := 0
		for _, m := range all[received:] {
			if m.Event == "event" && m.Data == "running" {
				run++
			}
		}
		return run == atOnce
	})
	took := time.Since(began)
	wg.Wait()
	pod := d.Cluster.Pods(b, "m0")[0]
	for i := range atOnce {
		d.Delete(b, fmt.Sprint("m", i))
	}
	return took, pod
}

// bareTogether returns how long it takes until as many twins of a pod run, without berth.
func bareTogether(b *testing.B, n *kubetest.Namespace, of core1.Pod) time.Duration {
	b.Helper()
	twin := core1.Pod{TypeMeta: meta.TypeMeta{APIVersion: "v1", Kind: "Pod"}, Spec: of.Spec}
	twin.Labels = map[string]string{"berth-bench": "twin"}
	twin.Spec.NodeName = "" // for the scheduler
	path := "/api/v1/namespaces/" + n.Name + "/pods"
	began := time.Now()
	var wg sync.WaitGroup
	for i := range atOnce {
		twin.Name = fmt.Sprint("twin-", i)
		body, err := json.Marshal(twin)
		require.NoError(b, err)
		wg.Go(func() { n.Call(b, http.MethodPost, path, body) })
	}
	wg.Wait()
	twins := func() (run, all int) {
		var list core1.PodList
		_, answer := n.Call(b, http.MethodGet, path+"?labelSelector=berth-bench", nil)
		require.NoError(b, json.Unmarshal(answer, &list))
		for _, pod := range list.Items {
			if pod.Status.Phase == core1.PodRunning {
				run++
			}
		}
		return run, len(list.Items)
	}
	enginetest.Until(b, 3*time.Minute, "all twins run", func() bool { run, _ := twins(); return run == atOnce })
	took := time.Since(began)
	n.Call(b, http.MethodDelete, path+"?labelSelector=berth-bench&gracePeriodSeconds=1", nil)
	enginetest.Until(b, 3*time.Minute, "no twin is left", func() bool { _, all := twins(); return all == 0 })
	return took
}

// lineTimes returns the 99th percentiles of the milliseconds from when the node has read a line
// until a socket of berth, and a client of the kubelet, receive it.
func lineTimes(b *testing.B, d *berthtest.Berth) (mine, bare float64) {
	b.Helper()
	d.Started(b, "talker", berthtest.Spec{"startup_command": `i=0; while true; do i=$((i+1)); echo "line $i"; sleep 0.02; done`})
	s := d.Listen(b, "/ws/talker?tail=0")
	var pod string
	for _, c := range d.Containers(b, "talker") {
		pod = c.Names[0]
	}
	stream := d.Cluster.Follow(b, pod)
	defer stream.Close()
	read := map[string]time.Time{} // when the node has read a line
	var of, others []float64
	for in := bufio.NewScanner(stream); len(read) < lines && in.Scan(); {
		at, text, _ := strings.Cut(in.Text(), " ")
		t, err := time.Parse(time.RFC3339Nano, at)
		require.NoError(b, err)
		read[text] = t
		others = append(others, milliseconds(time.Since(t)))
	}
	for _, m := range s.Messages() {
		if t, known := read[strings.TrimSpace(fmt.Sprint(m.Data))]; m.Event == "console" && known {
			of = append(of, milliseconds(m.Read.Sub(t)))
		}
	}
	require.Greater(b, len(of), lines/2)
	slices.Sort(of)
	slices.Sort(others)
	return of[len(of)*99/100], others[len(others)*99/100]
}
