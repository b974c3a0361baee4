package docker

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"berth/runtime"
)

// target is the run of a container that goes on, or that was the last.
func (r rig) target(t *testing.T, id string, follow bool) runtime.Target {
	t.Helper()
	c, err := r.inspectOwned(t.Context(), id)
	require.NoError(t, err)
	return runtime.Target{ContainerID: id, StartedAt: parseTime(c.State.StartedAt), TTY: c.Config.Tty, Ended: !follow}
}

// read returns the lines after since. With follow it waits for the exit.
func (r rig) read(t *testing.T, id string, since time.Time, follow bool) (lines []runtime.Line) {
	t.Helper()
	if follow { // that stream may lack the last lines
		require.NoError(t, r.Logs(t.Context(), r.target(t, id, true), since, func(runtime.Line) error { return nil }))
	}
	require.NoError(t, r.Logs(t.Context(), r.target(t, id, false), since, func(l runtime.Line) error {
		lines = append(lines, l)
		return nil
	}))
	return lines
}

func same(a, b runtime.Line) bool {
	return a.Time.Equal(b.Time) && a.Partial == b.Partial && bytes.Equal(a.Data, b.Data)
}

// joinLines joins the pieces of lines.
func joinLines(lines []runtime.Line) (all []string) {
	var one bytes.Buffer
	for _, l := range lines {
		one.Write(l.Data)
		if !l.Partial {
			all = append(all, one.String())
			one.Reset()
		}
	}
	return all
}

func TestLogsLongLines(t *testing.T) {
	for _, tty := range []bool{false, true} {
		t.Run(fmt.Sprintf("tty=%t", tty), func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			long := `head -c %d /dev/zero | tr '\0' x; echo "$1"; `
			s := r.spec("long", "echo before; "+fmt.Sprintf(long, 50000)+fmt.Sprintf(long, 16384)+fmt.Sprintf(long, 200000)+"echo after")
			s.TTY = tty
			id := r.run(t, s)
			lines := r.read(t, id, time.Time{}, true)
			want := []string{"before", strings.Repeat("x", 50000), strings.Repeat("x", 16384), strings.Repeat("x", 200000), "after"}
			require.True(t, slices.Equal(want, joinLines(lines)), "pieces make up the lines")
			for i, l := range lines {
				require.LessOrEqual(t, len(l.Data), pieceSize)
				if i > 0 {
					require.False(t, l.Time.Before(lines[i-1].Time))
				}
			}
			for i, l := range lines {
				later := lines[i+1:]
				for len(later) > 0 && !later[0].Time.After(l.Time) {
					require.True(t, l.Partial, "only the pieces of one line share a time")
					later = later[1:]
				}
				require.True(t, slices.EqualFunc(later, r.read(t, id, l.Time, false), same), "resuming after line %d", i)
			}
		})
	}
}

// A prompt without a line end stands right before the next run's first line.
func TestLogsSeparateRuns(t *testing.T) {
	for _, tty := range []bool{false, true} {
		r := newRig(t)
		s := r.spec("prompt", "echo begin; printf 'what now? '; exit 0")
		s.TTY = tty
		id := r.run(t, s)
		require.Equal(t, []string{"begin", "what now? "}, joinLines(r.read(t, id, time.Time{}, true)))
		require.NoError(t, r.Start(t.Context(), s.Name))
		r.read(t, id, time.Time{}, true)
		lines := r.read(t, id, time.Time{}, false)
		require.Equal(t, []string{"begin", "what now? ", "begin", "what now? "}, joinLines(lines), "tty %t", tty)
		require.Len(t, r.read(t, id, lines[1].Time, false), 2)
	}
}

func TestLogsBurstInOrder(t *testing.T) {
	r := newRig(t)
	s := r.spec("burst", "seq 1 20000; sleep 1000")
	s.TTY = true
	id := r.run(t, s)
	var since time.Time
	enough := errors.New("enough")
	for next := 1; next <= 20000; {
		stop := next + 1777
		err := r.Logs(t.Context(), r.target(t, id, true), since, func(l runtime.Line) error {
			require.Equal(t, strconv.Itoa(next), string(l.Data))
			require.True(t, l.Time.After(since))
			since = l.Time
			if next++; next == stop || next > 20000 {
				return enough
			}
			return nil
		})
		require.ErrorIs(t, err, enough)
	}
}

// The pieces of a long line have the time of its beginning, also where the other
// stream has printed since.
func TestLogsInterleavedLongLine(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	long := `head -c 20000 /dev/zero | tr '\0' x; `
	id := r.run(t, r.spec("amid", long+"sleep 0.2; echo other >&2; sleep 0.2; "+long+"echo"))
	count := func(lines []runtime.Line) (size, others int) {
		for _, l := range lines {
			if string(l.Data) == "other" {
				others++
			} else {
				size += len(l.Data)
			}
		}
		return size, others
	}
	size, others := count(r.read(t, id, time.Time{}, true))
	require.Equal(t, 40000, size)
	require.Equal(t, 1, others)
}
