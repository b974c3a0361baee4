package transfer

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"berth/api/intent"
	v1 "berth/api/v1"
	"berth/controller"
	"berth/store"
)

var (
	errCut     = errors.New("connection reset by peer")
	errRevoked = refusal{v1.Errorf(v1.Unauthorized, "Unauthorized"), 401}
	errFull    = refusal{v1.ErrDiskFull, 507}
)

// TestTransfer: a container is moved with what the tenant writes meanwhile, whatever the clocks are; then its volume and the token
// are deleted here.
func TestTransfer(t *testing.T) {
	for _, ahead := range []time.Duration{0, 10 * time.Minute, -10 * time.Minute} {
		t.Run(ahead.String(), func(t *testing.T) {
			live(t, func(w *world) {
				w.clock.Store(int64(ahead))
				w.move(nil)
				w.await(v1.TransferStopping)
				require.False(t, w.mayRun())
				w.mu.Lock()
				w.content = "the last words"
				w.busy = "a container that the engine has not removed"
				w.mu.Unlock()
				w.exited()
				time.Sleep(time.Minute)
				require.Equal(t, v1.TransferStopping, v1.TransferStateOf(w.get()), "the engine decides")
				w.mu.Lock()
				w.busy = ""
				w.mu.Unlock()
				w.await(v1.TransferCompleted)
				require.True(t, w.there.has())
				require.Equal(t, "the last words", w.there.content)
				o, err := store.Containers.Get(w.there.store.Read(), "mc")
				require.NoError(t, err)
				require.Equal(t, v1.PowerOn, o.Spec.Power, "it ran here")
				time.Sleep(time.Second)
				synctest.Wait()
				require.Empty(t, w.get().Spec.Token)
				events, err := store.ReadEvents(w.here.Read(), 0, 100)
				require.NoError(t, err)
				require.Equal(t, "https://node2:8070", events[len(events)-1].MovedTo)

				require.NoError(t, w.here.Update(func(tx *store.Tx) error { return store.Containers.Purge(tx, "mc") }))
				time.Sleep(23 * time.Hour)
				_, err = store.Volumes.Get(w.here.Read(), w.volume)
				require.NoError(t, err)
				time.Sleep(2 * time.Hour)
				v, err := store.Volumes.Get(w.here.Read(), w.volume)
				require.True(t, err == nil && v.Meta.Deleted)
				time.Sleep(v1.TransferRetention)
				_, err = store.Transfers.Get(w.here.Read(), transferID)
				require.ErrorIs(t, err, store.ErrNotFound)
			})
		})
	}
}

// TestVolumeStaysAfterAJump: a clock that jumps forward deletes neither the volume of a completed transfer nor its record before
// their time.
func TestVolumeStaysAfterAJump(t *testing.T) {
	live(t, func(w *world) {
		w.move(nil)
		w.await(v1.TransferStopping)
		w.exited()
		w.await(v1.TransferCompleted)
		time.Sleep(time.Minute)
		w.clock.Store(int64(60 * 24 * time.Hour))
		time.Sleep(10 * time.Minute)
		v, err := store.Volumes.Get(w.here.Read(), w.volume)
		require.NoError(t, err)
		require.False(t, v.Meta.Deleted)
		_, err = store.Transfers.Get(w.here.Read(), transferID)
		require.NoError(t, err)
	})
}

// TestVolumeThatCameBackStays: once a container is back whose volume was deleted here before its time, the transfer that took it away
// leaves the volume alone.
func TestVolumeThatCameBackStays(t *testing.T) {
	live(t, func(w *world) {
		w.move(nil)
		w.await(v1.TransferStopping)
		w.exited()
		w.await(v1.TransferCompleted)
		require.NoError(t, w.here.Update(func(tx *store.Tx) error {
			return errors.Join(store.Containers.Purge(tx, "mc"), store.Volumes.Purge(tx, w.volume))
		}))
		require.NoError(t, w.here.Update(func(tx *store.Tx) error { return store.Volumes.Create(tx, w.volume, v1.VolumeSpec{}) }))
		time.Sleep(25 * time.Hour)
		require.Nil(t, w.get().Status.VolumeUntil)
		v, err := store.Volumes.Get(w.here.Read(), w.volume)
		require.NoError(t, err)
		require.False(t, v.Meta.Deleted)
	})
}

