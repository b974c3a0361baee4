package archiver

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// simulated is a host whose time passes while the process works and sleeps.
type simulated struct {
	at, own  time.Duration
	used     others  // by the others
	user     float64 // processors that other processes use outside the kernel
	kernel   float64 // and inside
	broken   bool
	slept    time.Duration
	longest  time.Duration
	reads    int
	policies []uint32
}

func (s *simulated) pace(processors int) *pace {
	h := host{
		own: func() (time.Duration, time.Duration) { return s.at, s.own },
		others: func() (others, error) {
			s.reads++
			if s.broken {
				return others{}, errors.New("no such file")
			}
			return s.used, nil
		},
	}
	return newPace(h, processors, s.sleep, func(policy uint32) { s.policies = append(s.policies, policy) })
}

func (s *simulated) pass(d, own time.Duration) {
	s.at, s.own = s.at+d, s.own+own
	s.used.user += time.Duration(float64(d) * s.user)
	s.used.all += time.Duration(float64(d) * (s.user + s.kernel))
}

func (s *simulated) sleep(d time.Duration) {
	s.slept, s.longest = s.slept+d, max(s.longest, d)
	s.pass(d, 0)
}

// work lets the process work with two threads, 2 ms at a time, until d has passed, and
// returns how many processors it used.
func (s *simulated) work(p *pace, d time.Duration) float64 {
	at, own := s.at, s.own
	for s.at < at+d {
		s.pass(2*time.Millisecond, 4*time.Millisecond)
		p.keep()
	}
	return float64(s.own-own) / float64(s.at-at)
}

// TestPace: the process uses all processors while the others are quiet, and else a part of
// what they leave, but never less than that of one processor.
func TestPace(t *testing.T) {
	s := &simulated{at: time.Hour, used: others{1000 * time.Hour, 500 * time.Hour}}
	p := s.pace(2)
	require.InDelta(t, 2, s.work(p, 10*time.Second), 0, "nobody else works")
	s.kernel = 0.4
	require.InDelta(t, 2, s.work(p, 10*time.Second), 0, "the kernel writes the archive")

	s.user = 0.2 // hard work is noticed after the short window
	s.work(p, 2*judgeTime)
	require.InDelta(t, spareShare, s.work(p, 2*time.Second), 0.01)
	s.user, s.kernel = 2, 0
	require.InDelta(t, spareShare, s.work(p, 2*time.Second), 0.01)

	s.user = 0
	require.InDelta(t, spareShare, s.work(p, 2*time.Second), 0.01, "the others may begin again")
	s.work(p, 2*time.Second)
	require.InDelta(t, 2, s.work(p, 10*time.Second), 0)

	s.user = 0.03 // a console is noticed after the long window
	s.work(p, 2*time.Second+judgeTime)
	require.InDelta(t, spareShare, s.work(p, 10*time.Second), 0.01)
	require.Equal(t, []uint32{unix.SCHED_BATCH, unix.SCHED_IDLE, unix.SCHED_BATCH}, s.policies)
	require.LessOrEqual(t, s.longest, longestPause)
}

// TestPaceOnLargeHost: idle processors are there to be used.
func TestPaceOnLargeHost(t *testing.T) {
	s := &simulated{at: time.Hour, user: 7}
	p := s.pace(16)
	s.work(p, time.Second)
	require.InDelta(t, 0.8, s.work(p, 10*time.Second), 0.01, "a tenth of 16-7-1")
}

// TestPaceReadsSeldom: a small file must not cost a reading of all processors.
func TestPaceReadsSeldom(t *testing.T) {
	s := &simulated{at: time.Hour}
	p := s.pace(2)
	s.user = 2
	for range 10_000 {
		s.pass(100*time.Microsecond, 100*time.Microsecond)
		p.keep()
	}
	passed := s.at - time.Hour
	require.LessOrEqual(t, s.reads, int(passed/judgeTime)+1)
	require.NotZero(t, s.slept, "small pieces of work add up")
}

// TestPaceWithoutReadings: without them there is no pause.
func TestPaceWithoutReadings(t *testing.T) {
	s := &simulated{broken: true, user: 2}
	p := s.pace(2)
	require.InDelta(t, 2, s.work(p, 10*time.Second), 0)
	require.Zero(t, s.slept)
}

// TestOtherUse reads this host: what other processes have used, without a helper.
func TestOtherUse(t *testing.T) {
	at, own := ownUse()
	require.Positive(t, own)
	require.Positive(t, at)

	helper := exec.Command("sh", "-c", "while :; do :; done")
	require.NoError(t, helper.Start())
	defer func() { _ = helper.Process.Kill(); _ = helper.Wait() }()
	var used others
	for used.user < 200*time.Millisecond {
		var err error
		used, err = processUse(helper.Process.Pid)
		require.NoError(t, err)
	}
	without, err := otherUse(helper.Process.Pid)()
	require.NoError(t, err)
	all, err := otherUse(0)()
	require.NoError(t, err)
	require.Positive(t, without.user)
	require.Greater(t, without.all, without.user)
	require.GreaterOrEqual(t, all.user-without.user, used.user-statTick)
	require.GreaterOrEqual(t, all.all-without.all, used.all-statTick)

	_, err = otherUse(1 << 30)()
	require.Error(t, err, "no such process")
}

// TestUploader: what is written to a pipe is uploaded by the parent.
func TestUploader(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	defer w.Close()
	require.Equal(t, os.Getppid(), uploader(w))
	f, err := os.Create(filepath.Join(t.TempDir(), "archive"))
	require.NoError(t, err)
	defer f.Close()
	require.Zero(t, uploader(f))
}
