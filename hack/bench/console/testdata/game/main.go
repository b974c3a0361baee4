// Command game works 10 ms in each tick of 50 ms, as the main loop of a game does. It writes a line
// to the file ticks for each: when the tick was due, and how much later than 10 ms after that its
// work was done, both in ns.
package main

import (
	"bufio"
	"fmt"
	"os"
	"time"
)

const (
	tick = 50 * time.Millisecond
	work = 10 * time.Millisecond
)

func main() {
	file, err := os.Create("ticks")
	if err != nil {
		panic(err)
	}
	out := bufio.NewWriter(file)
	rounds := calibrate()
	due := time.Now()
	for n := 0; ; n++ {
		due = due.Add(tick)
		time.Sleep(time.Until(due))
		spin(rounds)
		fmt.Fprintln(out, due.UnixNano(), time.Since(due.Add(work)).Nanoseconds())
		if n%20 == 0 {
			if err := out.Flush(); err != nil {
				panic(err)
			}
		}
	}
}

// calibrate returns the rounds that take as long as the work of a tick.
func calibrate() int {
	best := time.Hour
	const rounds = 1_000_000
	for range 50 {
		began := time.Now()
		spin(rounds)
		best = min(best, time.Since(began))
	}
	return int(rounds * work / best)
}

var sum uint64

func spin(rounds int) {
	x := sum
	for i := range rounds {
		x = x*6364136223846793005 + uint64(i)
	}
	sum = x
}
