package console_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"berth/api/stream"
	v1 "berth/api/v1"
	"berth/controller/console"
	"berth/runtime"
)

func TestMain(m *testing.M) {
	if text := os.Getenv(helperJob); text != "" {
		fmt.Fprintln(os.Stderr, runHelper(text))
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

func TestPumpStoresOutput(t *testing.T) {
	life(t, func(t *testing.T, e *engine, h *stream.Hub, m *console.Manager) {
		tgt := target("c1")
		e.print("c1", "a", "b")
		m.Follow(tgt)
		m.Follow(tgt)
		synctest.Wait()
		require.Equal(t, []string{"a", "b"}, texts(t, h, "mc"))
		e.print("c1", "c")
		synctest.Wait()
		require.Equal(t, []string{"a", "b", "c"}, texts(t, h, "mc"))
		e.print("c1", "d")
		e.end("c1")
		synctest.Wait()
		require.Equal(t, []string{"a", "b", "c", "d"}, texts(t, h, "mc"))
	})
}

func TestPumpReconnects(t *testing.T) {
	life(t, func(t *testing.T, e *engine, h *stream.Hub, m *console.Manager) {
		m.Follow(target("c1"))
		var want []string
		for i := range 20 {
			want = append(want, fmt.Sprint(i))
			e.print("c1", want[i])
			if i%3 == 0 {
				e.cut("c1")
			}
			synctest.Wait()
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, want, texts(t, h, "mc"))
	})
}

// full is a hub that refuses lines while its disk is full.
type full struct {
	*stream.Hub
	disk *atomic.Bool
}

func (f full) Append(id, role string, lines []v1.Line) error {
	if f.disk.Load() {
		return syscall.ENOSPC
	}
	return f.Hub.Append(id, role, lines)
}

// TestLinesThatCannotBeWritten are read again from the engine, or a message takes their place.
func TestLinesThatCannotBeWritten(t *testing.T) {
	var disk atomic.Bool
	lifeOn(t, func(h *stream.Hub) console.Sink { return full{h, &disk} }, func(t *testing.T, e *engine, h *stream.Hub, m *console.Manager) {
		lose := func(data ...string) {
			time.Sleep(time.Second)
			disk.Store(true)
			e.print("c1", data...)
			time.Sleep(time.Second)
			disk.Store(false)
		}
		last := func(n int) []string {
			synctest.Wait()
			list := texts(t, h, "mc")
			return list[max(0, len(list)-n):]
		}
		e.print("c1", "a")
		m.Follow(target("c1"))
		require.Equal(t, []string{"a"}, last(9))

		lose("b", "c")
		e.print("c1", "d")
		require.Len(t, last(9), 3)
		require.Contains(t, last(2)[0], "is missing: it could not be written")
		require.Equal(t, "d", last(1)[0])

		lose("e")
		e.cut("c1")
		time.Sleep(time.Minute)
		require.Equal(t, []string{"d", "e"}, last(2), "a new stream has them again")

		lose("f")
		e.end("c1")
		require.Equal(t, []string{"e", "f"}, last(2), "what follows the exit has them, too")

		e.print("c2")
		m.Follow(target("c2"))
		synctest.Wait()
		time.Sleep(time.Second)
		disk.Store(true)
		e.print("c2", "g")
		e.end("c2")
		require.Equal(t, []string{"e", "f"}, last(2))
		disk.Store(false)
		m.Follow(target("c3"))
		require.Contains(t, last(1)[0], "is missing: the container was removed before its output was read")
	})
}

// TestPumpResumesWithUnorderedTimes has lines with equal times and lines that are older
// than the line before, as those of stdout and stderr can be.
func TestPumpResumesWithUnorderedTimes(t *testing.T) {
	life(t, func(t *testing.T, e *engine, h *stream.Hub, m *console.Manager) {
		at := time.Now()
		say := func(ns int, data string) {
			e.change("c1", func(c *container) {
				c.lines = append(c.lines, runtime.Line{Time: at.Add(time.Duration(ns)), Data: []byte(data)})
			})
		}
		say(100, "a")
		time.Sleep(time.Minute)
		m.Follow(target("c1"))
		synctest.Wait()
		e.cut("c1")
		say(100, "b")
		say(100, "a") // the same again: printed twice
		say(90, "c")
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, []string{"a", "b", "a", "c"}, texts(t, h, "mc"))
		e.cut("c1")
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, []string{"a", "b", "a", "c"}, texts(t, h, "mc"))
	})
}

// All pieces of a long line have the time of its first piece.
func TestPumpResumesInLongLine(t *testing.T) {
	for _, newer := range []bool{false, true} {
		life(t, func(t *testing.T, e *engine, h *stream.Hub, m *console.Manager) {
			e.newer = newer
			goOnInALongLine(t, e, h, m)
		})
	}
}

