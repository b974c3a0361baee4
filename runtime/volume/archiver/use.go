package archiver

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// statTick is the unit of /proc/stat on all architectures of Linux that berth runs on.
const statTick = 10 * time.Millisecond

// Columns of /proc/stat. Guests and what follows are part of others.
const (
	statUser   = 0
	statNice   = 1
	statIdle   = 3
	statIOWait = 4
	statSteal  = 7
	statGuest  = 8
)

var errStat = errors.New("the first line of /proc/stat is not that of all processors")

// ownUse is host.own.
func ownUse() (at, own time.Duration) {
	var now, cpu unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &now) // neither fails
	_ = unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &cpu)
	return time.Duration(now.Nano()), time.Duration(cpu.Nano())
}

// otherUse is host.others.
func otherUse() (others, error) {
	stat, err := os.ReadFile("/proc/stat")
	if err != nil {
		return others{}, err
	}
	used, err := statUse(stat)
	if err != nil {
		return others{}, err
	}
	var own unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &own); err != nil {
		return others{}, err
	}
	user := time.Duration(own.Utime.Nano())
	return others{all: used.all - user - time.Duration(own.Stime.Nano()), user: used.user - user}, nil
}

// statUse returns the processor time of all processes in the text of /proc/stat.
func statUse(stat []byte) (used others, err error) {
	line, _, _ := bytes.Cut(stat, []byte("\n"))
	fields := bytes.Fields(line)
	if len(fields) <= statGuest || string(fields[0]) != "cpu" {
		return used, errStat
	}
	for i, f := range fields[1 : statGuest+1] {
		ticks, err := strconv.ParseInt(string(f), 10, 64)
		if err != nil {
			return used, fmt.Errorf("read /proc/stat: %w", err)
		}
		switch i {
		case statUser, statNice:
			used.user += time.Duration(ticks) * statTick
			fallthrough
		default:
			used.all += time.Duration(ticks) * statTick
		case statIdle, statIOWait, statSteal:
		}
	}
	return used, nil
}
