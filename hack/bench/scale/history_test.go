package scale

import (
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
	"berth/controller/event"
	"berth/hack/bench/table"
	"berth/store"
)

// BenchmarkHistory stores 72 hours of transitions of 50 containers that crash every 5
// minutes, by a clock that is set, and trims them as the daemon does. The directory and the
// memory of the store after 72 hours are compared with those after 36 hours, in which
// history was removed already.
func BenchmarkHistory(b *testing.B) {
	const containers, step, hours = 50, 5 * time.Minute, 72
	dir, began := b.TempDir(), time.Now()
	var clock atomic.Int64
	now := func() time.Time { return began.Add(time.Duration(clock.Load())) }
	s, err := store.Open(dir, store.Options{Now: now})
	require.NoError(b, err)
	defer func() { require.NoError(b, s.Close()) }()
	require.NoError(b, s.Update(func(tx *store.Tx) error {
		for i := range containers {
			if err := store.Containers.Create(tx, name(i), v1.ContainerSpec{Image: "i", VolumeID: volume(i)}); err != nil {
				return err
			}
		}
		return nil
	}))
	c := v1.Defaults()
	c.Complete()
	c.Events.Retention = v1.Duration(24 * time.Hour)
	trim := event.New(s, func() v1.Config { return c }, slog.New(slog.DiscardHandler), nil).Reconciler
	var disk, memory []float64
	for at := step; at <= hours*time.Hour; at += step {
		clock.Store(int64(at))
		for _, phase := range []v1.Phase{v1.Starting, v1.Running, v1.Exit} {
			require.NoError(b, s.Update(func(tx *store.Tx) error { return crash(tx, containers, phase) }))
		}
		_, err := trim.Reconcile(b.Context(), "retention")
		require.NoError(b, err)
		if at == hours*time.Hour/2 || at == hours*time.Hour {
			time.Sleep(5 * time.Second) // the store merges its files meanwhile
			disk, memory = append(disk, directorySize(b, dir)), append(memory, heap())
		}
	}
	after := fmt.Sprintf("after %d hours of history, of %d hours: ", hours, hours/2)
	table.Add(b, table.Row{Measure: after + "directory", Unit: "MiB", Berth: []float64{disk[1] / (1 << 20)}, Floor: []float64{disk[0] / (1 << 20)}, Goal: table.AtMost(1.25)})
	table.Add(b, table.Row{Measure: after + "memory", Unit: "MiB", Berth: []float64{memory[1] / (1 << 20)}, Floor: []float64{memory[0] / (1 << 20)}, Goal: table.AtMost(1.25)})
}

// crash stores a transition of each container.
func crash(tx *store.Tx, containers int, phase v1.Phase) error {
	for i := range containers {
		err := store.Containers.SetStatus(tx, name(i), func(st *v1.ContainerStatus) {
			e := store.Emit(tx, v1.Event{Container: name(i), Event: v1.EventState, Data: string(phase), From: st.Phase})
			st.Phase, st.Seq, st.Since = phase, e.Seq, e.Time
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// directorySize returns the bytes on the disk of all files of a directory: Badger's logs
// are sparse.
func directorySize(b *testing.B, dir string) (total float64) {
	b.Helper()
	require.NoError(b, filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		total += blocks(info)
		return err
	}))
	return total
}
