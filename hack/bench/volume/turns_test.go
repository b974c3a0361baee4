package volume_test

import (
	"slices"
	"testing"
	"time"
)

// contender is one way to do the work.
type contender struct {
	name   string
	before func() // is not measured
	do     func()
}

// turns lets the contenders, the last of them berth, work in turn, so that what
// else the machine does hits all of them alike. It reports the median time of
// each, and how many times faster berth was than each of the others.
func turns(b *testing.B, contenders ...contender) {
	times := make([][]time.Duration, len(contenders))
	for b.Loop() {
		for i, c := range contenders {
			if c.before != nil {
				c.before()
			}
			began := time.Now()
			c.do()
			times[i] = append(times[i], time.Since(began))
		}
	}
	for i := range times {
		slices.Sort(times[i])
	}
	own := times[len(times)-1]
	for i, c := range contenders {
		b.ReportMetric(median(times[i]).Seconds()*1000, c.name+"-ms")
		if i < len(times)-1 {
			b.ReportMetric(float64(median(times[i]))/float64(median(own)), "x-"+c.name)
			b.ReportMetric(float64(times[i][0])/float64(own[0]), "x-"+c.name+"-best")
		}
	}
	b.ReportMetric(0, "ns/op")
}

func median(sorted []time.Duration) time.Duration { return sorted[len(sorted)/2] }
