//go:build cluster

package kubernetes

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	core1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth/hack/bench/table"
	"berth/runtime"
)

const (
	scaleNodes = 1000
	scalePods  = 5000
	workers    = 8 // of the controller
)

// BenchmarkScale measures what a list and a resync of many containers cost. Their nodes are
// objects without machines, so run it on a cluster without nodes:
//
//	hack/kube/kube.sh with -n 0 go test -tags cluster -run '^$' -bench Scale -benchtime 1x ./runtime/kubernetes
func BenchmarkScale(b *testing.B) {
	c := newCluster(b)
	stopManager(b)
	names := c.populate(b)
	debug.FreeOSMemory()
	before := resident(b)
	var peak atomic.Int64
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	go func() {
		for ctx.Err() == nil {
			peak.Store(max(peak.Load(), resident(b)))
			time.Sleep(5 * time.Millisecond)
		}
	}()

	used := processorTime(b)
	watched, stop := context.WithCancel(ctx)
	err := c.Watch(watched, func(all []runtime.Found) {
		require.Len(b, all, scalePods)
		stop()
	}, func(runtime.Name) {})
	require.ErrorIs(b, err, context.Canceled)
	listed := processorTime(b) - used
	var g errgroup.Group
	g.SetLimit(workers)
	began := time.Now()
	for _, n := range names {
		g.Go(func() error {
			s, err := c.Inspect(ctx, n)
			if err == nil && !s.Running {
				err = errors.New("it does not run")
			}
			return err
		})
	}
	require.NoError(b, g.Wait())
	took := time.Since(began)
	resynced := processorTime(b) - used - listed
	cancel()
	table.Add(b, table.Row{Measure: "cluster: list and resync of 5,000 pods", Unit: "s cpu", Berth: []float64{(listed + resynced).Seconds()}, Goal: table.AtMost(3)})
	table.Add(b, table.Row{Measure: "cluster: memory for that", Unit: "MiB", Berth: []float64{float64(peak.Load()) / (1 << 20)}, Goal: table.AtMost(200)})
	b.ReportMetric(float64(before)/(1<<20), "MiB-before")
	b.ReportMetric(listed.Seconds(), "s-cpu-of-list")
	b.ReportMetric(took.Seconds(), "s-resync")
	b.ReportMetric(0, "ns/op")
}

// stopManager stops the controller manager of the cluster, which would report the nodes as lost.
func stopManager(b *testing.B) {
	b.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	require.NoError(b, err)
	for _, path := range all {
		line, _ := os.ReadFile(path) // the process may have ended
		if args := bytes.Split(line, []byte{0}); len(args) > 1 && string(args[1]) == "controller-manager" {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			require.NoError(b, err)
			require.NoError(b, syscall.Kill(pid, syscall.SIGKILL))
			return
		}
	}
	b.Fatal("the controller manager is not found")
}

// populate creates nodes, and pods that run on them.
func (c cluster) populate(b *testing.B) (names []runtime.Name) {
	b.Helper()
	image := resolved{digest: "sha256:1", ref: "img@sha256:1"}
	image.config.Cmd = []string{"sh"}
	status := func(resource, name string, value any) error {
		body, err := json.Marshal(map[string]any{"status": value})
		if err != nil {
			return err
		}
		request := c.admin.api().Patch("application/merge-patch+json").Resource(resource).Name(name).SubResource("status")
		if resource == "pods" {
			request.Namespace(c.cfg.Namespace)
		}
		return request.Body(body).Do(b.Context()).Error()
	}
	var g errgroup.Group
	g.SetLimit(16)
	for i := range scaleNodes {
		g.Go(func() error {
			node := testNode(fmt.Sprint("node-", i), core1.ConditionTrue)
			node.Status.Allocatable = core1.ResourceList{core1.ResourcePods: resource.MustParse("110")}
			if err := c.admin.api().Post().Resource("nodes").Body(node).Do(b.Context()).Error(); err != nil {
				return err
			}
			return status("nodes", node.Name, node.Status)
		})
	}
	require.NoError(b, g.Wait())
	for i := range scalePods {
		n := runtime.Name{ID: fmt.Sprintf("container-%d-%s", i, strings.Repeat("x", 20)), Role: runtime.Server}
		names = append(names, n)
		g.Go(func() error {
			s := runtime.Spec{Name: n, SpecHash: "1", Command: []string{"java", "-Xmx4G", "-jar", "server.jar"}, Live: runtime.Live{Memory: 4 << 30, CPU: 2}}
			for v := range 20 {
				s.Env = append(s.Env, fmt.Sprintf("VARIABLE_%d=some value of a server", v))
			}
			pod, err := c.build(s, image, "keeper/1")
			if err != nil {
				return err
			}
			pod.Spec.SchedulingGates, pod.Spec.NodeName = nil, fmt.Sprint("node-", i%scaleNodes)
			pod.Annotations[annotationStart] = time.Now().UTC().Format(time.RFC3339Nano)
			if err := c.admin.api().Post().Namespace(c.cfg.Namespace).Resource("pods").Body(pod).Do(b.Context()).Error(); err != nil {
				return err
			}
			return status("pods", pod.Name, core1.PodStatus{Phase: core1.PodRunning, ContainerStatuses: []core1.ContainerStatus{{
				Name: serverContainer, Ready: true, Image: image.ref, State: core1.ContainerState{Running: &core1.ContainerStateRunning{StartedAt: meta.Now()}},
			}}})
		})
	}
	require.NoError(b, g.Wait())
	return names
}

// processorTime returns the processor time of this process.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// resident returns the memory of this process, in bytes.
func resident(b *testing.B) int64 {
	b.Helper()
	text, err := os.ReadFile("/proc/self/statm")
	require.NoError(b, err)
	pages, err := strconv.ParseInt(strings.Fields(string(text))[1], 10, 64)
	require.NoError(b, err)
	return pages * int64(os.Getpagesize())
}