func goOnInALongLine(t *testing.T, e *engine, h *stream.Hub, m *console.Manager) {
	begin := time.Now()
	say := func(at time.Time, data string, partial bool) {
		e.change("c1", func(c *container) {
			c.lines = append(c.lines, runtime.Line{Time: at, Data: []byte(data), Partial: partial})
		})
	}
	say(begin, "long ", true)
	time.Sleep(time.Minute)
	say(time.Now(), "other", false)
	m.Follow(target("c1"))
	synctest.Wait()
	e.cut("c1")
	say(begin, "goes on ", true)
	say(begin, "ends", false)
	time.Sleep(time.Minute)
	synctest.Wait()
	e.cut("c1")
	time.Sleep(time.Minute)
	synctest.Wait()
	require.Equal(t, "long other goes on ends", strings.Join(texts(t, h, "mc"), " "))
}

// TestStreamLacksLastLines: an engine may end a stream that follows a container at its exit, before its last
// lines, and between the pieces of a long one. They are read then, and nothing twice.
func TestStreamLacksLastLines(t *testing.T) {
	for lacks := range 6 {
		for _, removed := range []bool{false, true} {
			life(t, func(t *testing.T, e *engine, h *stream.Hub, m *console.Manager) {
				begin := time.Now()
				tgt := target("c1")
				e.change("c1", func(*container) {})
				m.Follow(tgt)
				synctest.Wait()
				time.Sleep(time.Second)
				e.change("c1", func(c *container) {
					c.lines = []runtime.Line{
						{Time: begin, Data: []byte("long "), Partial: true}, {Time: begin.Add(time.Second), Data: []byte("other")},
						{Time: begin, Data: []byte("long "), Partial: true}, {Time: begin, Data: []byte("long "), Partial: true},
						{Time: begin, Data: []byte("ends")}, {Time: begin.Add(time.Second), Data: []byte("last")},
					}
					c.ended, c.lacks, c.removed = true, lacks, removed
				})
				synctest.Wait()
				require.True(t, m.OutputComplete(tgt))
				want := "long other long long ends last"
				if removed { // at the exit, as some containers are: there is no rest to read
					want = strings.Join(strings.Fields(want)[:6-lacks], " ")
				}
				require.Equal(t, want, strings.Join(strings.Fields(strings.Join(texts(t, h, "mc"), " ")), " "))
			})
		}
	}
}

func TestPumpWaitsForUnreachableEngine(t *testing.T) {
	life(t, func(t *testing.T, e *engine, h *stream.Hub, m *console.Manager) {
		e.print("c1", "a")
		e.down = runtime.ErrUnavailable
		m.Follow(target("c1"))
		time.Sleep(10 * time.Minute)
		e.mu.Lock()
		reads := e.reads
		e.down = nil
		e.mu.Unlock()
		require.Less(t, reads, 400, "it waits between two attempts")
		require.Greater(t, reads, 50)
		time.Sleep(10 * time.Second)
		require.Equal(t, []string{"a"}, texts(t, h, "mc"))
	})
}

func TestLaterRunsAreAppended(t *testing.T) {
	life(t, func(t *testing.T, e *engine, h *stream.Hub, m *console.Manager) {
		first := target("c1")
		m.Follow(first)
		e.print("c1", "1")
		synctest.Wait()
		e.print("c1", "2")
		e.end("c1") // and it runs again before anybody observes the exit
		e.change("c1", func(c *container) { c.ended = false })
		second := first
		second.StartedAt = first.StartedAt.Add(time.Second)
		m.Follow(second)
		e.print("c1", "3")
		synctest.Wait()
		e.print("c1", "4")
		e.end("c1")
		synctest.Wait()
		second.Ended = true
		m.Follow(second)
		require.NoError(t, m.Drain(t.Context(), second))
		e.remove("c1")
		time.Sleep(time.Second)
		e.print("c2", "5")
		m.Follow(target("c2"))
		synctest.Wait()
		require.Equal(t, []string{"1", "2", "3", "4", "5"}, texts(t, h, "mc"))
	})
}

func TestExitedContainerIsReadOnce(t *testing.T) {
	life(t, func(t *testing.T, e *engine, h *stream.Hub, m *console.Manager) {
		e.print("c1", "a")
		e.end("c1")
		tgt := target("c1")
		tgt.Ended = true
		m.Follow(tgt)
		synctest.Wait()
		require.Equal(t, []string{"a"}, texts(t, h, "mc"))
		before := e.reads
		m.Follow(tgt)
		synctest.Wait()
		require.Equal(t, before, e.reads)
		_, _, running := m.Running("mc")
		require.False(t, running)
	})
}

