package archiver

import (
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// statTick is the unit of processor times in /proc on all architectures of Linux that berth
// runs on.
const statTick = 10 * time.Millisecond

// ownUse is host.own.
func ownUse() (at, own time.Duration) {
	var now, cpu unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &now) // neither fails
	_ = unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &cpu)
	return time.Duration(now.Nano()), time.Duration(cpu.Nano())
}

// otherUse returns host.others. helper is the id of a process whose work is a part of this
// one's, such as the upload of the archive; 0: there is none.
func otherUse(helper int) func() (others, error) {
	return func() (others, error) {
		used, err := hostUse()
		if err != nil {
			return others{}, err
		}
		var own unix.Rusage
		if err := unix.Getrusage(unix.RUSAGE_SELF, &own); err != nil {
			return others{}, err
		}
		user := time.Duration(own.Utime.Nano())
		used = used.without(others{all: user + time.Duration(own.Stime.Nano()), user: user})
		if helper == 0 {
			return used, nil
		}
		helped, err := processUse(helper)
		return used.without(helped), err
	}
}

func (o others) without(part others) others {
	return others{all: o.all - part.all, user: o.user - part.user}
}

// hostUse returns the processor time of all processes. Idle and stolen time is none; that of
// guests is in that of users.
func hostUse() (others, error) {
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return others{}, err
	}
	stat, err := fs.Stat()
	if err != nil {
		return others{}, err
	}
	c := stat.CPUTotal // in seconds
	user := c.User + c.Nice
	return others{all: seconds(user + c.System + c.IRQ + c.SoftIRQ), user: seconds(user)}, nil
}

// processUse returns the processor time of a process.
func processUse(id int) (others, error) {
	p, err := procfs.NewProc(id)
	if err != nil {
		return others{}, err
	}
	stat, err := p.Stat()
	if err != nil {
		return others{}, err
	}
	return others{all: time.Duration(stat.UTime+stat.STime) * statTick, user: time.Duration(stat.UTime) * statTick}, nil
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
