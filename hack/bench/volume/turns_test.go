package volume_test

import (
	"slices"
	"syscall"
	"testing"
	"time"
)

// minTurns is how many turns one iteration has.
const minTurns = 5

// contender is one implementation of the work.
type contender struct {
	name   string
	before func() // not measured; may be nil
	do     func()
}

// turns runs the contenders, the last of them berth, in turn, so that other load of
// the machine affects all of them alike. It reports the median time of each, how many
// times faster berth was than each of the others, by the median and by the best, and
// the processor time of the best, which hardly depends on other load. It returns the
// times and the processor times of each, in ms.
func turns(b *testing.B, contenders ...contender) (took, used [][]float64) {
	times := make([][]time.Duration, len(contenders))
	cpus := make([][]time.Duration, len(contenders))
	turn := func() {
		for i, c := range contenders {
			if c.before != nil {
				c.before()
			}
			began, before := time.Now(), processor(b)
			c.do()
			times[i] = append(times[i], time.Since(began))
			cpus[i] = append(cpus[i], processor(b)-before)
		}
	}
	for b.Loop() {
		for range minTurns {
			turn()
		}
	}
	for i := range times {
		slices.Sort(times[i])
	}
	own := times[len(times)-1]
	for i, c := range contenders {
		b.ReportMetric(median(times[i]).Seconds()*1000, c.name+"-ms")
		b.ReportMetric(slices.Min(cpus[i]).Seconds()*1000, c.name+"-cpu-ms")
		if i < len(times)-1 {
			b.ReportMetric(float64(median(times[i]))/float64(median(own)), "x-"+c.name)
			b.ReportMetric(float64(times[i][0])/float64(own[0]), "x-"+c.name+"-best")
		}
	}
	b.ReportMetric(0, "ns/op")
	return milliseconds(times), milliseconds(cpus)
}

func milliseconds(of [][]time.Duration) (list [][]float64) {
	for i, times := range of {
		list = append(list, nil)
		for _, one := range times {
			list[i] = append(list[i], one.Seconds()*1000)
		}
	}
	return list
}

// processor returns the processor time of this process and its children.
func processor(b *testing.B) (sum time.Duration) {
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var u syscall.Rusage
		if err := syscall.Getrusage(who, &u); err != nil {
			b.Fatal(err)
		}
		sum += time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	return sum
}

func median(sorted []time.Duration) time.Duration { return sorted[len(sorted)/2] }
