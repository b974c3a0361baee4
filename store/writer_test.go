package store

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/dgraph-io/badger/v4"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	v1 "berth/api/v1"
)

// together runs the updates in one batch, in their order.
func together(t *testing.T, s *Store, fns ...func(*Tx) error) []error {
	t.Helper()
	hold, held := make(chan struct{}), make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		_ = s.Update(func(*Tx) error { close(held); <-hold; return nil })
	})
	<-held
	errs := make([]error, len(fns))
	var b batch
	b.s, b.rev = s, s.rev.Load()
	// The writer is held, so the batch is this goroutine's.
	ops := make([]*op, len(fns))
	for i, fn := range fns {
		ops[i] = &op{fn: fn, done: make(chan error, 1)}
		b.add(ops[i])
	}
	_ = b.commit()
	for i, o := range ops {
		errs[i] = <-o.done
	}
	close(hold)
	all.Wait()
	return errs
}

func createOp(id string, size int) func(*Tx) error {
	return func(tx *Tx) error {
		return Containers.Create(tx, id, v1.ContainerSpec{InstallScript: strings.Repeat("x", size)})
	}
}

func ids(t *testing.T, s *Store) (ids []string) {
	t.Helper()
	require.NoError(t, s.View(func(tx *Tx) error {
		ids = Containers.IDs(tx)
		return nil
	}))
	return ids
}

func TestFailedUpdateHarmsNoOtherOfItsBatch(t *testing.T) {
	s := openIn(t, t.TempDir())
	broken := errors.New("broken")
	errs := together(t, s,
		createOp("a", 10),
		func(tx *Tx) error { return errors.Join(createOp("b", 10)(tx), broken) },
		func(tx *Tx) error { _ = createOp("c", 10)(tx); panic("at the disco") },
		createOp("a", 10),
		func(tx *Tx) error {
			require.Equal(t, []string{"a"}, Containers.IDs(tx), "what came before in the batch is seen")
			return createOp("d", 10)(tx)
		},
	)
	require.NoError(t, errs[0])
	require.ErrorIs(t, errs[1], broken)
	require.ErrorContains(t, errs[2], "at the disco")
	require.ErrorIs(t, errs[3], ErrExists)
	require.NoError(t, errs[4])
	require.Equal(t, []string{"a", "d"}, ids(t, s))
	require.EqualValues(t, 2, s.Revision())
}

func TestBatchThatIsTooBigIsSplit(t *testing.T) {
	for name, dir := range map[string]string{"disk": t.TempDir(), "memory": ""} {
		t.Run(name, func(t *testing.T) {
			s := openIn(t, dir)
			var fns []func(*Tx) error
			for i := range 8 {
				fns = append(fns, createOp(fmt.Sprint(i), 400<<10))
			}
			fns[3] = createOp("big", 2<<20)
			fns[5] = func(tx *Tx) error {
				return errors.Join(createOp("big-a", 900<<10)(tx), createOp("big-b", 900<<10)(tx))
			}
			for i, err := range together(t, s, fns...) {
				if i == 3 || i == 5 {
					require.ErrorIs(t, err, ErrTooBig)
				} else {
					require.NoError(t, err)
				}
			}
			require.Equal(t, []string{"0", "1", "2", "4", "6", "7"}, ids(t, s))
			require.EqualValues(t, 6, s.Revision())
			require.NoError(t, create(s, "next"))
			require.EqualValues(t, 7, s.Revision())
		})
	}
}

func TestUpdateWithTooManyKeysLeavesNothing(t *testing.T) {
	s := openIn(t, "")
	err := s.Update(func(tx *Tx) error {
		for i := range 20_000 {
			if err := Tokens.Create(tx, fmt.Sprint(i), v1.TokenSpec{}); err != nil {
				return err
			}
		}
		return nil
	})
	require.ErrorIs(t, err, ErrTooBig)
	require.NoError(t, s.View(func(tx *Tx) error {
		require.Empty(t, Tokens.IDs(tx))
		return nil
	}))
}

func TestUpdateThatEndsItsGoroutineHangsNobody(t *testing.T) {
	s := openIn(t, "")
	require.ErrorIs(t, s.Update(func(*Tx) error { runtime.Goexit(); return nil }), errGoexit)
	require.NoError(t, create(s, "a"))
	require.EqualValues(t, 1, s.Revision())
}

func TestTransactionIsOverWhenItsFunctionReturns(t *testing.T) {
	s := openIn(t, "")
	var kept *Tx
	require.NoError(t, s.Update(func(tx *Tx) error { kept = tx; return nil }))
	require.ErrorIs(t, SetCursor(kept, "x", 1), errReadOnly)
}

func TestFailedCommitIsToldToAllThatSawIt(t *testing.T) {
	s := openIn(t, "")
	s.commit = func(*badger.Txn) error { return unix.EIO }
	none := errors.New("none of a store's business")
	errs := together(t, s,
		func(*Tx) error { return nil },
		func(*Tx) error { return none },
		createOp("a", 10),
		func(*Tx) error { return nil },
		createOp("a", 10),
	)
	require.NoError(t, errs[0])
	require.ErrorIs(t, errs[1], none)
	for _, err := range errs[2:] {
		require.ErrorIs(t, err, ErrFailed)
	}
	require.Empty(t, ids(t, s))
}

func TestCommitsAreMeasured(t *testing.T) {
	r := prometheus.NewRegistry()
	s, err := Open("", Options{Registerer: r})
	require.NoError(t, err)
	require.NoError(t, create(s, "a"))
	families, err := r.Gather()
	require.NoError(t, err)
	require.Len(t, families, 1)
	require.Equal(t, "berth_store_commit_duration_seconds", families[0].GetName())
	require.EqualValues(t, 1, families[0].GetMetric()[0].GetHistogram().GetSampleCount())
	require.NoError(t, s.Close())
	families, err = r.Gather()
	require.NoError(t, err)
	require.Empty(t, families)
}