// TestRefused: what the destination refuses for good, or the source cannot do, ends the transfer in each phase before the
// hand-over; the container runs here, and nothing of it stays there.
func TestRefused(t *testing.T) {
	for name, test := range map[string]struct {
		state   v1.TransferState // in which the fault begins
		fault   func(w *world)
		message string
	}{
		"full before":        {"", func(w *world) { w.there.set("announce", errFull) }, "The destination answers"},
		"full in the middle": {v1.TransferCopying, func(w *world) { w.there.set("send", errFull) }, "The destination answers"},
		"full at the end":    {v1.TransferStopping, func(w *world) { w.there.set("send", errFull); w.content = "2" }, "The destination answers"},
		"large announcement": {"", func(w *world) {
			w.there.set("announce", refusal{errors.New("Request body is too large"), 413})
		}, "bytes: raise server.body_limit there"},
		"image":              {"", func(w *world) { w.there.image = errors.New("not in the registry") }, "not in the registry"},
		"port":               {"", func(w *world) { w.taken("other", 1000) }, "bound"},
		"revoked at first":   {"", func(w *world) { w.there.set("announce", errRevoked) }, "Unauthorized"},
		"revoked meanwhile":  {v1.TransferCopying, func(w *world) { w.there.set("tree", errRevoked) }, "Unauthorized"},
		"revoked at the end": {v1.TransferStopping, func(w *world) { w.there.set("announce", errRevoked) }, "Unauthorized"},
		"unreadable": {v1.TransferCopying, func(w *world) {
			w.reading = v1.Errorf(v1.InvalidRequest, "x cannot be read")
		}, "The source: x cannot be read"},
		"away":            {"", func(w *world) { w.there.set("announce", errCut) }, "cannot be reached"},
		"away meanwhile":  {v1.TransferCopying, func(w *world) { w.there.set("send", errCut) }, "cannot be reached"},
		"away at the end": {v1.TransferStopping, func(w *world) { w.there.set("tree", errCut) }, "cannot be reached"},
	} {
		t.Run(name, func(t *testing.T) {
			live(t, func(w *world) {
				if test.state == v1.TransferCopying {
					w.there.set("tree", errCut) // it stays there until the fault begins
				}
				begin := func() {
					w.mu.Lock()
					defer w.mu.Unlock()
					test.fault(w)
				}
				if test.state == "" {
					begin()
				}
				w.move(nil)
				if test.state != "" {
					w.await(test.state)
					w.there.set("tree", nil)
					begin()
					if test.state == v1.TransferStopping {
						w.exited()
					}
				}
				since := time.Now()
				w.stays(v1.TransferFailed, test.message)
				if !strings.HasPrefix(name, "away") {
					require.Less(t, time.Since(since), time.Minute, "it is not tried again")
				}
				for call := range w.there.fail {
					w.there.set(call, nil)
				}
				time.Sleep(time.Hour)
				synctest.Wait()
				require.False(t, w.get().Status.Remove)
				if a, err := w.there.view(transferID); err == nil {
					require.Equal(t, v1.ArrivalCancelled, a.State)
				}
			})
		})
	}
}

// TestIDTaken: a container of the destination with the same id ends the transfer, and both stay as they are.
func TestIDTaken(t *testing.T) {
	live(t, func(w *world) {
		w.taken("mc")
		w.move(nil)
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, v1.TransferFailed, v1.TransferStateOf(w.get()))
		require.True(t, w.mayRun())
		require.True(t, w.there.has())
	})
}

// TestRandomPorts: the destination chooses free ports of its pool once, and the transfer has them.
func TestRandomPorts(t *testing.T) {
	live(t, func(w *world) {
		w.taken("other", 1000)
		w.there.setLost("announce", errCut) // the answer is lost, and the ports stay
		w.move(func(r *v1.TransferRequest) { r.RandomPorts = true })
		time.Sleep(time.Minute)
		w.there.setLost("announce", nil)
		w.await(v1.TransferStopping)
		w.exited()
		w.await(v1.TransferCompleted)
		want := []v1.TransferPort{{IP: "10.0.0.1", Port: 1000, Protocol: "tcp", To: v1.PortAddress{IP: "10.0.0.1", Port: 1001}}}
		require.Equal(t, want, v1.ViewOfTransfer(w.get()).Ports)
		o, err := store.Containers.Get(w.there.store.Read(), "mc")
		require.NoError(t, err)
		require.Equal(t, []v1.Port{{IP: "10.0.0.1", Port: 1001, ContainerPort: 1000, Protocol: "tcp"}}, o.Spec.Ports)
		p, err := intent.GetPort(w.there.store.Read(), v1.PortRef{IP: "10.0.0.1", Port: 1001, Protocol: "tcp"})
		require.NoError(t, err)
		require.EqualValues(t, "mc", p.Container)
	})
	live(t, func(w *world) { // none is free
		w.taken("other", 1000, 1001)
		w.move(func(r *v1.TransferRequest) { r.RandomPorts = true })
		w.stays(v1.TransferFailed, v1.ErrNoPorts.Message)
	})
}

