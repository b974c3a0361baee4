package store

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// TestWaitingUpdatesShareACommit: while one update commits, all others wait, and the next of
// them takes the rest into its commit, up to maxBatch.
func TestWaitingUpdatesShareACommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := openIn(t, "")
		var commits []int // number of containers after each
		release := make(chan struct{})
		s.commit = func(commit func() error) error {
			<-release
			err := commit()
			commits = append(commits, len(ids(t, s)))
			return err
		}
		var all sync.WaitGroup
		for i := range maxBatch + 10 {
			all.Go(func() { require.NoError(t, create(s, fmt.Sprint(i))) })
			synctest.Wait()
		}
		for range 3 {
			release <- struct{}{}
			synctest.Wait()
		}
		all.Wait()
		require.Equal(t, []int{1, 1 + maxBatch, maxBatch + 10}, commits)
	})
}

// TestCloseRefusesWhoWaits: Close waits for the commit in flight. Updates that wait, or come
// later, get ErrClosed.
func TestCloseRefusesWhoWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := Open("", Options{})
		require.NoError(t, err)
		release := make(chan struct{})
		s.commit = func(commit func() error) error { <-release; return commit() }
		var errs [3]error
		var all sync.WaitGroup
		for i := range errs {
			all.Go(func() { errs[i] = create(s, fmt.Sprint(i)) })
			synctest.Wait()
		}
		closed := false
		all.Go(func() { require.NoError(t, s.Close()); closed = true })
		synctest.Wait()
		require.False(t, closed)
		require.Equal(t, [3]error{nil, ErrClosed, ErrClosed}, errs, "the first one has not ended")
		require.Equal(t, ErrClosed, create(s, "late"))
		close(release)
		all.Wait()
		require.NoError(t, errs[0])
	})
}