func TestFalseEndOfOutput(t *testing.T) {
	life(t, func(t *testing.T, e *engine, h *stream.Hub, m *console.Manager) {
		tgt := target("c1")
		e.print("c1", "a")
		e.end("c1")
		m.Follow(tgt)
		synctest.Wait()
		e.change("c1", func(c *container) { c.ended = false }) // the engine was wrong
		e.print("c1", "b")
		synctest.Wait()
		require.Equal(t, []string{"a"}, texts(t, h, "mc"))
		m.Follow(tgt)
		synctest.Wait()
		require.Equal(t, []string{"a", "b"}, texts(t, h, "mc"))
	})
}

func TestGapIsReportedOnce(t *testing.T) {
	for name, fault := range map[string]func(e *engine, tgt *console.Target){
		"the container is another": func(e *engine, tgt *console.Target) {
			e.remove("c1")
			e.print("c2", "new")
			tgt.ContainerID = "c2"
		},
		"its log was rotated": func(e *engine, _ *console.Target) {
			e.change("c1", func(c *container) { c.lines = nil })
			e.print("c1", "new")
		},
	} {
		t.Run(name, func(t *testing.T) {
			life(t, func(t *testing.T, e *engine, h *stream.Hub, m *console.Manager) {
				tgt := target("c1")
				m.Follow(tgt)
				e.print("c1", "old")
				synctest.Wait()
				e.cut("c1")
				synctest.Wait()
				time.Sleep(time.Millisecond)
				fault(e, &tgt)
				e.change(tgt.ContainerID, func(c *container) { c.deaf = true })
				tgt.StartedAt = tgt.StartedAt.Add(time.Second)
				m.Follow(tgt)
				time.Sleep(time.Minute)
				e.change(tgt.ContainerID, func(c *container) { c.deaf = false })
				time.Sleep(time.Minute)
				for range 3 {
					e.cut(tgt.ContainerID)
					m.Follow(tgt)
					time.Sleep(time.Minute)
				}
				got := texts(t, h, "mc")
				require.Len(t, got, 3, "%q", got)
				require.Equal(t, "old", got[0])
				require.Contains(t, got[1], "console output between ")
				require.Contains(t, got[1], " is missing")
				require.Equal(t, "new", got[2])
			})
		})
	}
}

func TestUnreadableLogDoesNotBlock(t *testing.T) {
	life(t, func(t *testing.T, e *engine, h *stream.Hub, m *console.Manager) {
		m.Follow(target("c1"))
		broken := func(c *container) { c.broken = true }
		e.change("c1", broken)
		e.cut("c1")
		time.Sleep(time.Minute)
		e.print("c2", "a")
		m.Follow(target("c2"))
		time.Sleep(time.Minute)
		got := texts(t, h, "mc")
		require.Len(t, got, 2)
		require.Contains(t, got[0], "is missing")
		require.Equal(t, "a", got[1])
	})
}

func TestLongLinesAreStoredInPieces(t *testing.T) {
	life(t, func(t *testing.T, e *engine, h *stream.Hub, m *console.Manager) {
		long := strings.Repeat("0123456789", 30_000)
		e.print("c1", long, "b")
		tgt := target("c1")
		m.Follow(tgt)
		synctest.Wait()
		e.cut("c1")
		time.Sleep(time.Minute)
		require.Equal(t, []string{long, "b"}, texts(t, h, "mc"))
	})
}

func TestDrainWaitsForOutput(t *testing.T) {
	life(t, func(t *testing.T, e *engine, h *stream.Hub, m *console.Manager) {
		tgt := target("c1")
		m.Follow(tgt)
		e.print("c1", "a")
		synctest.Wait()
		e.mu.Lock()
		e.down = runtime.ErrUnavailable
		e.mu.Unlock()
		e.print("c1", "b")
		e.end("c1")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		require.ErrorIs(t, m.Drain(ctx, tgt), context.DeadlineExceeded)
		require.Equal(t, []string{"a"}, texts(t, h, "mc"))
		e.mu.Lock()
		e.down = nil
		e.mu.Unlock()
		require.NoError(t, m.Drain(t.Context(), tgt))
		require.Equal(t, []string{"a", "b"}, texts(t, h, "mc"))
		reads := e.reads
		require.NoError(t, m.Drain(t.Context(), tgt))
		require.Equal(t, reads, e.reads)
		require.NoError(t, m.Drain(t.Context(), console.Target{ID: "mc", Role: runtime.Install}))
		gone := tgt
		gone.ContainerID = "c9"
		require.NoError(t, m.Drain(t.Context(), gone), "a container that is gone has no more output")
	})
}