// TestBusyTenant: the rounds end although each one changes a GiB.
func TestBusyTenant(t *testing.T) {
	live(t, func(w *world) {
		w.writes, w.size, w.takes = true, 1<<30, time.Minute
		w.move(nil)
		w.await(v1.TransferStopping)
		require.Equal(t, mostRounds, w.rounds)
		w.exited()
		w.await(v1.TransferCompleted)
		require.Equal(t, w.content, w.there.content)
	})
	live(t, func(w *world) { // a round that leaves much to the next one is no small one
		w.left = 1 << 30
		w.move(nil)
		w.await(v1.TransferStopping)
		require.Equal(t, mostRounds, w.rounds)
		for _, opt := range w.sent {
			require.Equal(t, opt.Round, opt.Until)
			require.Equal(t, v1.LowPriority, opt.Priority)
		}
		arrival, err := intent.FindArrival(w.there.store.Read(), transferID)
		require.NoError(t, err)
		require.Equal(t, v1.LowPriority, arrival.Spec.Priority())
		w.exited()
		w.await(v1.TransferCompleted)
		require.True(t, w.sent[mostRounds].Until.IsZero())
		for _, opt := range w.sent[mostRounds:] {
			require.Equal(t, v1.NormalPriority, opt.Priority, "the container is stopped")
		}
		arrival, err = intent.FindArrival(w.there.store.Read(), transferID)
		require.NoError(t, err)
		require.Equal(t, v1.NormalPriority, arrival.Spec.Priority())
	})
}

// TestRounds: all attempts of a round have its time, also after a kill, so that they send what is missing. The next round sends
// each change since a round began, and it follows unless the round was a small one that did not fail. Attempts are not
// given up while more arrives.
func TestRounds(t *testing.T) {
	live(t, func(w *world) {
		w.takes = 20 * time.Second // no short rounds
		w.there.set("send", errCut)
		w.move(nil)
		w.await(v1.TransferCopying)
		for range 90 {
			time.Sleep(time.Minute)
			w.mu.Lock()
			w.arrived++
			w.mu.Unlock()
		}
		synctest.Wait()
		require.Equal(t, v1.TransferCopying, v1.TransferStateOf(w.get()))
		w.restart()
		w.there.set("send", nil)
		w.await(v1.TransferStopping)
		w.exited()
		w.await(v1.TransferCompleted)
		var rounds []v1.SendOptions
		for _, opt := range w.sent {
			if n := len(rounds); n == 0 || !opt.Round.Equal(rounds[n-1].Round) {
				rounds = append(rounds, opt)
			}
		}
		require.Greater(t, len(w.sent), 20)
		require.Len(t, rounds, 4, "one that failed, a small one, the last changes, and that nothing is left")
		for i := range rounds[:2] {
			require.Equal(t, rounds[i].Round.Add(-clockGrain).UnixNano(), rounds[i+1].Since.UnixNano())
		}
		require.True(t, rounds[3].Round.IsZero())
	})
	live(t, func(w *world) {
		w.arrived = 1
		w.there.set("send", errCut)
		w.move(nil)
		w.await(v1.TransferCopying)
		since := time.Now()
		w.stays(v1.TransferFailed, "cannot be reached")
		require.Less(t, time.Since(since), patience+10*time.Minute)
	})
}

