package scale

import (
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"berth/controller"
	controllervolume "berth/controller/volume"
	"berth/hack/bench/table"
	runtimevolume "berth/runtime/volume"
	"berth/store"
)

// usageWindow is how long BenchmarkUsage measures.
const usageWindow = time.Minute

// BenchmarkUsage measures the periodic walks through many volumes of ten files, without a
// limit, on which nothing changes.
func BenchmarkUsage(b *testing.B) {
	count := most(b) / 2
	dir := b.TempDir()
	s, err := store.Open(filepath.Join(dir, "store"), store.Options{})
	require.NoError(b, err)
	defer func() { require.NoError(b, s.Close()) }()
	(&node{store: s}).volumes(b, 0, count)
	dirs, err := runtimevolume.New(filepath.Join(dir, "volumes"), runtimevolume.Options{UID: os.Getuid(), GID: os.Getgid()})
	require.NoError(b, err)
	for i := range count {
		require.NoError(b, dirs.Ensure(volume(i)))
		for j := range 10 {
			require.NoError(b, os.WriteFile(filepath.Join(dirs.Path(volume(i)), fmt.Sprint(j)), []byte("x"), 0o600))
		}
	}
	log, walked := slog.New(slog.DiscardHandler), atomic.Int64{}
	scanner := &controllervolume.Scanner{Store: s, Directories: dirs, Log: log}
	loop := &controller.Loop{Name: "volume", Workers: 4, Log: log, BackOff: controller.BackOff(time.Second, time.Minute),
		Reconciler: &controllervolume.Reconciler{Store: s, Directories: dirs, Uses: controllervolume.NewUses(s), Log: log},
		Watch: []controller.Source{
			func(ctx context.Context, notify func(string)) error {
				return scanner.Source()(ctx, func(id string) { walked.Add(1); notify(id) })
			},
			controller.Every(time.Minute, store.Volumes.Lister(s))}}
	ctx, cancel := context.WithCancel(b.Context())
	var parts sync.WaitGroup
	parts.Go(func() { loop.Run(ctx) })
	for walked.Load() < int64(count) { // the first walk of each also removes what an interrupted operation left
		time.Sleep(time.Second)
	}
	began, used, before := time.Now(), processorTime(b), walked.Load()
	time.Sleep(usageWindow)
	cpu, took := processorTime(b)-used, time.Since(began)
	walks := walked.Load() - before
	cancel()
	parts.Wait()
	require.Positive(b, walks)
	table.Add(b, table.Row{Measure: fmt.Sprintf("usage of %d volumes for a minute, CPU of a core", count), Unit: "%",
		Berth: []float64{100 * cpu.Seconds() / took.Seconds()}, Goal: table.AtMost(2)})
	b.Logf("%d volumes were walked, %.0f µs of CPU each with their reconciles", walks, float64(cpu.Microseconds())/float64(walks))
}

// blocks returns the bytes that a file takes on the disk.
func blocks(info fs.FileInfo) float64 {
	return 512 * float64(info.Sys().(*syscall.Stat_t).Blocks)
}
