package store

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "berth/api/v1"
)

// populated has n containers of a usual size.
func populated(b *testing.B, dir string, n int) *Store {
	s := openIn(b, dir)
	spec := v1.ContainerSpec{
		Image: "ghcr.io/games/java:21", StartupCommand: strings.Repeat("x", 200), InstallScript: new(strings.Repeat("y", 2000)),
		Ports: []v1.Port{{IP: "0.0.0.0", Port: 25565, Protocol: "tcp"}}, Env: map[string]string{"EULA": "true"},
	}
	for i := range n {
		id := fmt.Sprintf("server-%04d", i)
		require.NoError(b, s.Update(func(tx *Tx) error { return Containers.Create(tx, id, spec) }))
		require.NoError(b, setPhase(s, id, v1.Ready))
	}
	return s
}

func BenchmarkSetStatus(b *testing.B) {
	for _, clients := range []int{1, 16, 128} {
		b.Run(fmt.Sprintf("sync-%d-clients", clients), func(b *testing.B) {
			s := populated(b, b.TempDir(), 500)
			var n atomic.Int64
			b.SetParallelism(max(1, clients/2)) // of two processors
			b.ReportAllocs()
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					i := n.Add(1)
					err := s.Update(func(tx *Tx) error {
						return Containers.SetStatus(tx, fmt.Sprintf("server-%04d", i%500), func(st *v1.ContainerStatus) { st.Seq = uint64(i) })
					})
					if err != nil {
						b.Error(err)
					}
				}
			})
		})
	}
}

func BenchmarkGet(b *testing.B) {
	s := populated(b, b.TempDir(), 1000)
	b.ReportAllocs()
	for b.Loop() {
		_, err := Containers.Get(s.Read(), "server-0500")
		require.NoError(b, err)
	}
}

func BenchmarkList1000(b *testing.B) {
	s := populated(b, b.TempDir(), 1000)
	b.ReportAllocs()
	for b.Loop() {
		require.Len(b, Containers.List(s.Read()), 1000)
	}
}

func BenchmarkIDs1000(b *testing.B) {
	s := populated(b, b.TempDir(), 1000)
	b.ReportAllocs()
	for b.Loop() {
		require.Len(b, Containers.IDs(s.Read()), 1000)
	}
}

// BenchmarkOpen opens a store of 1,000 containers and 50,000 transitions.
func BenchmarkOpen(b *testing.B) {
	dir := b.TempDir()
	s := populated(b, dir, 1000)
	for range 50 {
		require.NoError(b, emit(s, 1000))
	}
	require.NoError(b, s.Close())
	for b.Loop() {
		s, err := Open(dir, Options{})
		require.NoError(b, err)
		b.StopTimer()
		require.NoError(b, s.Close())
		b.StartTimer()
	}
}

func BenchmarkReadEventsAfterTrim(b *testing.B) {
	s := openIn(b, b.TempDir())
	for range 100 {
		require.NoError(b, emit(s, 1000))
	}
	_, err := s.TrimEvents(time.Time{}, 1000)
	require.NoError(b, err)
	b.ResetTimer()
	for b.Loop() {
		list, err := ReadEvents(s.Read(), 99_000, 1)
		require.Len(b, list, 1)
		require.NoError(b, err)
	}
}

// BenchmarkEvents10000Followers is one transition seen by 10,000 followers.
func BenchmarkEvents10000Followers(b *testing.B) {
	s := openIn(b, b.TempDir())
	const followers = 10_000
	var seen, all sync.WaitGroup
	ctx, cancel := context.WithCancel(b.Context())
	for range followers {
		all.Go(func() {
			for _, err := range s.Events(ctx, 0) {
				if err != nil {
					b.Error(err)
				}
				seen.Done()
			}
		})
	}
	for b.Loop() {
		seen.Add(followers)
		require.NoError(b, emit(s, 1))
		seen.Wait()
	}
	cancel()
	all.Wait()
}

// BenchmarkUsersOf asks who uses a volume, beside n containers.
func BenchmarkUsersOf(b *testing.B) {
	for _, n := range []int{100, 1000, 10000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s, err := Open("", Options{})
			require.NoError(b, err)
			defer s.Close()
			for i := range n {
				spec := v1.ContainerSpec{VolumeID: fmt.Sprintf("volume-%d", i)}
				require.NoError(b, s.Update(func(tx *Tx) error { return Containers.Create(tx, fmt.Sprintf("c-%d", i), spec) }))
			}
			b.ResetTimer()
			for range b.N {
				require.Len(b, Containers.IDsBy(s.Read(), "volume-50"), 1)
			}
		})
	}
}
