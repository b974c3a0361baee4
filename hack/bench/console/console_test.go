package console_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"berth/hack/test/berthtest"
)

func spec(command string) berthtest.Spec {
	return berthtest.Spec{"startup_command": command, "tty": false}
}

// touch makes a file in a container's volume.
func touch(b *testing.B, c berthtest.Container, name string) {
	b.Helper()
	require.NoError(b, os.WriteFile(filepath.Join(c.Mount.Source, name), nil, 0o600))
}

func exists(c berthtest.Container, name string) bool {
	_, err := os.Stat(filepath.Join(c.Mount.Source, name))
	return err == nil
}

// BenchmarkBurst prints 100,000 lines at once to one client.
func BenchmarkBurst(b *testing.B) {
	const n = 100_000
	d := berthtest.Start(b, berthtest.Options{})
	for i := range b.N {
		id := fmt.Sprintf("burst%d", i)
		c := d.Started(b, id, spec(flood(n)))
		l := listen(b, d, id)
		began := time.Now()
		touch(b, c, "go")
		berthtest.Within(time.Minute, func() bool { return l.lines.Load() >= n })
		b.ReportMetric(float64(l.lines.Load())/n*100, "%delivered")
		b.ReportMetric(time.Since(began).Seconds(), "s/burst")
	}
}

// BenchmarkFifty has 50 clients at a container that prints 2,000 lines a second.
func BenchmarkFifty(b *testing.B) {
	d := berthtest.Start(b, berthtest.Options{})
	for i := range b.N {
		id := fmt.Sprintf("fifty%d", i)
		d.Started(b, id, spec(printer(2000)))
		var clients []*client
		for range 50 {
			clients = append(clients, listen(b, d, id))
		}
		wait(2 * time.Second)
		printed := map[*client]int64{} // before what it counts
		for _, c := range clients {
			c.reset()
			printed[c] = journal(b, d, id)
		}
		began, used := time.Now(), cpu(b, d.Pid())
		wait(10 * time.Second)
		used = cpu(b, d.Pid()) - used
		d.Verb(b, id, "kill")
		d.State(b, id, "exit")
		took := time.Since(began).Seconds()
		wait(time.Second)
		all, least, lines := journal(b, d, id), 100.0, int64(0)
		var ages []time.Duration
		for c, before := range printed {
			n, some := c.reset()
			least = min(least, float64(n)/float64(all-before)*100)
			lines += n
			ages = append(ages, some...)
			require.Zero(b, c.dropped.Load())
		}
		b.ReportMetric(least, "%delivered-least")
		b.ReportMetric(float64(lines)/50/took, "lines/s")
		b.ReportMetric(used.Seconds()/10*100, "%core")
		report(b, "", ages)
	}
}

// BenchmarkStuck has a hundred clients that never read, beside one that does,
// at a container that prints 1,000 lines a second.
func BenchmarkStuck(b *testing.B) {
	d := berthtest.Start(b, berthtest.Options{})
	for i := range b.N {
		id := fmt.Sprintf("stuck%d", i)
		d.Started(b, id, spec(printer(1000)))
		good := listen(b, d, id)
		measure(b, good, "alone-")
		before := rss(b, d.Pid())
		for range 100 {
			conn := dial(b, d, id)
			defer conn.Close()
		}
		wait(time.Second)
		good.reset()
		printed := journal(b, d, id)
		wait(10 * time.Second)
		n, ages := good.reset()
		b.ReportMetric(float64(n)/float64(journal(b, d, id)-printed)*100, "%delivered")
		report(b, "beside-", ages)
		b.ReportMetric(rss(b, d.Pid())-before, "MiB-grown")
		d.Verb(b, id, "kill")
	}
}

// measure listens for a while.
func measure(b *testing.B, c *client, name string) {
	wait(time.Second)
	c.reset()
	wait(10 * time.Second)
	_, ages := c.reset()
	report(b, name, ages)
}

// journal is how many lines of a printer are in the journal.
func journal(b *testing.B, d *berthtest.Berth, id string) int64 {
	b.Helper()
	info, err := os.Stat(filepath.Join(d.Data, "console", id, "server.log"))
	require.NoError(b, err)
	return info.Size() / int64(len("2006-01-02T15:04:05.000000000Z F ")+80)
}

// BenchmarkFlood compares how long a container takes to print 300,000 lines with
// nobody listening and with a hundred clients that never read, in turns.
func BenchmarkFlood(b *testing.B) {
	d := berthtest.Start(b, berthtest.Options{})
	took, used, grown := map[int][]float64{}, map[int][]float64{}, 0.0
	for i := range b.N {
		for _, stuck := range []int{0, 100} {
			time, cpu, mib := floodOnce(b, d, fmt.Sprintf("flood%d-%d", i, stuck), stuck)
			took[stuck], used[stuck] = append(took[stuck], time), append(used[stuck], cpu)
			grown = max(grown, mib)
		}
	}
	for _, stuck := range []int{0, 100} {
		b.ReportMetric(median(took[stuck]), fmt.Sprintf("s-with-%d", stuck))
		b.ReportMetric(median(used[stuck]), fmt.Sprintf("cpu-s-with-%d", stuck))
	}
	b.ReportMetric(median(took[100])/median(took[0]), "time-ratio")
	b.ReportMetric(grown, "MiB-grown-most")
}

// floodOnce floods once. It returns the seconds until the container was done,
// those that berth was busy, and by how much it grew.
func floodOnce(b *testing.B, d *berthtest.Berth, id string, stuck int) (took, busy, mib float64) {
	c := d.Started(b, id, spec(flood(300_000)))
	before := rss(b, d.Pid())
	for range stuck {
		conn := dial(b, d, id)
		defer conn.Close()
	}
	wait(time.Second) // to open a socket is not what is measured
	began, used := time.Now(), cpu(b, d.Pid())
	touch(b, c, "go")
	berthtest.Within(time.Minute, func() bool { return exists(c, "done") })
	took = time.Since(began).Seconds()
	wait(2 * time.Second)
	busy, mib = (cpu(b, d.Pid()) - used).Seconds(), rss(b, d.Pid())-before
	d.Delete(b, id)
	return took, busy, mib
}

func median(of []float64) float64 {
	slices.Sort(of)
	return of[len(of)/2]
}

// BenchmarkYes has a client at a quiet container while others run yes, with a
// client at each.
func BenchmarkYes(b *testing.B) {
	d := berthtest.Start(b, berthtest.Options{})
	for i := range b.N {
		id, loud := fmt.Sprintf("quiet%d", i), fmt.Sprintf("yes%d", i)
		d.Started(b, id, spec(printer(100)))
		quiet := listen(b, d, id)
		measure(b, quiet, "alone-")
		d.Started(b, loud, spec("yes"))
		l := listen(b, d, loud)
		measure(b, quiet, "beside-")
		b.ReportMetric(float64(l.lines.Load())/11, "yes-lines/s")
		d.Verb(b, loud, "kill")
		d.Verb(b, id, "kill")
	}
}

// wait lets time pass: what is measured goes on meanwhile.
func wait(d time.Duration) { <-time.After(d) }
