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
	"berth/hack/test/berthtest"
)

// pairs is how often it measures.
const pairs = 15

// beside is what was measured beside a backup, or without one.
type beside struct {
	disturbed, quiet []time.Duration // how old the lines are: while other containers start, and while nothing happens
	starts           []float64       // in milliseconds
}

// BenchmarkBesideBackup compares the console of a container at 100 lines a second, and
// the time of a start, beside a backup of another volume with those without any, in turn:
// while other containers start, and while nothing else happens. The percentiles are those of
// all turns together: one turn has about 250 lines. The daemon has the weight of the service.
func BenchmarkBesideBackup(b *testing.B) {
	d := berthtest.Start(b, berthtest.Options{})
	volume := d.Volume(b)
	f, err := os.Create(filepath.Join(d.Data, "volumes", volume, "world"))
	require.NoError(b, err)
	_, err = io.CopyN(f, rand.Reader, 6<<30)
	require.NoError(b, err)
	require.NoError(b, f.Close())
	d.Started(b, "prints", spec(printer(100)))
	d.Made(b, "starts", nil)
	weigh(b, d.Pid())
	l, events := listen(b, d, "prints"), d.Listen(b, "/ws")

	var without, with beside
	for b.Loop() {
		for i := range 2 * pairs {
			if (i+i/2)%2 == 0 { // each is first in every second pair
				without.measure(b, d, l, events)
				continue
			}
			end := backup(b, d, volume)
			with.measure(b, d, l, events)
			end()
		}
	}
	for _, row := range []table.Row{
		{Measure: "console p99 beside a backup", Berth: []float64{quantile(b, with.disturbed, 99)}, Floor: []float64{quantile(b, without.disturbed, 99)}},
		{Measure: "console p99 beside a backup, no starts", Berth: []float64{quantile(b, with.quiet, 99)}, Floor: []float64{quantile(b, without.quiet, 99)}},
		{Measure: "start beside a backup", Berth: with.starts, Floor: without.starts},
	} {
		row.Unit, row.Goal = "ms", table.AtMost(1.3)
		table.Add(b, row)
	}
}

// measure measures five starts with the console, and then three seconds of the console.
func (m *beside) measure(b *testing.B, d *berthtest.Berth, l *client, events *berthtest.Socket) {
	l.reset()
	for range 5 {
		received := len(events.Messages())
		began := time.Now()
		d.Verb(b, "starts", "start")
		running, _ := events.Event(b, received, "starts", "running")
		m.starts = append(m.starts, running.Read.Sub(began).Seconds()*1000)
		d.Verb(b, "starts", "kill")
		events.Event(b, received, "starts", "exit")
	}
	_, ages := l.reset()
	m.disturbed = append(m.disturbed, ages...)
	wait(3 * time.Second)
	_, ages = l.reset()
	m.quiet = append(m.quiet, ages...)
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