// TestBandwidth: a transfer sends no faster than its own limit and than that of all transfers, also while the container is stopped;
// a changed limit of all of them counts at once.
func TestBandwidth(t *testing.T) {
	const burst, size, limit = 256 << 10, 2 << 20, v1.LeastBandwidth
	least := time.Duration((size-burst)/limit) * time.Second
	for _, test := range []struct {
		own, all int64
		least    time.Duration
	}{{0, 0, 0}, {limit, 0, least}, {0, limit, least}, {limit, 4 * limit, least}, {4 * limit, limit, least}, {8 * limit, 4 * limit, least / 4}} {
		t.Run(fmt.Sprint(test.own, " ", test.all), func(t *testing.T) {
			live(t, func(w *world) {
				w.bandwidth.Store(test.all)
				w.content = strings.Repeat("x", size)
				within := func(since time.Time) {
					t.Helper()
					require.GreaterOrEqual(t, time.Since(since), test.least)
					require.Less(t, time.Since(since), test.least+10*time.Second)
				}
				since := time.Now()
				w.move(func(r *v1.TransferRequest) { r.Bandwidth = test.own })
				w.await(v1.TransferStopping)
				within(since)
				w.mu.Lock()
				w.content = strings.Repeat("y", size)
				w.mu.Unlock()
				time.Sleep(time.Minute) // the limits have their burst again
				since = time.Now()
				w.exited()
				w.await(v1.TransferCompleted)
				within(since)
			})
		})
	}
	live(t, func(w *world) {
		w.bandwidth.Store(limit)
		w.content = strings.Repeat("x", size)
		w.move(nil)
		w.await(v1.TransferCopying)
		w.bandwidth.Store(0)
		since := time.Now()
		w.await(v1.TransferStopping)
		require.Less(t, time.Since(since), least/2)
	})
	synctest.Test(t, func(t *testing.T) { // two transfers share the limit of all, and nothing else
		r := &reconciler{Options{Throttle: controller.NewThrottle(func() int64 { return 4 * limit })}}
		take := func(own int64) time.Duration {
			since := time.Now()
			var both sync.WaitGroup
			for range 2 {
				both.Go(func() {
					spec := v1.TransferSpec{TransferRequest: v1.TransferRequest{Bandwidth: own}}
					content := r.throttled(t.Context(), v1.Transfer{Spec: spec}, strings.NewReader(strings.Repeat("x", size)))
					n, err := io.Copy(io.Discard, content)
					require.NoError(t, err)
					require.EqualValues(t, size, n)
				})
			}
			both.Wait()
			return time.Since(since).Round(time.Second)
		}
		require.Equal(t, (2*size-burst)/(4*limit)*time.Second, take(0))
		time.Sleep(time.Minute)
		require.Equal(t, least, take(limit))
	})
}

// states are those in which a transfer is held for a test, and how.
var states = map[v1.TransferState]string{v1.TransferPending: "announce", v1.TransferCopying: "send", v1.TransferStopping: "",
	v1.TransferFinishing: "tree", v1.TransferHandingOver: "commit"}

// hold begins a transfer that stays in a state, because the answers of one call are lost.
func (w *world) hold(state v1.TransferState) (call string) {
	w.t.Helper()
	call = states[state]
	if state != v1.TransferFinishing {
		w.there.set(call, errCut)
	}
	w.move(nil)
	if state == v1.TransferFinishing || state == v1.TransferHandingOver {
		w.await(v1.TransferStopping)
		w.there.set(call, errCut)
		w.exited()
	}
	w.await(state)
	return call
}

// TestCancel: the panel cancels in each state from either side, also while the source restarts: the container is here, or there.
func TestCancel(t *testing.T) {
	for state := range states {
		t.Run("here "+string(state), func(t *testing.T) {
			live(t, func(w *world) {
				w.hold(state)
				require.NoError(t, intent.CancelTransfer(w.here, transferID))
				w.restart()
				w.stays(v1.TransferCancelled, "Cancelled")
				if _, err := w.there.view(transferID); err == nil {
					time.Sleep(time.Minute)
					a, err := w.there.view(transferID)
					require.NoError(t, err)
					require.Equal(t, v1.ArrivalCancelled, a.State)
				}
			})
		})
		if state == v1.TransferPending {
			continue // there is no arrival yet
		}
		t.Run("there "+string(state), func(t *testing.T) {
			live(t, func(w *world) {
				call := w.hold(state)
				require.NoError(t, intent.CancelArrival(w.there.store, transferID))
				w.restart()
				w.there.set(call, nil)
				if state == v1.TransferStopping {
					w.exited()
				}
				for range 600 {
					synctest.Wait()
					w.check()
					time.Sleep(time.Second)
				}
				require.True(t, v1.TransferStateOf(w.get()).Finished())
				w.stays(v1.TransferStateOf(w.get()), "ancelled")
			})
		})
	}
}

