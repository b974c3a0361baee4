package console_test

import (
	"crypto/rand"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"berth/hack/bench/table"
	"berth/hack/berthtest"
)

// pairs is how often it measures: the 99th percentile of three seconds varies much.
const pairs = 15

// BenchmarkBesideBackup compares the console of a container at 100 lines a second, and
// the time of a start, beside a backup of another volume with those without any, in turn:
// while other containers start, and while nothing else happens.
func BenchmarkBesideBackup(b *testing.B) {
	d := berthtest.Start(b, berthtest.Options{})
	volume := d.Volume(b)
	f, err := os.Create(filepath.Join(d.Data, "volumes", volume, "world"))
	require.NoError(b, err)
	_, err = io.CopyN(f, rand.Reader, 2<<30)
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
			end := backup(b, d, volume)
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

// backup begins a backup of a volume. end cancels it, after it has seen that it still runs.
func backup(b *testing.B, d *berthtest.Berth, volume string) (end func()) {
	var made struct {
		ID    string `json:"backup_id"`
		State string
	}
	d.Post(b, "/volumes/"+volume+"/backups", nil).Decode(b, &made)
	path := "/backups/" + made.ID
	return func() {
		d.Get(b, path, &made)
		require.Equal(b, "running", made.State, "it must last longer than what is measured beside it")
		d.Must(b, "DELETE", path, nil)
		berthtest.Until(b, time.Minute, "the backup is deleted", func() bool {
			wait(100 * time.Millisecond) // requests would be load of their own
			return d.Do(b, "GET", path, nil).Status == http.StatusNotFound
		})
	}
}