func TestNewRunSkipsBackOff(t *testing.T) {
	life(t, func(t *testing.T, e *engine, h *stream.Hub, m *console.Manager) {
		tgt := target("c1")
		e.print("c1", "a")
		e.down = runtime.ErrUnavailable
		m.Follow(tgt)
		time.Sleep(time.Hour)
		synctest.Wait()
		e.mu.Lock()
		e.down = nil
		e.mu.Unlock()
		tgt.StartedAt = time.Now()
		m.Follow(tgt)
		synctest.Wait()
		require.Equal(t, []string{"a"}, texts(t, h, "mc"))
		e.end("c1")
	})
}

func TestInput(t *testing.T) {
	life(t, func(t *testing.T, e *engine, h *stream.Hub, m *console.Manager) {
		require.ErrorIs(t, m.Input(t.Context(), "mc", []byte("x")), runtime.ErrNotRunning)
		installer := target("i1")
		installer.Role = runtime.Install
		m.Follow(installer)
		require.ErrorIs(t, m.Input(t.Context(), "mc", []byte("x")), runtime.ErrNotRunning)
		e.print("c1")
		tgt := target("c1")
		m.Follow(tgt)
		require.NoError(t, m.Input(t.Context(), "mc", []byte("say hi")))
		require.NoError(t, m.Input(t.Context(), "mc", []byte("stop\n")))
		require.Equal(t, []string{"c1: say hi\n", "c1: stop\n"}, e.inputs)
		tgt.Ended = true
		m.Follow(tgt)
		require.ErrorIs(t, m.Input(t.Context(), "mc", []byte("x")), runtime.ErrNotRunning)
		e.end("c1")
	})
}

// TestInputBeforeItsServerIsFollowed: berth has just started, and has not looked at the container yet.
func TestInputBeforeItsServerIsFollowed(t *testing.T) {
	life(t, func(t *testing.T, e *engine, _ *stream.Hub, m *console.Manager) {
		e.running = map[string]string{"mc": "c1"}
		require.NoError(t, m.Input(t.Context(), "mc", []byte("say hi")))
		require.Equal(t, []string{"c1: say hi\n"}, e.inputs)
		require.NoError(t, m.Resize(t.Context(), "mc", 80, 24))
		e.down = runtime.ErrUnavailable
		require.ErrorIs(t, m.Input(t.Context(), "mc", []byte("x")), runtime.ErrUnavailable, "it may run")
		require.ErrorIs(t, m.Resize(t.Context(), "other", 80, 24), runtime.ErrNotRunning)
	})
}

func TestForgetRemovesPumpsAndJournal(t *testing.T) {
	life(t, func(t *testing.T, e *engine, h *stream.Hub, m *console.Manager) {
		e.print("c1", "a")
		m.Follow(target("c1"))
		synctest.Wait()
		require.NoError(t, m.Forget(t.Context(), "mc"))
		require.NoError(t, m.Forget(t.Context(), "mc"))
		require.Empty(t, texts(t, h, "mc"))
		require.Empty(t, m.RunningIDs())
		e.print("c1", "b")
		synctest.Wait()
		require.Empty(t, texts(t, h, "mc"))
		e.print("c2", "c")
		m.Follow(target("c2")) // a new container with the same id
		synctest.Wait()
		require.Equal(t, []string{"c"}, texts(t, h, "mc"))
	})
}

func TestInstallHasItsOwnJournal(t *testing.T) {
	life(t, func(t *testing.T, e *engine, h *stream.Hub, m *console.Manager) {
		e.print("i1", "installed")
		tgt := target("i1")
		tgt.Role = runtime.Install
		m.Follow(tgt)
		synctest.Wait()
		require.Empty(t, texts(t, h, "mc"))
		require.Equal(t, []string{"installed"}, textsOf(t, h, "mc", v1.InstallConsole))
		e.end("i1")
	})
}

// panicking panics in place of the first call.
type panicking struct {
	console.Sink
	begin, appended atomic.Bool
}

func (p *panicking) Begin(id, role, container string) (v1.Resume, error) {
	if !p.begin.Swap(true) {
		panic("begin")
	}
	return p.Sink.Begin(id, role, container)
}

func (p *panicking) Append(id, role string, lines []v1.Line) error {
	if !p.appended.Swap(true) {
		panic("append")
	}
	return p.Sink.Append(id, role, lines)
}

// TestPanicEndsNoConsole: a console whose reader or writer panics is read again, and no line is lost.
func TestPanicEndsNoConsole(t *testing.T) {
	lifeOn(t, func(h *stream.Hub) console.Sink { return &panicking{Sink: h} }, func(t *testing.T, e *engine, h *stream.Hub, m *console.Manager) {
		var want []string
		for i := range 200 { // more than wait for the writer
			want = append(want, fmt.Sprint(i))
		}
		e.print("c1", want...)
		m.Follow(target("c1"))
		time.Sleep(time.Minute)
		require.Equal(t, want, texts(t, h, "mc"))
	})
}