// TestHandOver: once the commit may have been sent, nothing but the answer of the destination, or an operator, ends the transfer.
func TestHandOver(t *testing.T) {
	for _, fault := range []error{errCut, errRevoked, refusal{v1.ErrArrivalNotFound, 404}} {
		t.Run(fault.Error(), func(t *testing.T) {
			live(t, func(w *world) {
				w.there.set("cancel", fault)
				w.there.set("commit", fault)
				w.move(nil)
				w.await(v1.TransferStopping)
				w.exited()
				w.await(v1.TransferHandingOver)
				w.restart()
				time.Sleep(48 * time.Hour)
				require.NoError(t, intent.CancelTransfer(w.here, transferID))
				time.Sleep(time.Hour)
				synctest.Wait()
				require.Equal(t, v1.TransferHandingOver, v1.TransferStateOf(w.get()))
				require.Contains(t, w.get().Status.Message, "has not answered")
				require.Equal(t, w.get().Spec.Cancels, w.get().Status.Unanswered)
				require.Equal(t, 1, unanswered(w.here))
				require.False(t, w.mayRun())
				require.NoError(t, intent.AbandonTransfer(w.here, transferID))
				w.stays(v1.TransferCancelled, "declared gone")
			})
		})
	}
	t.Run("the answer is lost", func(t *testing.T) {
		live(t, func(w *world) {
			w.there.setLost("commit", errCut)
			w.move(nil)
			w.await(v1.TransferStopping)
			w.exited()
			w.await(v1.TransferHandingOver)
			time.Sleep(time.Minute)
			require.True(t, w.there.has())
			require.NoError(t, intent.CancelTransfer(w.here, transferID))
			w.await(v1.TransferCompleted)
		})
	})
	t.Run("other files", func(t *testing.T) {
		live(t, func(w *world) {
			w.there.set("commit", errCut)
			w.move(nil)
			w.await(v1.TransferStopping)
			w.exited()
			w.await(v1.TransferHandingOver)
			w.there.mu.Lock()
			w.there.content = "damaged"
			w.there.mu.Unlock()
			w.there.set("commit", nil)
			w.stays(v1.TransferFailed, "not those of the source")
		})
	})
}

// TestAnythingFails: calls fail before or after they took effect, the source is killed, and the panel cancels, all at random: at no
// time both nodes have the container, and in the end one has it, with all files.
func TestAnythingFails(t *testing.T) {
	ends := map[v1.TransferState]int{}
	for seed := range uint64(60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			live(t, func(w *world) {
				random := rand.New(rand.NewPCG(seed, 1))
				calls := []string{"announce", "tree", "send", "backup", "commit", "cancel"}
				mine := []string{w.backup(v1.TargetLocal, "first"), w.backup(v1.TargetLocal, "second"), w.backup(v1.TargetS3, "third")}
				w.there.bucket[v1.ArchiveKey(mine[2])] = int64(len("third"))
				slices.Sort(mine)
				w.move(func(r *v1.TransferRequest) { r.Backups = true })
				for range 120 {
					call, fault := calls[random.IntN(len(calls))], error(nil)
					if random.IntN(2) == 0 {
						fault = errCut
					}
					if random.IntN(2) == 0 {
						w.there.set(call, fault)
					} else {
						w.there.setLost(call, fault)
					}
					if w.there.store != nil && random.IntN(60) == 0 {
						require.NoError(t, intent.CancelTransfer(w.here, transferID))
					}
					if random.IntN(10) == 0 {
						w.restart()
					}
					if v1.TransferStateOf(w.get()) == v1.TransferStopping {
						w.exited()
					}
					for range random.IntN(10) {
						synctest.Wait()
						w.check()
						time.Sleep(time.Second)
					}
				}
				for _, call := range calls {
					w.there.set(call, nil)
					w.there.setLost(call, nil)
				}
				for range 1200 {
					if v1.TransferStateOf(w.get()) == v1.TransferStopping {
						w.exited()
					}
					synctest.Wait()
					w.check()
					time.Sleep(time.Second)
				}
				end := v1.TransferStateOf(w.get())
				require.True(t, end.Finished(), end)
				require.Equal(t, end == v1.TransferCompleted, w.there.has())
				require.Equal(t, end != v1.TransferCompleted, w.mayRun())
				w.there.clean(t)
				if end == v1.TransferCompleted {
					require.Equal(t, w.content, w.there.content)
					require.Equal(t, mine, w.backups(w.there.store))
					require.Len(t, w.there.archives.keys(), 2)
				} else {
					require.Equal(t, mine, w.backups(w.here))
					require.Len(t, w.local.keys(), 2)
					require.Empty(t, w.backups(w.there.store))
					require.Empty(t, w.there.archives.keys())
				}
				ends[end]++
			})
		})
	}
	require.Len(t, ends, 3, "the seeds end in every way: %v", ends)
}
