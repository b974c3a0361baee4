package console_test

import (
	"context"
	"crypto/rand"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"berth/hack/bench/table"
	"berth/hack/berthtest"
)

// pairs is how often it measures: the 99th percentile of three seconds varies much.
const pairs = 15

// BenchmarkBesideBackup compares the console of a container at 100 lines a second, and
// the time of a start, beside backups of another volume with those without any, in turn:
// while other containers start, and while nothing else happens.
func BenchmarkBesideBackup(b *testing.B) {
	d := berthtest.Start(b, berthtest.Options{})
	volume := d.Volume(b)
	f, err := os.Create(filepath.Join(d.Data, "volumes", volume, "world"))
	require.NoError(b, err)
	_, err = io.CopyN(f, rand.Reader, 256<<20)
	require.NoError(b, err)
	require.NoError(b, f.Close())
	d.Started(b, "prints", spec(printer(100)))
	d.Made(b, "starts", nil)
	l, events := listen(b, d, "prints"), d.Listen(b, "/ws")

	p99 := table.Row{Measure: "console p99 beside a backup", Unit: "ms", Goal: table.AtMost(1.2)}
	alone := table.Row{Measure: "console p99 beside a backup, no starts", Unit: "ms", Goal: table.AtMost(1.2)}
	start := table.Row{Measure: "start beside a backup", Unit: "ms", Goal: table.AtMost(1.2)}
	for b.Loop() {
		for range pairs {
			ages, starts := disturbed(b, d, l, events)
			p99.Floor, start.Floor = append(p99.Floor, quantile(b, ages, 99)), append(start.Floor, starts...)
			alone.Floor = append(alone.Floor, undisturbed(b, l))
			end := backups(b, d, volume)
			ages, starts = disturbed(b, d, l, events)
			p99.Berth, start.Berth = append(p99.Berth, quantile(b, ages, 99)), append(start.Berth, starts...)
			alone.Berth = append(alone.Berth, undisturbed(b, l))
			end()
		}
	}
	table.Add(b, p99)
	table.Add(b, alone)
	table.Add(b, start)
}

// undisturbed returns the 99th percentile of how old lines are, in milliseconds.
func undisturbed(b *testing.B, l *client) float64 {
	l.reset()
	wait(3 * time.Second)
	_, ages := l.reset()
	return quantile(b, ages, 99)
}

// disturbed returns how old lines are, and the milliseconds of some starts.
func disturbed(b *testing.B, d *berthtest.Berth, l *client, events *berthtest.Socket) (ages []time.Duration, starts []float64) {
	l.reset()
	for range 5 {
		received := len(events.Messages())
		began := time.Now()
		d.Verb(b, "starts", "start")
		m, _ := events.Event(b, received, "starts", "running")
		starts = append(starts, m.Read.Sub(began).Seconds()*1000)
		d.Verb(b, "starts", "kill")
		events.Event(b, received, "starts", "exit")
	}
	_, ages = l.reset()
	return ages, starts
}

// backups makes backups of a volume, one after the other, until end.
func backups(b *testing.B, d *berthtest.Berth, volume string) (end func()) {
	ctx, cancel := context.WithCancel(b.Context())
	first := make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		for n := 0; ctx.Err() == nil; n++ {
			var backup struct {
				ID    string `json:"backup_id"`
				State string
			}
			d.Post(b, "/volumes/"+volume+"/backups", nil).Decode(b, &backup)
			if n == 0 {
				close(first)
			}
			berthtest.Until(b, 2*time.Minute, "the backup finishes", func() bool {
				wait(100 * time.Millisecond) // requests would be load of their own
				d.Get(b, "/backups/"+backup.ID, &backup)
				return backup.State == "completed" || backup.State == "failed"
			})
			require.Equal(b, "completed", backup.State)
			d.Must(b, "DELETE", "/backups/"+backup.ID, nil)
		}
	})
	<-first
	return func() { cancel(); all.Wait() }
}
